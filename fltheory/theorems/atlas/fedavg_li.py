"""Li, Huang, Yang, Wang and Zhang, "On the Convergence of FedAvg on Non-IID Data" (ICLR 2020).

Conventions
-----------
A round is one SGD step of every client, so that T is `Setting.rounds`; the step size is ``eta_t``,
with t = 0 in the first round. All clients make steps, and drawn ones are averaged after every E-th
step, which is equivalent to the paper's algorithm. ``w_t`` is the mean ``sum_k p_k w_t^k`` between
averages. Our copy of the text has no appendix, so the lemmas of the proof are not here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import Constant, Harmonic, LocalSgd
from fltheory.algorithms.local_sgd import Sampled
from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import RateAxis
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import Derivation, Implied, Step
from fltheory.engines import Setting
from fltheory.exact_or_float import (
    ROUNDINGS,
    is_exact,
    largest,
    largest_norm,
    norm,
    number,
    root,
    solve,
    with_rounding,
)
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, PointQuantity, RoundRange
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.regime import OwnRun, Regime, strong_convexity
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, LOSS, PURE, STEP
from fltheory.numbers.of_setting import value_in
from fltheory.participation import Participation, UniformSubset, WithReplacement
from fltheory.problems import QuadraticProblem
from fltheory.theorems.atlas.client_models import (
    client_models,
    clients_in_the_plane,
    first_average,
    gap_of_minima,
    local_sgd,
    weighted_noise,
)

PAPER = "Li et al. (ICLR 2020)"


def _is_mean_of_all(setting: Setting) -> int:
    """Return 1 if an average is ``sum_k p_k w_k``, else 0.

    Drawing everybody gives the plain mean, which is the same if all p_k are equal.
    """
    everybody = setting.participation.fixed_size == setting.problem.n_clients
    by_p = local_sgd(setting).sampled == "steps" or _unevenness(setting) == 0
    return int(everybody and by_p and not isinstance(setting.participation, WithReplacement))


def _is_drawn_by_p(setting: Setting) -> int:
    drawn = setting.participation
    if not isinstance(drawn, WithReplacement):
        return 0
    return int(np.array_equal(drawn.probabilities, setting.problem.alpha.astype(float)))


def _is_uniform_draw(setting: Setting) -> int:
    drawn = setting.participation
    return int(isinstance(drawn, UniformSubset) and not drawn.excluded)


def _draws(setting: Setting) -> int:
    drawn = setting.participation
    if isinstance(drawn, WithReplacement):
        return drawn.draws
    if isinstance(drawn, UniformSubset):
        return drawn.size
    raise ValueError(f"participation must be UniformSubset or WithReplacement, got {drawn!r}")


def _unevenness(setting: Setting) -> Any:
    problem: Any = setting.problem
    return number(largest(problem.alpha) * problem.n_clients) - 1


def _largest_gradient_from(first_step: int) -> Callable[[Setting], Any]:
    return lambda setting: client_models(setting).largest_gradient(first_step)


def _gradient_at_start(setting: Setting) -> Any:
    return number(largest(client_models(setting).squared_gradients(0)))


def _distance_of_w_1(setting: Setting) -> Any:
    return root(client_models(setting).squared_distance(1))


def _harmonic(setting: Setting) -> Harmonic:
    steps = local_sgd(setting).step_sizes
    if not isinstance(steps, Harmonic):
        raise ValueError(
            f"step_sizes must be Harmonic for the theorems of Li et al., got {steps!r}"
        )
    return steps


def _step_scale(setting: Setting) -> Any:
    return _harmonic(setting).scale


def _step_offset(setting: Setting) -> Any:
    """Return gamma in ``eta_t`` with t = 0 in the first step; `Harmonic` counts from 1."""
    return _harmonic(setting).offset + 1


L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
mu = symbol("mu", "strong convexity of every client", CURVATURE, "mu", positive=True)
kappa = symbol("kappa", "L/mu", PURE, positive=True)
gamma = symbol("gamma", "max(8 kappa, E)", PURE, positive=True)
N = symbol("N", "clients", PURE, "n_clients", positive=True, integer=True)
K = symbol("K", "number of clients drawn for an average", PURE, _draws, positive=True, integer=True)
E = symbol(
    "E",
    "local_steps, the number of steps between two averages",
    PURE,
    "local_steps",
    positive=True,
    integer=True,
)
T = symbol("T", "steps of SGD", PURE, "rounds", positive=True, integer=True)
T_1 = symbol(
    "T", "number of SGD steps, counted from w_1", PURE, "rounds + 1", positive=True, integer=True
)
rest = symbol("rest", "remainder of T/E", PURE, "rounds % local_steps", nonnegative=True)
first = symbol(
    "t_1", "number of steps before the first average", PURE, first_average, positive=True
)
S = symbol("S", "sum_k p_k^2 sigma_k^2", GRADIENT**2, weighted_noise, nonnegative=True)
Gamma = symbol("Gamma", "F* - sum_k p_k F_k*", LOSS, gap_of_minima, nonnegative=True)
_GRADIENTS = "root of the largest E||grad F_k(w_t^k, xi)||^2 over all k and t = {} .. T-1"
G = symbol("G", _GRADIENTS.format(1), GRADIENT, _largest_gradient_from(1), nonnegative=True)
G_0 = symbol("G", _GRADIENTS.format(0), GRADIENT, _largest_gradient_from(0), nonnegative=True)
D_1 = symbol("D_1", "root of E||w_1 - w*||^2", LENGTH, _distance_of_w_1, nonnegative=True)
_AT_START = "||w_1 - w*||, where w_1 is the initial model"
D_0 = symbol("D_1", _AT_START, LENGTH, "sqrt(squared_distance)", nonnegative=True)
B = symbol("B", "terms of noise, heterogeneity and drift", GRADIENT**2, nonnegative=True)
C = symbol("C", "term that drawing clients adds", GRADIENT**2, nonnegative=True)
scale = symbol("beta", "eta_t = beta/(gamma_0 + t)", STEP, _step_scale, positive=True)
offset = symbol(
    "gamma_0", "eta_t = beta/(gamma_0 + t), t = 0, 1, ..", PURE, _step_offset, real=True
)
of_all = symbol(
    "d_0",
    "1 if averages are sum_k p_k w_k over all clients, else 0",
    PURE,
    _is_mean_of_all,
    real=True,
)
by_p = symbol(
    "d_I",
    "1 if draws are independent with probabilities p, else 0",
    PURE,
    _is_drawn_by_p,
    real=True,
)
evenly = symbol(
    "d_II", "1 if draws are uniform without replacement, else 0", PURE, _is_uniform_draw, real=True
)
uneven = symbol("d_p", "N max_k p_k - 1", PURE, _unevenness, nonnegative=True)
Q_N = symbol("Q_N", "largest E||N p_k grad F_k(w_0, xi)||^2 over k", GRADIENT**2, real=True)
nu = symbol("nu", "N max_k p_k", PURE, lambda setting: 1 + _unevenness(setting), positive=True)
Q = symbol(
    "Q",
    "largest E||grad F_k(w_0, xi)||^2, the smallest possible G^2",
    GRADIENT**2,
    _gradient_at_start,
    nonnegative=True,
)

_STEPS = (
    Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Assumption 1"),
    Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Assumption 2"),
    Hypothesis("bounded gradients", sp.Lt(G, sp.oo, evaluate=False), "Assumption 4"),
    Hypothesis(
        "step sizes 2/(mu (gamma + t))", as_printed(lambda: sp.Eq(scale, 2 / mu)), "Theorem 1"
    ),
    Hypothesis("offset gamma of the step sizes", sp.Eq(offset, gamma), "Theorem 1"),
    Hypothesis("averages after every E steps", sp.Eq(first, E), "Section 2"),
    Hypothesis("T divisible by E", sp.Eq(rest, 0), "Section 3.2"),
)
EVERYBODY = Hypothesis("averages over all clients with weights p", sp.Eq(of_all, 1), "Section 3.2")
_BY_P = Hypothesis("drawn by p, with replacement", sp.Eq(by_p, 1), "Assumption 5")
_EVENLY = Hypothesis("drawn uniformly, without replacement", sp.Eq(evenly, 1), "Assumption 6")
_EVEN = Hypothesis("equal p", sp.Eq(uneven, 0), "Assumption 6")
_DEFINITIONS = {
    kappa: as_printed(lambda: L / mu),
    gamma: as_printed(lambda: sp.Max(8 * kappa, E)),
    B: as_printed(lambda: S + 6 * L * Gamma + 8 * (E - 1) ** 2 * G**2),
}


def _setting(
    participation: Callable[[int], Participation],
    *,
    condition: float = 4.0,
    spread: float = 1.0,
    sigma: float = 0.0,
    local_steps: int = 5,
    averages: int = 4,
    start: float = 1.0,
    draws: int = 2,
    p: tuple[float, ...] | None = None,
    from_w_1: bool = False,
    step: float = 1.0,
) -> Setting:
    """Return a setting with the theorem's step sizes, ``step`` times as long."""
    problem = clients_in_the_plane(condition, spread, sigma, p=p)
    largest_step = max(8 * condition, local_steps)
    method = LocalSgd(
        Harmonic(step * 2 * condition, offset=largest_step - (0.0 if from_w_1 else 1.0)),
        int(local_steps),
        p or (0.25,) * 4,
        sampled="average",
    )
    x0 = problem.x_star + np.array([start, 0.0])
    rounds = int(averages) * int(local_steps) - from_w_1
    return Setting(method, problem, participation(int(draws)), max(rounds, 1), x0)


def _own(setting: Setting, sampled: Sampled, *, from_w_1: bool = False) -> Setting:
    mu, steps = strong_convexity(setting), value_in("local_steps", setting)
    largest_step = max(8 * setting.problem.L / mu, steps)
    method = LocalSgd(
        Harmonic(2 / mu, offset=largest_step - (not from_w_1)),
        steps,
        tuple(setting.problem.alpha.tolist()),
        sampled=sampled,
    )
    rounds = max(setting.rounds * steps - from_w_1, 1)
    return replace(setting, algorithm=method, rounds=rounds)


_P = (0.5, 0.25, 0.125, 0.125)
_everybody = partial(_setting, lambda draws: UniformSubset(4, 4))
_by_p = partial(_setting, lambda draws: WithReplacement(_P, draws), p=_P)
_evenly = partial(_setting, lambda draws: UniformSubset(4, draws))


def _alone() -> Setting:
    """Return one client that makes one step along the largest curvature."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    method = LocalSgd(Harmonic(2.0, offset=7.0), 1, (1.0,), sampled="average")
    return Setting(method, problem, UniformSubset(1, 1), 1, [1.0])


def _regimes(make: Callable[..., Setting]) -> dict[str, Regime]:
    return {
        "usual": Regime("kappa = 4, E = 5, sigma = 1, four averages", partial(make, sigma=1.0)),
        "exact gradients": Regime("sigma = 0", make),
        "one local step": Regime("E = 1", partial(make, local_steps=1, averages=10)),
        "ill conditioned": Regime("kappa = 100", partial(make, condition=100.0)),
        "equal curvatures": Regime("kappa = 1", partial(make, condition=1.0)),
        "many local steps": Regime(
            "E = 40 beyond 8 kappa", partial(make, local_steps=40, averages=1)
        ),
        "equal clients": Regime("all clients have the same optimum", partial(make, spread=0.0)),
        "started at the optimum": Regime("w_0 = w*", partial(make, start=0.0)),
        "step sizes twice as long": Regime("eta_t = 4/(mu (gamma + t))", partial(make, step=2.0)),
    }


def _family(make: Callable[..., Setting], *, drawn: bool) -> Family:
    draws = (Parameter("draws", 1, 4, 2, "K", whole=True),) if drawn else ()
    return Family(
        make,
        (
            Parameter("condition", 1, 100, 4, "kappa, with L = 1"),
            Parameter("averages", 1, 10, 4, "T/E", whole=True),
            Parameter("local_steps", 1, 20, 5, "E", whole=True),
            Parameter("spread", 0.01, 100, 1, "distance between the clients' optima"),
            Parameter("sigma", 0, 10, 0, "noise of the gradients", logarithmic=False),
            Parameter("start", 0.01, 100, 1, "||w_0 - w*||"),
            *draws,
        ),
    )


_LETTER = (
    "Checked to the letter: w_0 is the initial model, step t has step size eta_t, averages are "
    "taken at multiples of E, and (4) has w_1, the model after one step. Assumption 4 applies "
    "from t = 1 on."
)

THEOREM_1 = Theorem(
    id="fedavg-li/1",
    title="FedAvg with all clients and falling steps: the excess loss after T steps",
    source=f"{PAPER}, Theorem 1",
    quantity=BoundedQuantity(
        "excess_loss",
        "last",
        RoundRange(0, 0),
        "E[F(w_T)] - F*",
        r"\mathbb E[F(w_T)]-F^*",
        LOSS,
    ),
    bound=as_printed(lambda: kappa / (gamma + T - 1) * (2 * B / mu + mu * gamma / 2 * D_1**2)),
    hypotheses=(*_STEPS, EVERYBODY),
    definitions=_DEFINITIONS,
    regimes={
        **_regimes(_everybody),
        "one client, one step": Regime("N = E = T = 1, where (4) is attained", _alone),
    },
    family=_family(_everybody, drawn=False),
    own_run=OwnRun(partial(_own, sampled="steps")),
    note=_LETTER,
)

THEOREM_2 = replace(
    THEOREM_1,
    id="fedavg-li/2",
    title="FedAvg over K clients drawn by p with replacement: the excess loss after T steps",
    source=f"{PAPER}, Theorem 2",
    bound=as_printed(
        lambda: kappa / (gamma + T - 1) * (2 * (B + C) / mu + mu * gamma / 2 * D_1**2)
    ),
    hypotheses=(*_STEPS, _BY_P),
    definitions={**_DEFINITIONS, C: as_printed(lambda: 4 / K * E**2 * G**2)},
    regimes={
        **_regimes(_by_p),
        "one drawn": Regime("K = 1", partial(_by_p, draws=1)),
        "drawn uniformly": Regime("Scheme II in place of I", _evenly),
    },
    family=_family(_by_p, drawn=True),
    own_run=OwnRun(partial(_own, sampled="average")),
)

THEOREM_3 = replace(
    THEOREM_2,
    id="fedavg-li/3",
    title="FedAvg over K clients drawn uniformly without replacement: the excess loss after T "
    "steps",
    source=f"{PAPER}, Theorem 3",
    hypotheses=(*_STEPS, _EVENLY, _EVEN),
    definitions={
        **_DEFINITIONS,
        C: as_printed(lambda: (N - K) / (N - 1) * 4 / K * E**2 * G**2),
    },
    regimes={
        **_regimes(_evenly),
        "one drawn": Regime("K = 1", partial(_evenly, draws=1)),
        "drawn by p": Regime("Scheme I in place of II", _by_p),
    },
    family=_family(_evenly, drawn=True),
)


def _from_w_1(theorem: Theorem, make: Callable[..., Setting], *, drawn: bool) -> Theorem:
    """Return the reading in which w_1 is the initial model."""
    run: Any = theorem.own_run
    from_w_1 = partial(make, from_w_1=True)
    hypotheses = tuple(item for item in theorem.hypotheses if item.name != "T divisible by E")
    return replace(
        theorem,
        reading="from w_1",
        hypotheses=tuple(
            replace(item, condition=sp.Eq(offset, gamma + 1)) if "offset" in item.name else item
            for item in hypotheses
        ),
        read_as={T: T_1, D_1: D_0, G: G_0},
        regimes={
            name: regime
            for name, regime in _regimes(from_w_1).items()
            if name not in ("ill conditioned", "equal clients", "started at the optimum")
        },
        family=_family(from_w_1, drawn=drawn),
        own_run=replace(run, make=partial(run.make, from_w_1=True)),
        note=(
            "The run begins with w_1 and eta_1, as (4) and Assumption 4 suggest. From there, "
            "averages are taken after every E steps, so the last steps may not be followed by one."
        ),
    )


def _distance_of_start(setting: Setting) -> tuple[Any, float]:
    """Return ``||w_0 - w*||^2``; in floats w* is off by kappa times the rounding of the optima."""
    problem: Any = setting.problem
    distance = value_in("squared_distance", setting)
    if is_exact(distance):
        return distance, 0.0
    places = norm(setting.x0) + largest_norm(problem.optima)
    off = ROUNDINGS * problem.L / problem.mu * places
    return distance, off * (2 * math.sqrt(distance) + off)


DISTANCE = PointClaim(
    id="fedavg-li/distance",
    title="The initial distance is at most 2G/mu",
    source=f"{PAPER}, Section 3.4, above (7)",
    quantity=PointQuantity(_distance_of_start, "||w_0 - w*||^2", LENGTH**2),
    bound=as_printed(lambda: 4 / mu**2 * Q),
    hypotheses=(_STEPS[1],),
    regimes=_regimes(_everybody),
    family=_family(_everybody, drawn=False),
    note="This reading takes G from Assumption 4 at t = 0, the smallest G that it allows there.",
    kind=StatementKind.REMARK,
)


def _largest_scaled_gradient(setting: Setting) -> tuple[Any, float]:
    problem: Any = setting.problem
    scales = problem.alpha * problem.n_clients
    squares = client_models(setting).squared_gradients(0)
    return with_rounding(number(largest(scales * scales * squares)), 1)


SCALED_GRADIENTS = PointClaim(
    id="fedavg-li/3-scaling",
    title="Clients scaled by N p_k have gradients of at most sqrt(nu) G",
    source=f"{PAPER}, below Theorem 3",
    quantity=PointQuantity(_largest_scaled_gradient, "Q_N", GRADIENT**2, "Q_N"),
    bound=as_printed(lambda: nu * Q),
    symbols=(Q_N,),
    hypotheses=(_STEPS[1],),
    regimes={
        "unequal weights": Regime("p = (1/2, 1/4, 1/8, 1/8), nu = 2", _by_p),
        "equal weights": Regime("nu = 1", _everybody),
        "noise": Regime("sigma = 1", partial(_by_p, sigma=1.0)),
        "equal clients": Regime("all clients have the same optimum", partial(_by_p, spread=0.0)),
        "far away": Regime(
            "||w_0 - w*|| = 100, sigma = 1", partial(_by_p, start=100.0, sigma=1.0, averages=20)
        ),
    },
    family=_family(_by_p, drawn=False),
    note=(
        "The text applies Theorem 3 to F~_k = N p_k F_k, with sqrt(nu) G in place of G and "
        "sqrt(nu) sigma in place of sigma_k. Assumption 4 then requires E||grad F~_k||^2 <= nu "
        "G^2, which is checked at w_0. G is the smallest value that Assumption 4 allows there."
    ),
    kind=StatementKind.REMARK,
    refutations=(
        Refutation(
            "The gradient of N p_k F_k is N p_k <= nu times that of F_k, so its square is up to "
            "nu^2 times as large, not nu times.",
            Weight.MISPRINT,
            "nu G and nu sigma in place of sqrt(nu) G and sqrt(nu) sigma",
            "derived",
            ("equal clients", "far away"),
            natural="far away",
            answer="A slip in a remark: with nu in place of sqrt(nu), Theorem 3 holds as stated.",
        ),
    ),
)

SCALED_GRADIENTS_DERIVED = replace(
    SCALED_GRADIENTS,
    reading="derived",
    bound=as_printed(lambda: nu**2 * Q),
    refutations=(),
    note="This reading has nu G in place of sqrt(nu) G, because ||N p_k g|| <= nu ||g||.",
)


# ------------------------------------------------------------ Theorem 4: constant steps
# The theorem is about a ridge regression constructed in the paper's appendix, which our copy of the
# text lacks, and hides the constants that depend on it. Here the ridge regression is replaced by
# any quadratic clients whose first-order pull ``v = sum_k p_k H_k grad F_k(w*)`` is not zero; if it
# is zero, runs may converge to w* for every step size. With exact gradients and everybody present,
# the limit w~* solves ``sum_k p_k P_k H_k (w - o_k) = 0``, ``P_k = sum_{j<E} (I - eta H_k)^j``.

_DIVISORS = (1, 10, 100, 1000)
_ROUNDING = 1e-14
_LEAST = 1e-10
"""The ratio of a sum to its terms' norms below which floats may leave only rounding errors."""


def _step(setting: Setting) -> Any:
    steps = local_sgd(setting).step_sizes
    if not isinstance(steps, Constant):
        raise ValueError(f"step_sizes must be Constant for Theorem 4 of Li et al., got {steps!r}")
    return steps.value


def _pulls(setting: Setting, power: int) -> Any:
    """Return ``p_k H_k^power grad F_k(w*)``, (N, d)."""
    problem: Any = setting.problem
    pulls = problem.gradients_at_optimum[:, :, None]
    for _ in range(power):
        pulls = np.matmul(problem.hessians, pulls)
    return problem.alpha[:, None] * pulls[:, :, 0]


def _first_order(setting: Setting) -> Any:
    """Return v, or zero if v is only the rounding error of a sum that cancels."""
    v = norm(_pulls(setting, 1).sum(axis=0))
    return v if is_exact(v) or v > _LEAST * _apart(setting, 1) else 0.0


def _apart(setting: Setting, power: int) -> Any:
    """Return ``sum_k p_k ||H_k^power grad F_k(w*)||``."""
    return number(sum(norm(one) for one in _pulls(setting, power)))


def _second_order(setting: Setting) -> Any:
    return _apart(setting, 2)


def _with_rounding(setting: Setting, value: Any) -> tuple[Any, float]:
    """Return a multiple of v or of 1/D with its rounding error; both are sums that cancel."""
    if is_exact(value):
        return value, 0.0
    lost = _apart(setting, 1) / max(_first_order(setting), sys.float_info.min)
    return value, abs(value) * _ROUNDING * (lost + setting.problem.L / setting.problem.mu)


def _limit_distance(setting: Setting) -> Any:
    """Return ``||w~* - w*||``; P_k - E I is summed, since ``sum_k p_k grad F_k(w*)`` is zero."""
    problem: Any = setting.problem
    lr, one = _step(setting), np.eye(problem.dim, dtype=int)
    hessians = problem.client_hessians
    power = excess = hessians * 0
    for _ in range(1, local_sgd(setting).local_steps):
        power = power - lr * np.matmul(hessians, power + one)
        excess = excess + power
    steps = excess + local_sgd(setting).local_steps * one
    weights = problem.alpha[:, None, None]
    slope = (weights * np.matmul(steps, hessians)).sum(axis=0)
    gradients = problem.gradients_at_optimum[:, :, None]
    pull = (weights * np.matmul(excess, gradients)).sum(axis=0)[:, 0]
    return norm(solve(slope, pull))


def _relative(setting: Setting) -> tuple[Any, float]:
    """Return ``(E-1) eta ||w*|| / ||w~* - w*||``, or NaN if FedAvg converges to w*."""
    distance = _limit_distance(setting)
    if not float(distance):
        return math.nan, 0.0
    steps = (local_sgd(setting).local_steps - 1) * _step(setting)
    return _with_rounding(setting, steps * norm(setting.problem.x_star) / distance)


def _pulled(setting: Setting) -> tuple[Any, float]:
    steps = (local_sgd(setting).local_steps - 1) * _step(setting)
    return _with_rounding(setting, steps * _first_order(setting))


def _size_of_optimum(setting: Setting) -> Any:
    return norm(setting.problem.x_star)


def _shorter(setting: Setting, divisor: int) -> Setting:
    method = replace(local_sgd(setting), step_sizes=Constant(_step(setting) / divisor))
    return replace(setting, algorithm=method)


eta = symbol("eta", "the step size", STEP, _step, positive=True)
n = symbol("n", "by how much the step size is divided", PURE, positive=True, integer=True)
v = symbol(
    "v",
    "||sum_k p_k H_k grad F_k(w*)||, which determines the shift of the limit to first order in eta",
    CURVATURE * GRADIENT,
    _first_order,
    nonnegative=True,
)
V = symbol(
    "V",
    "sum_k p_k ||H_k^2 grad F_k(w*)||, which bounds the shift to second order",
    CURVATURE**2 * GRADIENT,
    _second_order,
    nonnegative=True,
)
D = symbol(
    "D", "||w~* - w*||, where w~* is the limit of FedAvg", LENGTH, _limit_distance, nonnegative=True
)
W = symbol("W", "||w*||", LENGTH, _size_of_optimum, nonnegative=True)


def setting_at(
    *,
    condition: float = 4.0,
    spread: float = 1.0,
    local_steps: float = 5,
    step: float = 0.005,
    first_weight: float = 0.25,
    sigma: float = 0.0,
) -> Setting:
    """Return four clients in the plane with L = 1 and nonzero w*; ``step`` is eta L."""
    p = (first_weight, *[(1 - first_weight) / 3] * 3)
    problem = clients_in_the_plane(condition, spread, sigma, p=p)
    method = LocalSgd(Constant(step), int(local_steps), p)
    return Setting(method, problem, UniformSubset(4, 4), 10 * int(local_steps), problem.x_star)


def _safe(*, share: float, **numbers: float) -> Setting:
    """Return a setting whose step is a share of the longest that the explicit bound allows."""
    setting = setting_at(**numbers)
    second = (local_sgd(setting).local_steps - 2) * _second_order(setting)
    longest = 1.5 * _first_order(setting) / max(second, _first_order(setting))
    return setting_at(**numbers, step=share * min(longest, 1.0))


_SMALL = "Theorem 4: small enough"
_HYPOTHESES = (
    Hypothesis("full batch", sp.Eq(S, 0), "Theorem 4"),
    Hypothesis("more than one local step", sp.Gt(E, 1), "Theorem 4"),
    EVERYBODY,
    Hypothesis(
        "the shift does not cancel to first order", sp.Gt(v, 0), "Theorem 4: a constructed problem"
    ),
    Hypothesis("small steps", as_printed(lambda: sp.Le(eta, 1 / L)), _SMALL),
    Hypothesis(
        "first order outweighs second order",
        as_printed(lambda: sp.Le(eta * (E - 2) * V, sp.Rational(3, 2) * v)),
        _SMALL,
    ),
)
_REGIMES = {
    "usual": Regime("kappa = 4, E = 5, eta = 1/(200 L)", setting_at),
    "two local steps": Regime("E = 2, eta = 1/L", partial(setting_at, local_steps=2, step=1.0)),
    "many local steps": Regime(
        "E = 50, eta = 1/(2000 L)", partial(setting_at, local_steps=50, step=0.0005)
    ),
    "ill conditioned": Regime(
        "kappa = 100, eta = 1/(2000 L)", partial(setting_at, condition=100.0, step=0.0005)
    ),
    "nearly equal curvatures": Regime(
        "kappa = 1.01, eta = 3/(10^4 L)", partial(setting_at, condition=1.01, step=0.0003)
    ),
    "uneven weights": Regime(
        "p_1 = 0.9, eta = 1/(50 L)", partial(setting_at, first_weight=0.9, step=0.02)
    ),
    "one local step": Regime("E = 1: gradient descent", partial(setting_at, local_steps=1)),
    "equal curvatures": Regime(
        "kappa = 1, so that the limit does not shift", partial(setting_at, condition=1.0)
    ),
    "noisy gradients": Regime("sigma = 1", partial(setting_at, sigma=1.0)),
    "steps too long": Regime("eta = 1/(20 L)", partial(setting_at, step=0.05)),
}


_LAST_STEP = Derivation(
    (
        Step(
            "two orders in eta",
            "half of the first-order term remains",
            Implied(
                given=(
                    sp.Le(
                        eta * E * (E - 1) / 2 * v - eta**2 * E * (E - 1) * (E - 2) / 6 * V,
                        E * L * D,
                    ),
                    sp.Le(eta * (E - 2) * V, sp.Rational(3, 2) * v),
                ),
                claimed=sp.Le((E - 1) * eta * v, 4 * L * D),
                domain=(sp.Ge(E, 1, evaluate=False),),
                multipliers=(4 / E, sp.Rational(2, 3) * eta * (E - 1)),
            ),
        ),
    ),
    (
        "The limit: sum_k p_k P_k H_k (w~* - w*) = -sum_k p_k P_k grad F_k(w*).",
        "P_k = E I - eta E(E-1)/2 H_k + R_k with 0 <= R_k <= eta^2 E(E-1)(E-2)/6 H_k^2, and "
        "P_k H_k <= E H_k, for eta L <= 1.",
    ),
)

EXPLICIT = PointClaim(
    id="fedavg-li/4",
    reading="with constants",
    title="With constant steps, FedAvg does not reach w*: a lower bound on the distance",
    source=f"{PAPER}, Theorem 4",
    quantity=PointQuantity(_pulled, "(E-1) eta v", GRADIENT),
    bound=as_printed(lambda: 4 * L * D),
    hypotheses=_HYPOTHESES,
    regimes=_REGIMES,
    family=Family(
        _safe,
        (
            Parameter("condition", 1.01, 1000, 4, "kappa, with L = 1"),
            Parameter("local_steps", 2, 50, 5, "E", whole=True),
            Parameter("spread", 0.01, 100, 1, "distance between the clients' optima"),
            Parameter("first_weight", 0.01, 0.99, 0.25, "p_1", logarithmic=False),
            Parameter("share", 0.001, 0.99, 0.99, "eta over the largest that is small enough"),
        ),
    ),
    derivation=_LAST_STEP,
    note=(
        "The constants are our own, because our copy of the text lacks those of the paper. For eta "
        "L <= 1, we have P_k = E I - eta E(E-1)/2 H_k + R_k with 0 <= R_k <= eta^2 E(E-1)(E-2)/6 "
        "H_k^2, and sum_k p_k P_k H_k <= E L. Therefore ||w~* - w*|| >= (E-1) eta/(2 L) (v - eta "
        "(E-2) V/3), and the bracket is at least v/2 if eta (E-2) V <= 3 v/2."
    ),
)

PRINTED = RateClaim(
    id="fedavg-li/4",
    title="With constant steps, FedAvg does not reach w*: Omega((E-1) eta) ||w*||",
    source=f"{PAPER}, Theorem 4",
    theorem=replace(
        EXPLICIT,
        reading="printed",
        derivation=None,
        quantity=PointQuantity(
            _relative,
            "(E-1) eta ||w*|| / ||w~* - w*||",
            STEP,
            r"\frac{(E-1)\,\eta\,\|w^*\|}{\|\tilde w^*-w^*\|}",
        ),
        bound=as_printed(lambda: 4 * L * W / v),
        regimes={},
        family=None,
    ),
    axes=(RateAxis(n, sp.Integer(1), lambda setting: _DIVISORS, _shorter),),
    regimes=_REGIMES,
    note=(
        "The distance is at least of order (E-1) eta ||w*||: the ratio of the two stays bounded "
        "as eta is replaced by eta/n. The bound shown, and the meaning of 'small enough', are "
        "those of the reading 'with constants'. Our copy of the text lacks the problem of the "
        "theorem, a ridge regression; other quadratic clients with v > 0 take its place. How "
        "small eta must be depends on E. With one eta for every E the claim fails, because w~* "
        "tends to a mean of the clients' minimisers and (E-1) eta to infinity."
    ),
)


STATEMENTS: tuple[Statement, ...] = (
    THEOREM_1,
    _from_w_1(THEOREM_1, _everybody, drawn=False),
    THEOREM_2,
    _from_w_1(THEOREM_2, _by_p, drawn=True),
    THEOREM_3,
    _from_w_1(THEOREM_3, _evenly, drawn=True),
    DISTANCE,
    SCALED_GRADIENTS,
    SCALED_GRADIENTS_DERIVED,
    PRINTED,
    EXPLICIT,
)
