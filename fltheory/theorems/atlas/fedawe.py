"""Xiang, Ioannidis, Yeh, Joe-Wong and Su, FedAWE (NeurIPS 2024).

Clients are available independently, with probabilities of at least delta that may change from round
to round (Assumption 1). Some statements are about availability alone, others about a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import FedAWE
from fltheory.claims.at_point import PointClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import RateAxis, three_decades
from fltheory.claims.statement import Statement
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.exact_or_float import is_exact, largest, number, root, with_rounding
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.regime import JUST_BELOW, Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, LOSS, PURE, STEP
from fltheory.numbers.of_setting import value_in
from fltheory.participation import Bernoulli, VaryingBernoulli
from fltheory.problems import QuadraticProblem, quadratic
from fltheory.theorems.atlas.client_models import (
    DescentTerms,
    availability_rows,
    fedawe_of,
    number_for,
    waiting_models,
)

PAPER = "Xiang et al. (NeurIPS 2024)"
_EIGENVALUE_ERROR = 1e-13
"""A bound on LAPACK's error for a symmetric matrix of norm one, far above n unit roundoffs."""


def _largest_absence(setting: Setting, power: int) -> Any:
    """Return the largest ``E (t - tau_i(t))^power`` over clients and t = 0 .. R.

    tau_i(t) is the last round before t in which i was available, or -1 if there is none. After
    ``a = t - tau_i(t)``, the next value is 1 with probability p_i^t, and a + 1 otherwise.
    """
    rows = availability_rows(setting)
    means = squares = largest = [Fraction(1)] * len(rows[0])
    for t in range(setting.rounds):
        row = rows[t % len(rows)]
        moments = zip(row, means, squares, strict=True)
        squares = [p + (1 - p) * (square + 2 * mean + 1) for p, mean, square in moments]
        means = [p + (1 - p) * (mean + 1) for p, mean in zip(row, means, strict=True)]
        largest = list(map(max, largest, means if power == 1 else squares))
    return number_for(setting, max(largest))


def second_eigenvalue(setting: Setting) -> tuple[Any, float]:
    """Return ``max_t lambda_2(E W(t)^2)`` over the rounds, and its rounding error.

    W is a projection, so ``W^2 = W``. Rows sum to one; with two clients, or equal probabilities,
    every eigenvalue other than 1 is ``M_11 - M_12``, a fraction.

    Raises
    ------
    ValueError
        If there is only one client.
    """
    count = setting.problem.n_clients
    if count == 1:
        raise ValueError("problem must have at least two clients for the second eigenvalue, got 1")
    found: list[Any] = []
    error = 0.0 if is_exact(setting.x0) else _EIGENVALUE_ERROR
    for row in availability_rows(setting):
        mixing = np.full((count, count), Fraction(0))
        for here in product((False, True), repeat=count):
            chance = math.prod((p if there else 1 - p for p, there in zip(row, here, strict=True)))
            members = np.flatnonzero(here)
            mixing[np.ix_(members, members)] += chance / Fraction(max(members.size, 1))
            away = np.flatnonzero(~np.array(here))
            mixing[away, away] += chance
        if count == 2 or len(set(row)) == 1:
            found.append(number_for(setting, mixing[0, 0] - mixing[0, 1]))
        else:
            found.append(float(np.linalg.eigvalsh(mixing.astype(np.float64))[-2]))
            error = _EIGENVALUE_ERROR
    return largest(found), error


def _least(setting: Setting) -> Any:
    return number_for(setting, min(p for row in availability_rows(setting) for p in row))


delta = symbol(
    "delta", "least probability that a client is available", PURE, _least, nonnegative=True
)
m = symbol("m", "clients", PURE, "n_clients", positive=True, integer=True)

AVAILABLE = Hypothesis("every client is available at some time", sp.Gt(delta, 0), "Assumption 1")


def _of_lemmas(availability: Any, rounds: int = 40) -> Setting:
    table = np.atleast_2d(availability)
    problem = quadratic(table.shape[1], 1, L=1.0, mu=1.0, sigma_G=1.0)
    who = Bernoulli(table[0]) if len(table) == 1 else VaryingBernoulli(table)
    return Setting(FedAWE(0.1, 2), problem, who, rounds, problem.x_star + 1)


def _two_phases(*, least: float, other: float, rounds: float) -> Setting:
    """Return three clients that take turns at being rarely online."""
    return _of_lemmas([[least, other, other], [other, least, other]], int(rounds))


_REGIMES = {
    "two alike": Regime("m = 2, p = 1/2", partial(_of_lemmas, [0.5, 0.5])),
    "four alike": Regime("m = 4, p = 1/5", partial(_of_lemmas, [0.2] * 4)),
    "rare": Regime("m = 4, p = 1/100", partial(_of_lemmas, [0.01] * 4, 400)),
    "day and night": Regime(
        "m = 2, probabilities swap", partial(_of_lemmas, [[0.9, 0.1], [0.1, 0.9]])
    ),
    "one rare client": Regime(
        "m = 4, p = (1/10, 1, 1, 1)", partial(_of_lemmas, [0.1, 1.0, 1.0, 1.0])
    ),
    "always": Regime("m = 4, p = 1", partial(_of_lemmas, [1.0] * 4)),
    "never by night": Regime("delta = 0", partial(_of_lemmas, [[0.5, 0.5], [0.5, 0.0]])),
}
_FAMILY = Family(
    _two_phases,
    (
        Parameter("least", 0.001, 1, 0.1, "delta"),
        Parameter("other", 0.01, 1, 0.9, "the other probabilities"),
        Parameter("rounds", 1, 200, 40, "R", whole=True),
    ),
)

LEMMA_2 = PointClaim(
    id="fedawe/lemma-2",
    title="The mean length of absences",
    source=f"{PAPER}, Lemma 2",
    quantity=PointQuantity(
        lambda setting: with_rounding(_largest_absence(setting, 1), 1),
        "largest E[t - tau_i(t)] over clients and rounds",
        PURE,
    ),
    bound=as_printed(lambda: 1 / delta),
    hypotheses=(AVAILABLE,),
    regimes=_REGIMES,
    family=_FAMILY,
    note="Checked to the letter, for all clients and rounds; tau_i(0) = -1 as in Algorithm 1.",
    kind=StatementKind.LEMMA,
)

LEMMA_2_SQUARES = replace(
    LEMMA_2,
    id="fedawe/lemma-2-squares",
    title="The mean squared length of absences",
    quantity=PointQuantity(
        lambda setting: with_rounding(_largest_absence(setting, 2), 1),
        "largest E[(t - tau_i(t))^2] over clients and rounds",
        PURE,
    ),
    bound=as_printed(lambda: 2 / delta**2),
)

LEMMA_4 = PointClaim(
    id="fedawe/lemma-4",
    title="How fast gossip mixes",
    source=f"{PAPER}, Lemma 4",
    quantity=PointQuantity(second_eigenvalue, "max_t lambda_2(E[W(t)^2])", PURE),
    bound=as_printed(lambda: 1 - delta**4 * (1 - (1 - delta) ** m) ** 2 / 8),
    hypotheses=(AVAILABLE,),
    regimes=_REGIMES,
    family=_FAMILY,
    note="Checked to the letter, over the rounds that the setting repeats.",
    kind=StatementKind.LEMMA,
)


# ------------------------------------------------------------ models along a run Conventions: T is
# `Setting.rounds`, and the step condition (11) is split into two hypotheses. Clients are quadratic,
# with equal weights. If they share one Hessian, Assumption 4 holds with beta = 0 and ``zeta^2 = 1/m
# sum_i ||grad F_i(x*)||^2``, and no zeta can be smaller; in one dimension it holds with ``beta^2 =
# 2/m sum_i (h_i - h)^2/h^2`` and twice that zeta^2.


def _most(setting: Setting) -> Any:
    return number_for(setting, max(p for row in availability_rows(setting) for p in row))


def _curvatures(setting: Setting) -> Any:
    """Return the clients' curvatures in one dimension, or None if they share one Hessian.

    Raises
    ------
    ValueError
        If Hessians differ in more than one dimension.
    """
    fedawe_of(setting)
    problem: Any = setting.problem
    if problem.shared_hessian:
        return None
    if problem.dim > 1:
        raise ValueError(
            "problem must have the same Hessian for every client, or one dimension, for beta, got "
            f"{problem!r}"
        )
    return problem.hessians[:, 0, 0]


def _beta(setting: Setting) -> Any:
    curvatures = _curvatures(setting)
    if curvatures is None:
        return 0
    mean = curvatures.mean()
    return root(number(2 * ((curvatures - mean) ** 2).mean() / mean**2))


def _zeta(setting: Setting) -> Any:
    return root(value_in("control_gap", setting) * (1 if _curvatures(setting) is None else 2))


@cached_by_content(64)
def _worst_round(setting: Setting) -> DescentTerms:
    """Return Lemma 3's terms for the round and absences where it is closest to failing."""
    models = waiting_models(setting)
    rounds = [models.one_round(t, key) for t in range(setting.rounds) for key in models.moments(t)]
    return max(rounds, key=lambda one: _share(setting, one))


def _share(setting: Setting, one: DescentTerms) -> float:
    """Return Lemma 3's left side over its right, in floats; ties go to the first."""
    method, problem, count = fedawe_of(setting), setting.problem, setting.problem.n_clients
    steps, lr = int(method.local_steps), float(method.client_lr)
    step, size, noise = lr * float(method.server_lr), float(problem.L), float(problem.sigma)
    right = (
        float(one.excess)
        - step * steps / 4 * float(one.squared_gradient)
        + 2
        * step
        * steps
        * size
        * noise**2
        * (step * float(_most(setting)) + 4.5 * count * lr**2 * steps * size)
        / count**2
        * float(one.squared_waits)
        + 35 * step * lr**2 * steps**3 * size**2 / count * float(one.waited_gradients)
        + 2.2 * step * steps * size**2 / count * float(one.apart)
        + step * steps * size**2 / (2 * count) * float(one.spread)
    )
    return float(one.excess_after) / right if right > 0 else float(one.excess_after)


def _of_worst_round(name: str) -> Callable[[Setting], Any]:
    return lambda setting: getattr(_worst_round(setting), name)


s = symbol("s", "local_steps", PURE, "local_steps", positive=True, integer=True)
L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
T = symbol("T", "rounds", PURE, "rounds", positive=True, integer=True)
eta_l = symbol("eta_l", "client_lr", STEP, "client_lr", positive=True)
eta_g = symbol(
    "eta_g", "server_lr", PURE, lambda setting: fedawe_of(setting).server_lr, positive=True
)
sigma = symbol("sigma", "noise of the gradients", GRADIENT, "sigma", nonnegative=True)
beta = symbol("beta", "constant of Assumption 4", PURE, _beta, nonnegative=True)
zeta = symbol("zeta", "constant of Assumption 4", GRADIENT, _zeta, nonnegative=True)
delta_max = symbol(
    "delta_max", "largest probability that a client is available", PURE, _most, nonnegative=True
)
rho = symbol(
    "rho",
    "max_t lambda_2(E[W(t)^2])",
    PURE,
    lambda setting: second_eigenvalue(setting)[0],
    nonnegative=True,
)
F_0 = symbol("F_0", "F(x_0) - F*", LOSS, "excess_loss", nonnegative=True)

_WORST = "in the round, and after the absences, at which Lemma 3 is closest to failing"
z_t = symbol(
    "z_t",
    "mean of the auxiliary models z_i = x_i - eta_l eta_g s (t - tau_i - 1) grad F_i(x_i)",
    LENGTH,
    real=True,
)
D_t = symbol("D_t", f"F(z_t) - F* {_WORST}", LOSS, _of_worst_round("excess"), nonnegative=True)
G_t = symbol(
    "G_t",
    "||grad F(z_t)||^2 in the same round",
    GRADIENT**2,
    _of_worst_round("squared_gradient"),
    nonnegative=True,
)
A_t = symbol(
    "A_t",
    "sum_i (t - tau_i)^2 in the same round",
    PURE,
    _of_worst_round("squared_waits"),
    nonnegative=True,
)
B_t = symbol(
    "B_t",
    "sum_i (t - tau_i)^2 ||grad F_i(x_i)||^2 in the same round",
    GRADIENT**2,
    _of_worst_round("waited_gradients"),
    nonnegative=True,
)
X_t = symbol(
    "X_t",
    "sum_i ||x_i - z_i||^2 in the same round",
    LENGTH**2,
    _of_worst_round("apart"),
    nonnegative=True,
)
Z_t = symbol(
    "Z_t",
    "sum_i ||z_i - z_t||^2 in the same round",
    LENGTH**2,
    _of_worst_round("spread"),
    nonnegative=True,
)

_SHORT = Hypothesis(
    "a small product of steps",
    as_printed(lambda: sp.Le(eta_l * eta_g, sp.Integer(9) / (100 * s * L))),
    "Lemma 3",
)
_SHORT_LOCAL = Hypothesis(
    "small local steps", as_printed(lambda: sp.Le(eta_l, 1 / (4 * s * L))), "Lemma 5"
)
_SMOOTH = Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Assumption 2")
_ALIKE = Hypothesis(
    "clients that do not differ too much", sp.Lt(beta, sp.oo, evaluate=False), "Assumption 4"
)


def _small_steps(
    size: sp.Expr, unlike: Callable[[], sp.Expr], source: str
) -> tuple[Hypothesis, Hypothesis]:
    """Return both conditions of (11); ``size`` is its L + 1, ``unlike`` the term under its root."""
    mixing = sp.sqrt(rho)
    product = as_printed(
        lambda: sp.Le(
            eta_l * eta_g,
            (1 - mixing) * delta / (80 * s * size * (mixing + 1) * sp.sqrt(unlike())),
        )
    )
    local = as_printed(lambda: sp.Le(eta_l, delta / (200 * s * L * sp.sqrt(unlike()))))
    return (
        Hypothesis("a small product of steps", product, source),
        Hypothesis("small local steps", local, source),
    )


_CONDITION_11 = _small_steps(L + 1, lambda: (beta**2 + 1) * (1 + L**2), "(11)")
_CONDITION_11_OF_ONE_UNIT = _small_steps(L, lambda: beta**2 + 1, "the end of Theorem 1's proof")
_LARGE_SERVER_STEP = Hypothesis(
    "no small server steps", sp.Ge(eta_g, 1), "the convention at the end of Theorem 1's proof"
)

_DAY_AND_NIGHT = ((0.9, 0.1), (0.1, 0.9))
_SURELY_EVERY_SECOND = ((0.9, 0.8), (1.0, 1.0))


def _setting(
    *,
    rows: tuple[tuple[float, ...], ...] = _DAY_AND_NIGHT,
    curvatures: tuple[float, ...] = (1.0, 0.5),
    spread: float = 1.0,
    sigma: float = 0.5,
    start: float = 2.0,
    local_steps: int = 4,
    rounds: int = 4,
    product: float = 1.0,
    local: float = 1.0,
    limits: Callable[[Setting], tuple[float, float]] | None = None,
) -> Setting:
    """Return clients in one dimension, ``spread`` apart, starting ``start`` from the optimum.

    ``product`` and ``local`` are eta_l eta_g and eta_l divided by their limits.
    """
    count = len(rows[0])
    places = spread * np.linspace(1.0, -1.0, count)[:, None]
    curved = [curvatures[k % len(curvatures)] for k in range(count)]
    hessians = [[curved[0]]] if len(set(curved)) == 1 else [[[one]] for one in curved]
    problem = QuadraticProblem(hessians, places, sigma=sigma)
    x0 = problem.x_star + start
    steps = int(local_steps)
    made = Setting(FedAWE(1.0, steps), problem, VaryingBernoulli(rows), int(rounds), x0)
    most, most_local = (limits or _limits_of_lemma_3)(made)
    lr = JUST_BELOW * local * most_local
    return replace(made, algorithm=FedAWE(lr, steps, server_lr=product * JUST_BELOW * most / lr))


def _limits_of_lemma_3(setting: Setting) -> tuple[float, float]:
    steps, size = fedawe_of(setting).local_steps, float(setting.problem.L)
    return 9 / (100 * steps * size), 1 / (4 * steps * size)


def _limits_of(conditions: tuple[Hypothesis, ...], setting: Setting) -> tuple[float, float]:
    """Return the right-hand sides of (11) on a setting."""
    values = {
        s: fedawe_of(setting).local_steps,
        L: float(setting.problem.L),
        delta: float(_least(setting)),
        rho: second_eigenvalue(setting)[0],
        beta: _beta(setting),
    }
    first, second = (float(one.condition.rhs.subs(values)) for one in conditions)
    return first, second


_LEMMA_3_REGIMES = {
    "day and night": Regime("m = 2, probabilities swap", _setting),
    "exact gradients": Regime("sigma = 0", partial(_setting, sigma=0.0)),
    "four clients": Regime(
        "m = 4, p = 1/2 and 9/10 in turn",
        partial(_setting, rows=((0.5, 0.9, 0.5, 0.9), (0.9, 0.5, 0.9, 0.5)), rounds=2),
    ),
    "rare": Regime("p = 1/100", partial(_setting, rows=((0.01, 0.01),), rounds=8)),
    "everybody, always": Regime("p = 1", partial(_setting, rows=((1.0, 1.0),), rounds=10)),
    "one local step": Regime("s = 1", partial(_setting, local_steps=1)),
    "equal clients": Regime(
        "all clients have the same optimum", partial(_setting, spread=0.0, curvatures=(1.0,))
    ),
    "far apart": Regime("optima 100 times as far apart", partial(_setting, spread=100.0)),
    "steps twice as long": Regime("eta_l eta_g = 9/(50sL)", partial(_setting, product=2.0)),
    "long local steps": Regime(
        "eta_l = 3/L, s = 20, eta_g = 0.00045",
        partial(_setting, local_steps=20, local=240.0, product=0.3, rounds=2),
    ),
}
_OF_LOSSES = (
    Parameter("spread", 0.01, 100, 1, "distance between the clients' optima"),
    Parameter("sigma", 0.001, 10, 0.5, "noise"),
    Parameter("start", 0.01, 100, 2, "||x_0 - x*||"),
)
_LEMMA_3_PARAMETERS = (
    Parameter("product", 0.001, 1, 1, "eta_l eta_g over 9/(100sL)"),
    Parameter("local", 0.01, 500, 1, "eta_l over 1/(4sL)"),
    Parameter("local_steps", 1, 40, 4, "s", whole=True),
    Parameter("rounds", 1, 4, 3, "R", whole=True),
    Parameter("least", 0.01, 1, 0.1, "delta"),
    Parameter("other", 0.01, 1, 0.9, "the other probability"),
    *_OF_LOSSES,
)


def _swapping(
    *, least: float, other: float, make: Callable[..., Setting] = _setting, **changes: Any
) -> Setting:
    """Return two clients that take turns at being rarely online."""
    return make(rows=((least, other), (other, least)), **changes)


LEMMA_3 = PointClaim(
    id="fedawe/lemma-3",
    title="FedAWE's descent: one round of the auxiliary sequence, from every state",
    source=f"{PAPER}, Lemma 3",
    quantity=PointQuantity(
        lambda setting: (_worst_round(setting).excess_after, _worst_round(setting).rounding),
        "E F(z_t) - F* a round later",
        LOSS,
        r"\mathbb E F(\bar z_{t+1})-F^*",
    ),
    symbols=(z_t,),
    bound=as_printed(
        lambda: (
            D_t
            - eta_l * eta_g * s / 4 * G_t
            + 2
            * eta_l
            * eta_g
            * s
            * L
            * sigma**2
            * ((eta_l * eta_g * delta_max + sp.Rational(9, 2) * m * eta_l**2 * s * L) / m**2)
            * A_t
            + 35 * eta_g * eta_l**3 * s**3 * L**2 / m * B_t
            + sp.Rational(11, 5) * eta_l * eta_g * s * L**2 / m * X_t
            + eta_l * eta_g * s * L**2 / (2 * m) * Z_t
        )
    ),
    hypotheses=(_SMOOTH, _SHORT),
    regimes=_LEMMA_3_REGIMES,
    family=Family(_swapping, _LEMMA_3_PARAMETERS),
    note=(
        "Checked to the letter, with F* subtracted from both sides. The lemma is about every "
        "state at the beginning of a round. We check a consequence: the inequality in expectation "
        "over all else, for every round of a run and every choice of absences t - tau_i(t)."
    ),
    kind=StatementKind.LEMMA,
    refutations=(
        Refutation(
            "The proof uses Lemma 5, which requires eta_l <= 1/(4sL), but Lemma 3 limits only the "
            "product eta_l eta_g. With a small eta_g, local steps may be so long that they "
            "diverge.",
            Weight.MISSING_HYPOTHESIS,
            "eta_l <= 1/(4sL), as Lemma 5 requires",
            "derived",
            ("long local steps",),
            natural=(
                "none found in 1,000 settings with eta_l <= 1/L; only local steps that diverge, "
                "eta_l > 2/L, outgrow eta_l^3 s^3"
            ),
            answer="Lemma 3 is used only where (11) holds, and (11) implies this limit. So no "
            "result changes.",
        ),
    ),
)

LEMMA_3_DERIVED = replace(
    LEMMA_3,
    reading="derived",
    hypotheses=(_SMOOTH, _SHORT, _SHORT_LOCAL),
    refutations=(),
    note="This reading adds the limit on eta_l that Lemma 5 needs.",
)


# ------------------------------------------------------------ Theorem 1 and Corollary 1


def _mean_squared_gradient(*, auxiliary: bool) -> PointQuantity:
    of = "z" if auxiliary else "x"
    return PointQuantity(
        lambda setting: waiting_models(setting).mean_squared_gradient(auxiliary=auxiliary),
        f"1/T sum_{{t<T}} E||grad F({of}_t)||^2",
        GRADIENT**2,
        rf"\frac1T\sum_{{t<T}}\mathbb E\|\nabla F(\bar {of}_t)\|^2",
    )


_theorem_1 = partial(
    _setting, limits=partial(_limits_of, _CONDITION_11_OF_ONE_UNIT), rounds=8, local=0.01
)
_LONGEST = 10**8
"""Rounds at the end of three decades."""
_of_orders = partial(
    _setting,
    limits=partial(_limits_of, _CONDITION_11),
    rows=_SURELY_EVERY_SECOND,
    rounds=_LONGEST,
    product=10**-1.5,
    local=10**-1.5,
)
"""Steps that meet (11) from the first of three decades on, if they fall as 1/sqrt(T)."""


def _with_steps(setting: Setting, rounds: int, lr: float, server_lr: float) -> Setting:
    method = replace(fedawe_of(setting), client_lr=lr, server_lr=server_lr)
    return replace(setting, algorithm=method, rounds=rounds)


def _falling_local_steps(setting: Setting, rounds: int) -> Setting:
    """Change T, with eta_l proportional to 1/sqrt(T)."""
    method = fedawe_of(setting)
    lr = method.client_lr * math.sqrt(setting.rounds / rounds)
    return _with_steps(setting, rounds, lr, method.server_lr)


def _falling_server_steps(setting: Setting, rounds: int) -> Setting:
    """Change T, with eta_g proportional to 1/sqrt(T) and eta_l as at the first decade."""
    first = _falling_local_steps(setting, three_decades(setting)[0])
    method, share = fedawe_of(first), math.sqrt(first.rounds / rounds)
    return _with_steps(setting, rounds, method.client_lr, method.server_lr * share)


def _of_corollary(setting: Setting, rounds: int) -> Setting:
    """Change T, and set both steps as in Corollary 1."""
    steps, problem = fedawe_of(setting).local_steps, setting.problem
    lr = 1 / (math.sqrt(rounds) * steps * float(problem.L))
    server_lr = math.sqrt(steps * float(_least(setting)) * problem.n_clients)
    return _with_steps(setting, rounds, lr, server_lr)


_ASSUMPTIONS = (AVAILABLE, _SMOOTH, _ALIKE)
_SHORT_RUNS = {
    "day and night": Regime("m = 2, probabilities swap", _theorem_1),
    "exact gradients": Regime("sigma = 0", partial(_theorem_1, sigma=0.0)),
    "three clients": Regime(
        "m = 3, p = 1/2 and 9/10 in turn",
        partial(_theorem_1, rows=((0.5, 0.9, 0.5), (0.9, 0.5, 0.9)), rounds=4),
    ),
    "rare": Regime("p = 1/10", partial(_theorem_1, rows=((0.1, 0.1),), local=0.001)),
    "everybody, always": Regime("p = 1", partial(_theorem_1, rows=((1.0, 1.0),), rounds=1000)),
    "everybody, one local step": Regime(
        "p = 1, s = 1, one Hessian",
        partial(_theorem_1, rows=((1.0, 1.0),), curvatures=(1.0,), local_steps=1, rounds=1000),
    ),
    "everybody every second round": Regime(
        "p = (9/10, 8/10), then 1", partial(_theorem_1, rows=_SURELY_EVERY_SECOND, rounds=10**5)
    ),
    "equal clients": Regime(
        "all clients have the same optimum", partial(_theorem_1, spread=0.0, curvatures=(1.0,))
    ),
    "far apart": Regime("optima 100 times as far apart", partial(_theorem_1, spread=100.0)),
    "small server steps": Regime("eta_g < 1", partial(_theorem_1, product=0.001, local=1.0)),
    "steps twice as long": Regime(
        "eta_l eta_g twice as large as (11) allows", partial(_theorem_1, product=2.0)
    ),
    "never by night": Regime(
        "delta = 0", partial(_setting, rows=((0.5, 0.5), (0.5, 0.0)), product=0.01)
    ),
}
_PARAMETERS = (
    Parameter("product", 0.001, 1, 1, "eta_l eta_g over what (11) allows"),
    Parameter("local", 0.0001, 1, 0.01, "eta_l over what (11) allows"),
    Parameter("local_steps", 1, 20, 4, "s", whole=True),
    Parameter("rounds", 1, 6, 6, "T", whole=True),
    Parameter("least", 0.1, 1, 0.1, "delta"),
    Parameter("other", 0.1, 1, 0.9, "the other probability"),
    *_OF_LOSSES,
)

_ORDER_1 = as_printed(
    lambda: (
        F_0 / (eta_l * eta_g * s * T)
        + eta_l * eta_g * L * sigma**2 / m * (delta_max / delta**2)
        + eta_l**2
        * eta_g**2
        * s**2
        * L**2
        * ((sigma**2 + zeta**2) / (delta**2 * (1 - sp.sqrt(rho)) ** 2))
    )
)
_one_hessian = partial(_of_orders, curvatures=(1.0,))
_LONG_RUNS = {
    "one Hessian": Regime("m = 2, p = (9/10, 8/10), then 1", _one_hessian),
    "four clients": Regime(
        "m = 4, one Hessian",
        partial(_one_hessian, rows=((0.9, 0.8, 0.9, 0.8), (1.0, 1.0, 1.0, 1.0))),
    ),
    "three rounds": Regime(
        "all clients every third round, otherwise p = 1/2",
        partial(_one_hessian, rows=((0.5, 0.6), (0.6, 0.5), (1.0, 1.0))),
    ),
    "one local step": Regime("s = 1, unlike curvatures", partial(_of_orders, local_steps=1)),
    "everybody, always": Regime("p = 1", partial(_one_hessian, rows=((1.0, 1.0),))),
    "equal clients": Regime("all clients have the same optimum", partial(_one_hessian, spread=0.0)),
    "unlike curvatures": Regime("L = 1 and 1/2, s = 4, sigma = 0.5", _of_orders),
    "more local steps": Regime(
        "s = 20, optima 50 times as far apart, start near the optimum",
        partial(_of_orders, local_steps=20, spread=50.0, start=0.01, sigma=0.01),
    ),
    "steps twice as long": Regime(
        "eta_l eta_g twice as large as (11) allows", partial(_of_orders, product=0.07)
    ),
}

THEOREM_1_DERIVED = PointClaim(
    id="fedawe/1",
    reading="derived",
    title="FedAWE: the mean squared gradient at the auxiliary models",
    source=f"{PAPER}, Theorem 1",
    quantity=_mean_squared_gradient(auxiliary=True),
    symbols=(z_t,),
    bound=as_printed(
        lambda: (
            6 * F_0 / (eta_l * eta_g * s * T)
            + 24 * eta_l * eta_g * L * delta_max * sigma**2 / (m * delta**2)
            + 15
            * eta_l**2
            * eta_g**2
            * s**2
            * L**2
            * sigma**2
            / ((1 - sp.sqrt(rho)) ** 2 * delta**2)
            + 2800
            * eta_l**2
            * eta_g**2
            * s**2
            * L**2
            * zeta**2
            / (delta**2 * (1 - sp.sqrt(rho)) ** 2)
        )
    ),
    hypotheses=(*_ASSUMPTIONS, *_CONDITION_11_OF_ONE_UNIT, _LARGE_SERVER_STEP),
    regimes=_SHORT_RUNS,
    family=Family(partial(_swapping, make=_theorem_1), _PARAMETERS),
    note=(
        "This reading has the constants at the end of the proof, the convention eta_g >= 1 named "
        "there, and (11) with L in place of L + 1 and 1 in place of 1 + L^2. The units then fit, "
        "the steps may be longer, and the proof still works: its three terms are at most 14/80^2, "
        "20/80^2 and 426/200^2 times eta_l eta_g s, and the limit is 1/12."
    ),
)


def _printed(derived: PointClaim, order: sp.Expr, hypotheses: tuple[Hypothesis, ...]) -> PointClaim:
    """Return the printed order: the derived claim with an order in place of its bound."""
    return replace(
        derived,
        reading="printed",
        bound=order,
        hypotheses=hypotheses,
        regimes={},
        family=None,
        note="",
    )


THEOREM_1 = RateClaim(
    id="fedawe/1",
    title=THEOREM_1_DERIVED.title,
    source=THEOREM_1_DERIVED.source,
    theorem=_printed(THEOREM_1_DERIVED, _ORDER_1, (*_ASSUMPTIONS, *_CONDITION_11)),
    axes=(
        RateAxis(
            T,
            _ORDER_1,
            three_decades,
            _falling_local_steps,
            families={"eta_g falls": _falling_server_steps},
        ),
    ),
    regimes=_LONG_RUNS,
    note=(
        "Checked to the letter: the order in parentheses with its constant left open, for step "
        "sizes that fall as 1/sqrt(T) and meet (11). (11) adds numbers of different units, in L + "
        "1 and 1 + L^2. In units in which L = 1, it can be read as eta_l eta_g <= (1 - sqrt(rho)) "
        "delta/(160 sqrt(2) s L (sqrt(rho) + 1) sqrt(beta^2 + 1)) and eta_l <= delta/(200 sqrt(2) "
        "s L sqrt(beta^2 + 1)). The text does not say which of eta_l and eta_g falls; here eta_l "
        "falls, and eta_g is tried as well. The truth is computed in float64, by a power of the "
        "map of two rounds."
    ),
    refutations=(
        Refutation(
            "The proof's term 2580 eta_l^2 s^2 L^2 zeta^2/delta^2 has no factor eta_g. The "
            "bound's last term has one, by the convention eta_g >= 1. So the bound vanishes as "
            "eta_g falls with eta_l fixed, but the error from the local steps does not.",
            Weight.MISSING_HYPOTHESIS,
            "eta_g >= 1, the convention at the end of the proof",
            "derived",
            ("more local steps",),
            natural="more local steps",
            answer=(
                "The convention is in the appendix. In Corollary 1 eta_g does not change with T, "
                "and eta_l vanishes."
            ),
        ),
    ),
)


def _at_corollarys_steps(**changes: Any) -> Setting:
    made = _setting(**{"rows": _SURELY_EVERY_SECOND, "rounds": 10**7, **changes})
    return _of_corollary(made, made.rounds)


def _every_second_round(*, least: float, **changes: Any) -> Setting:
    """Return two clients that are present with certainty in every second round."""
    return _at_corollarys_steps(rows=((least, 1.0), (1.0, 1.0)), **changes)


_STEPS = (
    Hypothesis(
        "local step", as_printed(lambda: sp.Eq(eta_l, 1 / (sp.sqrt(T) * s * L))), "Corollary 1"
    ),
    Hypothesis(
        "server step", as_printed(lambda: sp.Eq(eta_g, sp.sqrt(s * delta * m))), "Corollary 1"
    ),
)
_ORDER_OF_COROLLARY = as_printed(
    lambda: (
        L * F_0 / sp.sqrt(s * delta * m * T)
        + delta_max / (delta ** sp.Rational(3, 2) * sp.sqrt(s * m * T)) * sigma**2
        + s * m / T * ((sigma**2 + zeta**2) / (delta * (1 - sp.sqrt(rho)) ** 2))
    )
)

COROLLARY_1_DERIVED = replace(
    THEOREM_1_DERIVED,
    id="fedawe/corollary-1",
    title="FedAWE: the mean squared gradient at the clients' mean model, O(1/sqrt(s delta m T))",
    source=f"{PAPER}, Corollary 1",
    quantity=_mean_squared_gradient(auxiliary=False),
    symbols=(),
    bound=as_printed(
        lambda: (
            12 * L * F_0 / sp.sqrt(s * delta * m * T)
            + 48 * delta_max / (delta ** sp.Rational(3, 2) * sp.sqrt(s * m * T)) * sigma**2
            + m / T * ((31 * sigma**2 + 5600 * s * zeta**2) / (delta * (1 - sp.sqrt(rho)) ** 2))
        )
    ),
    hypotheses=(*_ASSUMPTIONS, *_STEPS, *_CONDITION_11_OF_ONE_UNIT, _LARGE_SERVER_STEP),
    regimes={
        "everybody every second round": Regime("p = (9/10, 8/10), then 1", _at_corollarys_steps),
        "four clients": Regime(
            "m = 4, one Hessian",
            partial(
                _at_corollarys_steps,
                rows=((0.9, 0.8, 0.9, 0.8), (1.0, 1.0, 1.0, 1.0)),
                curvatures=(1.0,),
                rounds=10**8,
            ),
        ),
        "everybody, always": Regime("p = 1", partial(_at_corollarys_steps, rows=((1.0, 1.0),))),
        "everybody, one local step": Regime(
            "p = 1, s = 1, one Hessian",
            partial(_at_corollarys_steps, rows=((1.0, 1.0),), curvatures=(1.0,), local_steps=1),
        ),
        "exact gradients": Regime("sigma = 0", partial(_at_corollarys_steps, sigma=0.0)),
        "equal clients": Regime(
            "all clients have the same optimum",
            partial(_at_corollarys_steps, spread=0.0, curvatures=(1.0,)),
        ),
        "far apart": Regime(
            "optima 100 times as far apart", partial(_at_corollarys_steps, spread=100.0)
        ),
        "half the time": Regime(
            "p = 1/2 in every second round",
            partial(_at_corollarys_steps, rows=((0.5, 0.5), (1.0, 1.0)), rounds=10**8),
        ),
        "few rounds": Regime("T = 1000", partial(_at_corollarys_steps, rounds=1000)),
    },
    family=Family(
        _every_second_round,
        (
            Parameter("least", 0.6, 1, 0.9, "delta, in every second round"),
            Parameter("local_steps", 2, 10, 4, "s", whole=True),
            Parameter("rounds", 10**6, 10**8, 10**7, "T", whole=True),
            *_OF_LOSSES,
        ),
    ),
    note=(
        "The corollary follows from the proof of Corollary 2, and this reading has the constants "
        "at the end of that proof. It also has the conditions of Theorem 1's derived reading, "
        "which a run of few rounds does not meet: eta_l = 1/(sqrt(T) s L) is below delta/(200 s "
        "L) only for T > 40000/delta^2, not for all T >= 1. The truth is computed in float64, by "
        "a power of the map of two rounds."
    ),
    kind=StatementKind.COROLLARY,
)

COROLLARY_1 = RateClaim(
    id="fedawe/corollary-1",
    title=COROLLARY_1_DERIVED.title,
    source=COROLLARY_1_DERIVED.source,
    theorem=_printed(COROLLARY_1_DERIVED, _ORDER_OF_COROLLARY, (*_ASSUMPTIONS, *_STEPS)),
    axes=(RateAxis(T, _ORDER_OF_COROLLARY, three_decades, _of_corollary),),
    regimes={
        **{
            name: one
            for name, one in _LONG_RUNS.items()
            if name not in ("steps twice as long", "three rounds", "more local steps")
        },
        "exact gradients": Regime("sigma = 0", partial(_of_orders, sigma=0.0)),
    },
    note=(
        "Checked to the letter: the order in parentheses with its constant left open. Condition "
        "(11) does not restrict an order in T: any step sizes that fall as 1/sqrt(T) meet it from "
        "some T on, and none meet it from T = 1 on. The truth is computed in float64, by a power "
        "of the map of two rounds."
    ),
    kind=StatementKind.COROLLARY,
)


STATEMENTS: tuple[Statement, ...] = (
    LEMMA_2,
    LEMMA_2_SQUARES,
    LEMMA_4,
    LEMMA_3,
    LEMMA_3_DERIVED,
    THEOREM_1,
    THEOREM_1_DERIVED,
    COROLLARY_1,
    COROLLARY_1_DERIVED,
)
