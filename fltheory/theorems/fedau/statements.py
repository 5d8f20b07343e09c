"""FedAU: Theorems 1 and 2 and Corollary 4.

Wang and Ji, "A Lightweight Method for Tackling Unknown Participation Statistics in Federated
Averaging" (ICLR 2024). Our text consists of the author's slides, which state the theorems and
sketch their proofs. Lemma B.3.3 and the proof of Theorem 3 are taken from restatements.

Conventions
-----------
``x_0`` is the model before the first round and ``omega_t`` the weights of round t = 0 .. T-1.
Requirements on random weights "for all t" (Q, Option 1 of Assumption 5) must be met for every
possible outcome. The printed orders leave their constants open. The derived constants follow from
the general descent lemma, Lemma B.3.3, with phi_n = 1/N for Theorem 2 and phi_n proportional to
omega_n p_n for Theorem 1. docs/fedau.md derives each constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import sympy as sp

from fltheory.algorithms import FedAU, WeightedFedAvg
from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import RateAxis, three_decades
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import written_in
from fltheory.engines import Setting, stationary
from fltheory.engines.enclosure.enclosed import enclosed_limits
from fltheory.exact_or_float import is_exact, number
from fltheory.fedau import corollary_cutoff
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, PointQuantity, RoundRange
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import GRADIENT, LENGTH, LOSS, PURE
from fltheory.problems.base import gradients_at
from fltheory.theorems.fedau import regimes
from fltheory.theorems.fedau.setting import (
    F_0,
    FedAUSetting,
    G,
    G_in_run,
    I_steps,
    L,
    N,
    P,
    Psi_G,
    Q,
    Q_of_constant,
    R_c,
    T,
    W,
    delta,
    delta_h,
    drift_term,
    e_max,
    eta,
    fedau_of,
    gamma,
    noise_term,
    of_fedau,
    s,
    sigma,
    start_term,
    weight_term,
    with_constant_weights,
)
from fltheory.theorems.fedau.weights import INDEPENDENT, PAPER
from fltheory.validation import FloatArray

# ------------------------------------------------------------ the general descent lemma


def _first_weights(setting: Setting) -> FloatArray:
    """Return omega_0^n: 1 for FedAU, or the constant weights."""
    of = FedAUSetting(setting)
    return of.p / of.p if isinstance(of.algorithm, FedAU) else of.constant_weights


def _weight_error(setting: Setting) -> Any:
    p, n_clients = FedAUSetting(setting).p, setting.problem.n_clients
    return number(((p * _first_weights(setting) - 1) ** 2).sum()) / n_clients**2


def _weight_square(setting: Setting) -> Any:
    return number((FedAUSetting(setting).p * _first_weights(setting) ** 2).sum())


def _squared_gradient(setting: Setting) -> Any:
    gradients = gradients_at(setting.problem, setting.x0)
    gradient = (gradients * setting.problem.alpha[:, None]).sum(axis=0)
    return number((gradient * gradient).sum())


E_w = symbol("E_w", "sum_n (p_n omega_t^n/N - 1/N)^2", PURE, _weight_error, nonnegative=True)
S_w = symbol("S_w", "sum_n p_n (omega_t^n)^2", PURE, _weight_square, positive=True)
F_t = symbol(
    "F_t",
    "f(x_t) - f*, where x_t is the model before the round",
    LOSS,
    lambda s: number(s.problem.excess_loss(s.x0)),
    nonnegative=True,
)
g_2 = symbol("g_2", "||grad f(x_t)||^2", GRADIENT**2, _squared_gradient, nonnegative=True)


def _bound_of_descent() -> sp.Expr:
    """Return the right-hand side minus f*, with phi_n = 1/N."""
    weighted = 3 * gamma * eta * I_steps * N / 2 * E_w
    drift = 5 * gamma**3 * eta * L**2 * I_steps**2 / 2
    square = gamma**2 * eta**2 * L * I_steps / N**2 * S_w
    slope = (
        sp.Rational(81, 16) * N * E_w
        + 15 * L**2 * I_steps**2 * gamma**2
        + 27 * gamma * eta * L * I_steps / (8 * N**2) * S_w
        - sp.Rational(1, 4)
    )
    return (
        F_t
        + weighted * (15 * L**2 * I_steps * gamma**2 * sigma**2 + 27 * delta**2 / 8)
        + drift * (sigma**2 + 6 * I_steps * delta**2)
        + square * (17 * sigma**2 / 16 + 27 * I_steps * delta**2 / 8)
        + gamma * eta * I_steps * slope * g_2
    )


DESCENT = Theorem(
    id="fedau/lemma-b-3-3",
    title="What one round of weighted averaging does to the loss: the general descent lemma",
    source=f"{PAPER}, Lemma B.3.3, by a restatement",
    quantity=BoundedQuantity(
        "excess_loss",
        "last",
        RoundRange(0, 0),
        "E f(x_{t+1}) - f*",
        r"\mathbb E_t[f(x_{t+1})]-f^*",
        LOSS,
    ),
    bound=as_printed(_bound_of_descent),
    hypotheses=(
        INDEPENDENT,
        Hypothesis("bounded divergence", sp.Lt(delta, sp.oo, evaluate=False), "Assumption 3"),
        Hypothesis(
            "small local steps",
            as_printed(lambda: sp.Le(gamma, 1 / (4 * sp.sqrt(15) * L * I_steps))),
            "Lemma B.3.3",
        ),
        Hypothesis(
            "small server steps",
            as_printed(lambda: sp.Le(gamma * eta, 1 / (4 * L * I_steps))),
            "Lemma B.3.3 itself",
        ),
        Hypothesis("one round", sp.Eq(T, 1), "Lemma B.3.3 is about one round"),
    ),
    regimes=regimes.DESCENT,
    kind=StatementKind.LEMMA,
    note=(
        "The lemma is checked with phi_n = 1/N, as for Theorem 2, and with the weights of the "
        "first round: 1 for FedAU, or constant weights, which may have any size. f* is subtracted "
        "from both sides. Our copy of the text is a restatement with all constants. Other phi_n "
        "amount to other target weights."
    ),
)


# ------------------------------------------------------------ the theorems

# A product of step sizes that is meant to equal a limit must not exceed it by rounding.
_BELOW = 1 - 1e-14

_GRADIENT_SQUARED = LOSS**2 / LENGTH**2
_LEMMA = "Lemma B.3.3"


def _gradient_in_the_limit(setting: Setting) -> tuple[float, float]:
    """Return the limit of ``E||grad h(x_t)||^2``, or of its mean over a cycle if there is one."""
    of = fedau_of(setting)
    if is_exact(setting.x0):
        limits = enclosed_limits(of.algorithm, of.weighted_problem, of.participation_with_limit)
        return limits["squared_gradient"], 0.0
    limit = stationary(
        Setting(
            of.algorithm,
            of.weighted_problem,
            of.participation_with_limit,
            1,
            of.weighted_problem.x_star,
        )
    )
    return limit.squared_gradient, limit.rounding_error.get("squared_gradient", 0.0)


def _slower(setting: Setting, divisor: int) -> Setting:
    algorithm = setting.algorithm
    if not isinstance(algorithm, FedAU | WeightedFedAvg):
        raise ValueError(f"algorithm must be FedAU or WeightedFedAvg, got {algorithm!r}")
    slower = replace(algorithm, client_lr=algorithm.client_lr / divisor)
    return replace(setting, algorithm=slower)


_DIVISORS = (1, 10, 100, 316, 1000)
_DIVERGENCE_H = Hypothesis(
    "bounded divergence", sp.Lt(delta_h, sp.oo, evaluate=False), "Assumption 3"
)
_LOCAL_STEP = Hypothesis(
    "small local steps",
    as_printed(lambda: sp.Le(gamma, 1 / (4 * sp.sqrt(15) * L * I_steps))),
    "Theorem 2",
)
_LOCAL_STEP_LEMMA = replace(_LOCAL_STEP, source=_LEMMA)

THEOREM_1 = PointClaim(
    id="fedau/1",
    reading="derived",
    title="Constant weights: which objective the run minimises in the limit",
    source=f"{PAPER}, Theorem 1 (informal)",
    quantity=PointQuantity(
        _gradient_in_the_limit,
        "lim E||grad h(x_t)||^2, h = 1/P sum omega_n p_n F_n",
        _GRADIENT_SQUARED,
    ),
    bound=as_printed(
        lambda: (
            40 * gamma**2 * L**2 * I_steps * (sigma**2 + 6 * I_steps * delta_h**2)
            + gamma * eta * L * Q / P * (17 * sigma**2 + 54 * I_steps * delta_h**2)
        )
    ),
    hypotheses=(
        INDEPENDENT,
        _DIVERGENCE_H,
        _LOCAL_STEP_LEMMA,
        Hypothesis(
            "small server steps",
            as_printed(
                lambda: sp.Le(
                    gamma * eta,
                    sp.Min(N / (4 * L * I_steps * P), P / (27 * L * I_steps * Q), evaluate=False),
                )
            ),
            f"{_LEMMA} with phi_n = omega_n p_n/P",
        ),
    ),
    domain=with_constant_weights,
    read_as={Q: Q_of_constant},
    regimes=regimes.THEOREM_1,
    derivation=written_in("fltheory.theorems.fedau.proof", "THEOREM_1"),
    note=(
        "This is Lemma B.3.3 for h, averaged over T rounds as T tends to infinity. It has eta P/N "
        "as the server's step size and N omega_n/P as the weights, so that its weight error is "
        "zero. With cyclic availability, the limit is averaged over the rounds of a cycle."
    ),
)

THEOREM_1_PRINTED = RateClaim(
    id="fedau/1",
    title=THEOREM_1.title,
    source=THEOREM_1.source,
    theorem=replace(
        THEOREM_1, reading="printed", hypotheses=(INDEPENDENT, _DIVERGENCE_H), derivation=None
    ),
    axes=(RateAxis(s, gamma, lambda setting: _DIVISORS, _slower),),
    regimes=regimes.THEOREM_1_ORDER,
    note=(
        "The paper says informally that h is minimised with properly chosen learning rates. We "
        "read this as follows: with gamma/s in place of gamma, the limit of E||grad h||^2 "
        "vanishes as s grows, at the rate of the derived bound. That bound is the one shown."
    ),
)

_DIVERGENCE = Hypothesis("bounded divergence", sp.Lt(delta, sp.oo, evaluate=False), "Assumption 3")
_NEARLY_OPTIMAL = Hypothesis(
    "nearly optimal weights", sp.Le(e_max, sp.Rational(1, 81)), "Assumption 5, Option 1"
)
_BOUNDED = Hypothesis(
    "bounded global gradient", sp.Lt(G, sp.oo, evaluate=False), "Assumption 5, Option 2"
)
_EITHER = Hypothesis(
    "nearly optimal weights or bounded global gradient",
    sp.Lt(Psi_G, sp.oo, evaluate=False),
    "Assumption 5",
)


def _server_step(largest: int, variance: int, source: str) -> Hypothesis:
    limit = sp.Min(1 / (largest * L * I_steps), N / (variance * L * I_steps * Q), evaluate=False)
    return Hypothesis("small server steps", sp.Le(gamma * eta, limit), source)


def _order(psi: sp.Expr) -> sp.Expr:
    return (
        F_0 / (gamma * eta * I_steps * T)
        + (psi + delta**2 + gamma**2 * L**2 * I_steps * sigma**2) * W
        + gamma * eta * L * Q * (I_steps * delta**2 + sigma**2) / N
        + gamma**2 * L**2 * I_steps * (I_steps * delta**2 + sigma**2)
    )


def _terms(psi: sp.Expr) -> Mapping[sp.Symbol, sp.Expr]:
    """Return the terms of the bound from Lemma B.3.3, with -1/16 for the gradient's coefficient."""
    return {
        start_term: 16 * F_0 / (gamma * eta * I_steps * T),
        weight_term: (81 * (psi + delta**2) + 360 * gamma**2 * L**2 * I_steps * sigma**2) * W,
        noise_term: gamma * eta * L * Q / N * (17 * sigma**2 + 54 * I_steps * delta**2),
        drift_term: 40 * gamma**2 * L**2 * I_steps * (sigma**2 + 6 * I_steps * delta**2),
    }


_QUANTITY = BoundedQuantity(
    "squared_gradient",
    "mean",
    RoundRange(0, -1),
    "1/T sum_{t<T} E||grad f(x_t)||^2",
    r"\frac1T\sum_{t<T}\mathbb E\|\nabla f(x_t)\|^2",
    _GRADIENT_SQUARED,
)
_OPTION_1 = Theorem(
    id="fedau/2-option-1",
    title="FedAvg with nearly optimal weights: the mean squared gradient",
    source=f"{PAPER}, Theorem 2, Option 1 of Assumption 5",
    quantity=_QUANTITY,
    bound=as_printed(lambda: _order(sp.Integer(0))),
    hypotheses=(
        INDEPENDENT,
        _DIVERGENCE,
        _NEARLY_OPTIMAL,
        _LOCAL_STEP,
        _server_step(2, 27, "Theorem 2"),
    ),
    domain=of_fedau,
    derivation=written_in("fltheory.theorems.fedau.proof", "OPTION_1_PRINTED"),
)
_OPTION_2 = replace(
    _OPTION_1,
    id="fedau/2-option-2",
    title="FedAvg with any weights and bounded gradients: the mean squared gradient",
    source=f"{PAPER}, Theorem 2, Option 2 of Assumption 5",
    bound=as_printed(lambda: _order(G**2)),
    hypotheses=(
        INDEPENDENT,
        _DIVERGENCE,
        _BOUNDED,
        _LOCAL_STEP,
        _server_step(2, 27, "Theorem 2"),
    ),
    derivation=written_in("fltheory.theorems.fedau.proof", "OPTION_2_PRINTED"),
)

OPTION_1_DERIVED = replace(
    _OPTION_1,
    reading="derived",
    bound=as_printed(lambda: sp.Add(*_terms(sp.Integer(0)))),
    definitions=_terms(sp.Integer(0)),
    hypotheses=(
        INDEPENDENT,
        _DIVERGENCE,
        _NEARLY_OPTIMAL,
        _LOCAL_STEP_LEMMA,
        _server_step(4, 54, f"{_LEMMA}; N/(54LIQ) for a coefficient of -1/16"),
    ),
    regimes=regimes.OPTION_1,
    own_run=regimes.OWN_RUN,
    derivation=written_in("fltheory.theorems.fedau.proof", "OPTION_1_DERIVED"),
    note=(
        "This is Lemma B.3.3 with phi_n = 1/N, summed over t. At the printed limits on the step "
        "sizes, the coefficient of the gradient is 1/16 + 1/16 + 1/8 - 1/4 = 0, so the lemma does "
        "not bound the gradient. If the limit is theta N/(27LIQ) with theta < 1, the coefficient "
        "is -(1 - theta)/8, and theta = 1/2 gives the constants of this reading. The lemma also "
        "needs gamma eta <= 1/(4LI), half of the printed limit."
    ),
)
OPTION_2_DERIVED = replace(
    _OPTION_2,
    reading="derived",
    bound=as_printed(lambda: sp.Add(*_terms(G**2))),
    definitions=_terms(G**2),
    hypotheses=(
        INDEPENDENT,
        _DIVERGENCE,
        replace(_BOUNDED, source="Assumption 5, Option 2, at x_0 .. x_{T-1}"),
        _LOCAL_STEP_LEMMA,
        _server_step(4, 27, _LEMMA),
    ),
    read_as={G: G_in_run},
    regimes=regimes.OPTION_2,
    derivation=written_in("fltheory.theorems.fedau.proof", "OPTION_2_DERIVED"),
    note=(
        "This is Lemma B.3.3 with phi_n = 1/N, summed over t. The weight error is moved out of "
        "the gradient's coefficient, as a term of its own with the factor 81/16 G^2. The "
        "coefficient is then 1/16 + 1/8 - 1/4 = -1/16 at the printed limits. The lemma needs "
        "gamma eta <= 1/(4LI), half of the printed limit. The proof needs the bound G only at the "
        "models of the run."
    ),
)


def _longer(setting: Setting, rounds: int) -> Setting:
    """Change T, with gamma proportional to 1/sqrt(T) from a tenth of the setting's own T on."""
    of = fedau_of(setting)
    factor = math.sqrt(min(setting.rounds / rounds, 10))
    changed = replace(of.algorithm, client_lr=of.algorithm.client_lr * factor)
    return replace(setting, algorithm=changed, rounds=rounds)


_NOTE_OF_ORDERS = (
    "Checked to the letter: the order in parentheses with its constant left open, and gamma "
    "proportional to 1/sqrt(T). The order is tested over the last decade of T. The bound shown is "
    "the expression in parentheses."
)
OPTION_1_PRINTED = RateClaim(
    id="fedau/2-option-1",
    title=_OPTION_1.title,
    source=_OPTION_1.source,
    theorem=_OPTION_1,
    axes=(RateAxis(T, _OPTION_1.bound, three_decades, _longer),),
    regimes=regimes.OPTION_1_ORDER,
    note=_NOTE_OF_ORDERS,
    derivation=_OPTION_1.derivation,
)
OPTION_2_PRINTED = replace(
    OPTION_1_PRINTED,
    id="fedau/2-option-2",
    title=_OPTION_2.title,
    source=_OPTION_2.source,
    theorem=_OPTION_2,
    axes=(RateAxis(T, _OPTION_2.bound, three_decades, _longer),),
    regimes=regimes.OPTION_2_ORDER,
    derivation=_OPTION_2.derivation,
)


def _corollary_4(largest: int) -> Callable[[Setting, int], Setting]:
    def schedule(setting: Setting, rounds: int) -> Setting:
        """Return the setting with T, and with K, gamma and eta as in the corollary."""
        of = fedau_of(setting)
        problem, steps = of.problem, of.algorithm.local_steps
        smooth, n = problem.L * steps, problem.n_clients
        client_lr = min(1 / (smooth * math.sqrt(rounds)), 1 / (4 * math.sqrt(15) * smooth))
        cutoff = int(corollary_cutoff(of.p, rounds))
        square = fedau_of(_with(setting, rounds, client_lr, 1.0, cutoff)).largest_square
        spread = square * (steps * problem.sigma_G**2 + problem.sigma**2) * smooth * rounds
        excess = float(problem.excess_loss(setting.x0))
        product = min(
            math.sqrt(excess * n / spread) if spread > 0 else math.inf,
            1 / (largest * smooth),
            n / (27 * smooth * square),
        )
        return _with(setting, rounds, client_lr, _BELOW * product / client_lr, cutoff)

    return schedule


def _with(
    setting: Setting, rounds: int, client_lr: float, server_lr: float, cutoff: int
) -> Setting:
    """Return the same object for the same numbers, so that all readings share its truth."""
    steps = fedau_of(setting).algorithm.local_steps
    algorithm = FedAU(client_lr, steps, cutoff=cutoff, server_lr=server_lr)
    return replace(setting, algorithm=algorithm, rounds=rounds)


def _order_4(psi: sp.Expr, logarithms: sp.Expr, noise: sp.Expr) -> sp.Expr:
    return (
        sigma * sp.sqrt(L * F_0 * Q) / sp.sqrt(N * I_steps * T)
        + delta * sp.sqrt(L * F_0 * Q) / sp.sqrt(N * T)
        + (psi + delta**2 + sigma**2 / (I_steps * T)) * logarithms / T
        + (L * F_0 * (1 + Q / N) + delta**2 + noise) / T
    )


_LOGARITHMS = R_c * sp.log(T) ** 2
_ORDER_4 = _order_4(Psi_G, _LOGARITHMS, sigma**2 / T)
_ORDER_4_DERIVED = _order_4(G**2, _LOGARITHMS + 1, sigma**2 / I_steps)

_EITHER_OPTION = replace(
    _OPTION_2,
    id="fedau/2",
    title="FedAvg with weights from the past: the mean squared gradient",
    source=f"{PAPER}, Theorem 2",
    bound=as_printed(lambda: _order(Psi_G)),
    hypotheses=(INDEPENDENT, _DIVERGENCE, _EITHER, _LOCAL_STEP, _server_step(2, 27, "Theorem 2")),
)
_EITHER_DERIVED = replace(
    _EITHER_OPTION,
    reading="derived",
    bound=OPTION_2_DERIVED.bound,
    definitions=OPTION_2_DERIVED.definitions,
    hypotheses=OPTION_2_DERIVED.hypotheses,
    read_as={G: G_in_run},
)

COROLLARY_4 = RateClaim(
    id="fedau/corollary-4",
    title="FedAU with K = log_c T: O(1/sqrt(T)) up to logarithms",
    source=f"{PAPER}, Corollary 4",
    theorem=_EITHER_OPTION,
    axes=(RateAxis(T, _ORDER_4, three_decades, _corollary_4(2)),),
    regimes=regimes.COROLLARY_4,
    kind=StatementKind.COROLLARY,
    derivation=written_in("fltheory.theorems.fedau.proof", "COROLLARY_4_PRINTED"),
    note=(
        "Checked to the letter, with K rounded to the nearest positive integer. Q has its largest "
        "possible value, which grows like K^2. FedAU never meets Option 1 if K >= 2, there are at "
        "least three rounds and no client is always available. So the corollary rests on Option 2."
    ),
)
COROLLARY_4_DERIVED = replace(
    COROLLARY_4,
    reading="derived",
    theorem=_EITHER_DERIVED,
    regimes=regimes.COROLLARY_4_DERIVED,
    axes=(RateAxis(T, _ORDER_4_DERIVED, three_decades, _corollary_4(4)),),
    derivation=written_in("fltheory.theorems.fedau.proof", "COROLLARY_4_DERIVED"),
    note=(
        "This reading has gamma eta <= 1/(4LI), as Lemma B.3.3 requires, and gradients that are "
        "bounded during the run. The drift term, gamma^2 L^2 I (I delta^2 + sigma^2) at gamma = "
        "1/(LI sqrt(T)), is (delta^2 + sigma^2/I)/T; the paper prints sigma^2/T in place of "
        "sigma^2/I. Also, 1/T <= log_c(T)^2/T holds only from T = c on, so 1 is added to R log^2 "
        "T."
    ),
)


STATEMENTS: tuple[Statement, ...] = (
    THEOREM_1_PRINTED,
    THEOREM_1,
    OPTION_1_PRINTED,
    OPTION_1_DERIVED,
    OPTION_2_PRINTED,
    OPTION_2_DERIVED,
    COROLLARY_4,
    COROLLARY_4_DERIVED,
)
