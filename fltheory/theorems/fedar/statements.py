"""FedAR: what its Theorems 1 and 2 claim, as far as the text at hand says it.

Jiang, Zhou, Zhang and Chakraborty, "FedAR: Addressing Client Unavailability in Federated Learning
with Local Update Approximation and Rectification" (2024).

What the text does not give
---------------------------
Its formulas are lost: psi (6), both bounds with their constants, step sizes and tau_max(t). What
is left are the assumptions in words, the orders O(1/T) and O(1/sqrt(T)), and what Remarks 1 and 2
say of each dependence. So no bound is compared with a truth here; orders and directions are.
psi is our own `CappedLinear`, step sizes are our own: 3/(mu K (t + 4)) and 1/(2 L K sqrt(T)). That
psi, its cap, tau_max and the steps are those of (6) and of the theorems is a hypothesis which
cannot be evaluated, so that nothing printed holds or is refuted here: its verdicts are UNDECIDED,
and show what our psi does. For our own, see the derived readings.

Truth is exact along known cycles. On quadratics only, which are strongly convex: Theorem 2 is about
nonconvex losses but assumes Assumptions 1 to 7, strong convexity among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import sympy as sp

from fltheory.algorithms.shared.inactivity_weights import CappedLinear, latest
from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.direction import DirectionClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.shared.rate_axis import RateAxis
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.exact_or_float import is_exact
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, PointQuantity, RoundRange
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.units import LOSS, PURE
from fltheory.participation.inactivity import chance_of_longer_absence
from fltheory.theorems.fedar import regimes as regimes
from fltheory.theorems.fedar.regimes import Instance, staggered
from fltheory.theorems.fedar.setting import (
    F_0,
    C,
    L,
    N,
    T,
    chance,
    fedar_of,
    growth,
    known_beforehand,
    longest,
    mu,
    nu,
    nu_of_paper,
    psi_of_paper,
    psi_taken,
    sigma,
    spread,
    tau_max,
    tau_mean,
    unequal,
)

_PAPER = "FedAR (arXiv 2407.19103)"
_LONG = (1, 10, 100, 300, 1000)
_LONGER = (3, 30, 300, 1000, 3000)
_HALF = sp.Rational(1, 2)

_SMOOTH = Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Assumption 1")
_CONVEX = Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Assumption 2")
_NOISE = Hypothesis("bounded variance", sp.Lt(sigma, sp.oo, evaluate=False), "Assumption 3")
_INACTIVITY = Hypothesis(
    "bounded inactivity", sp.Lt(tau_max, sp.oo, evaluate=False), "Assumption 7"
)
_EQUAL = Hypothesis(
    "equal long-run weights, or one minimiser for all",
    as_printed(lambda: sp.Eq(unequal * spread, 0, evaluate=False)),
    "the fixed point of (7)",
)

_LOST = Hypothesis(
    "psi, its cap, tau_max and the step sizes as in the paper (the text at hand lacks the "
    "formulas)",
    sp.Eq(psi_taken, psi_of_paper, evaluate=False),
    "(6), Theorems 1 and 2",
    is_known=False,
)

_BOUND_1 = Theorem(
    id="fedar/1",
    reading="printed",
    title="FedAR on strongly convex losses",
    source=f"{_PAPER}, Theorem 1 and Remark 1",
    quantity=BoundedQuantity(
        "excess_loss",
        "last",
        RoundRange(0, 0),
        "E[f(w_T) - f*]",
        r"\mathbb E[f(w_T)-f^*]",
        LOSS,
    ),
    bound=C / T,
    hypotheses=(_SMOOTH, _CONVEX, _NOISE, _LOST),
    domain=known_beforehand,
)
_BOUND_2 = replace(
    _BOUND_1,
    id="fedar/2",
    title="FedAR on smooth losses",
    source=f"{_PAPER}, Theorem 2 and Remark 2",
    quantity=BoundedQuantity(
        "squared_gradient",
        "mean",
        RoundRange(0, -1),
        "1/T sum_{t<T} E||grad f(w_t)||^2",
        r"\frac1T\sum_{t<T}\mathbb E\|\nabla f(w_t)\|^2",
    ),
    bound=C / sp.sqrt(T),
    hypotheses=(_SMOOTH, _CONVEX, _NOISE, _INACTIVITY, _LOST),
)


def _with_rounds(setting: Setting, rounds: int) -> Setting:
    return Setting(setting.algorithm, setting.problem, setting.participation, rounds, setting.x0)


def _with_rounds_and_step(setting: Setting, rounds: int) -> Setting:
    """Scale the step with 1/sqrt(T)."""
    fedar = fedar_of(setting)
    lr = fedar.client_lr * math.sqrt(setting.rounds / rounds)
    return Setting(
        replace(fedar, client_lr=lr),
        setting.problem,
        setting.participation,
        rounds,
        setting.x0,
    )


THEOREM_1 = RateClaim(
    id="fedar/1",
    reading="printed",
    title="FedAR on strongly convex losses: O(1/T)",
    source=f"{_PAPER}, Theorem 1 and Remark 1",
    theorem=_BOUND_1,
    axes=(RateAxis(T, 1 / T, lambda setting: _LONG, _with_rounds),),
    regimes=regimes.THEOREM_1,
    note=(
        "The text at hand gives the order and Assumptions 1 to 3, but not the bound, its "
        "constants, psi or the step sizes; psi and the step sizes here are our own choice. Nor "
        "does it say which quantity has this order; the excess loss of the last model is taken, "
        "which is of the order of the squared distance."
    ),
)

THEOREM_1_DERIVED = replace(
    THEOREM_1,
    reading="derived",
    theorem=replace(_BOUND_1, reading="derived", hypotheses=(_SMOOTH, _CONVEX, _NOISE, _EQUAL)),
    note=(
        "The text at hand has no proof; this is what its update (7) supports. As the step sizes "
        "vanish the model follows -sum_i weight_i grad f_i, where weight_i is the mean of "
        "psi_{i,t}/N_t. This is zero at w* only if all weights are equal: psi = 1 without "
        "cut-off, or clients of equal inactivity."
    ),
)

THEOREM_2 = RateClaim(
    id="fedar/2",
    reading="printed",
    title="FedAR on smooth losses: O(1/sqrt(T))",
    source=f"{_PAPER}, Theorem 2 and Remark 2",
    theorem=_BOUND_2,
    axes=(RateAxis(T, T**-_HALF, lambda setting: _LONGER, _with_rounds_and_step),),
    regimes=regimes.THEOREM_2,
    note=(
        "To the letter, Assumptions 1 to 7 hold; as Assumption 2 is strong convexity, no "
        "nonconvex loss meets them. The text at hand gives the order, but not the bound, its "
        "constants, psi or the step size. The mean squared gradient is taken, as usual for "
        "nonconvex losses."
    ),
)

THEOREM_2_DERIVED = replace(
    THEOREM_2,
    reading="derived",
    theorem=replace(_BOUND_2, reading="derived", hypotheses=(_SMOOTH, _NOISE, _INACTIVITY, _EQUAL)),
    note=(
        "Without Assumption 2, and with equal long-run weights, as in the derived reading of "
        "Theorem 1. The text at hand has no proof."
    ),
)


def _with_period(setting: Setting, period: int) -> Setting:
    fedar_of(setting)  # refuses other algorithms, of which the remarks do not speak
    return Instance(staggered(period)).convex(setting.rounds)


def _with_gap(setting: Setting, gap: int) -> Setting:
    """Absences of ``gap`` rounds, as many as keep the mean of tau at 1/2."""
    fedar_of(setting)
    period = gap * (gap + 1)
    return Instance(staggered(period, active=period - gap)).convex(setting.rounds)


def _with_clients(setting: Setting, count: int) -> Setting:
    fedar_of(setting)
    optima = tuple(-3.0 if i % 2 else 3.0 for i in range(count))
    cycles = staggered(4, n_clients=count)
    return Instance(cycles, optima=optima, sigma=setting.problem.sigma).convex(setting.rounds)


def _with_growth(setting: Setting, thousandths: int) -> Setting:
    fedar = replace(fedar_of(setting), weight=CappedLinear(thousandths / 1000, 2.0))
    algorithm = replace(setting.algorithm, algorithm=fedar)  # type: ignore[type-var]
    return Setting(algorithm, setting.problem, setting.participation, setting.rounds, setting.x0)


def _with_distance(setting: Setting, times: int) -> Setting:
    fedar_of(setting)
    x_star = setting.problem.x_star
    x0 = x_star + times * (setting.x0 - x_star)
    return Setting(setting.algorithm, setting.problem, setting.participation, setting.rounds, x0)


def _with_noise(setting: Setting, times: int) -> Setting:
    fedar_of(setting)
    problem = replace(setting.problem, sigma=times / 10)  # type: ignore[type-var]
    return Setting(setting.algorithm, problem, setting.participation, setting.rounds, setting.x0)


def _grid(*values: int) -> Callable[[Setting], tuple[int, ...]]:
    return lambda setting: values


AVERAGE_INACTIVITY = DirectionClaim(
    id="fedar/average-inactivity",
    reading="printed",
    title="The error grows with the average inactivity",
    source=f"{_PAPER}, Remark 1 and Remark 2",
    theorem=_BOUND_1,
    axes=(RateAxis(sp.Symbol("P"), tau_mean, _grid(1, 2, 4, 8), _with_period),),
    regimes=regimes.IN_ROTATION,
    kind=StatementKind.REMARK,
    note=(
        "The remarks say it only in words: the higher, the worse. They read it off the bound, "
        "which the text at hand lacks; here it is tested on the error after 150 rounds. Four "
        "clients are each available once in P rounds, one after the other."
    ),
)

MAXIMUM_INACTIVITY = DirectionClaim(
    id="fedar/maximum-inactivity",
    reading="printed",
    title="The error grows with the maximum inactivity",
    source=f"{_PAPER}, Remark 1",
    theorem=_BOUND_1,
    axes=(RateAxis(tau_max, tau_max, _grid(1, 2, 4, 8), _with_gap),),
    regimes=regimes.IN_ROTATION,
    kind=StatementKind.REMARK,
    note=(
        "The remark says it in words only: long absences of most clients do harm. Here the "
        "average inactivity is kept fixed: absences of tau_max rounds in cycles of tau_max "
        "(tau_max + 1)."
    ),
)

NUMBER_OF_CLIENTS = DirectionClaim(
    id="fedar/number-of-clients",
    reading="printed",
    title="The error grows with the number of clients",
    source=f"{_PAPER}, Remark 2",
    theorem=_BOUND_1,
    axes=(RateAxis(N, N, _grid(2, 4, 8, 16), _with_clients),),
    regimes=regimes.OF_CLIENTS,
    kind=StatementKind.REMARK,
    note=(
        "The remark says it only in words: with more clients, more rounds are needed. It reads "
        "this off the bound, which the text at hand lacks; the error itself goes the other way "
        "here. The clients differ only in which of two optima they have, and each is available "
        "every fourth round; the error is taken after 150 rounds."
    ),
)

WEIGHT = DirectionClaim(
    id="fedar/weight",
    reading="printed",
    title="The error grows with psi",
    source=f"{_PAPER}, Remark 1",
    theorem=_BOUND_1,
    axes=(RateAxis(growth, growth, _grid(0, 10, 50, 200), _with_growth),),
    regimes=regimes.OF_PSI,
    kind=StatementKind.REMARK,
    note=(
        "The remark says it in words only: too large a psi lets inactive clients dominate. It "
        "calls the effect of psi otherwise negligible, which is not so for our psi (see fedar/1). "
        "The growth of psi is in thousandths a round."
    ),
)


INITIAL_ERROR = DirectionClaim(
    id="fedar/initial-error",
    reading="printed",
    title="The mean squared gradient grows with the initial error",
    source=f"{_PAPER}, Remark 2",
    theorem=_BOUND_2,
    axes=(RateAxis(F_0, F_0, _grid(1, 2, 4, 8), _with_distance),),
    regimes=regimes.THEOREM_2,
    kind=StatementKind.REMARK,
    note=(
        "The remark names what 'mainly influences' the dominant term of a bound that the text at "
        "hand lacks; here it is tested on the mean squared gradient, with starts 1, 2, 4 and 8 "
        "times as far from w*. That the effect of psi is 'not significant' in comparison gives no "
        "number to check, and that a critical tau_max 'must exist' belongs to (6), which is lost."
    ),
)

VARIANCE = replace(
    INITIAL_ERROR,
    id="fedar/variance",
    title="The mean squared gradient grows with the variance bound",
    axes=(RateAxis(sigma, sigma, _grid(1, 2, 4, 8), _with_noise),),
    note=(
        "Named beside the initial error. The clients' gradient noise is 0.1, 0.2, 0.4 and 0.8, all "
        "else the same."
    ),
)


def _chance_of_failure(setting: Setting) -> tuple[float, float]:
    limits = np.asarray(latest(fedar_of(setting).cutoff, np.arange(1.0, setting.rounds + 1)))
    value = chance_of_longer_absence(setting.participation, limits, setting.rounds)
    if is_exact(setting.x0):
        return value, 0.0
    return float(value), 4 * setting.rounds**2 * float(np.finfo(np.float64).eps) * value


def _of_fedar(setting: Setting) -> Setting:
    fedar_of(setting)
    return setting


ASSUMPTION_7 = PointClaim(
    id="fedar/assumption-7",
    reading="printed",
    title="Bounded inactivity holds, with probability one",
    source=f"{_PAPER}, Assumption 7, and Section 6.1 for availability",
    quantity=PointQuantity(
        _chance_of_failure,
        "P(tau_{i,t} > nu for some client i and round t <= T)",
        PURE,
        certified="chance_of_absence",
    ),
    bound=sp.Integer(0),
    hypotheses=(
        Hypothesis("a finite bound", sp.Lt(nu, sp.oo, evaluate=False), "Assumption 7"),
        Hypothesis(
            "what is bounded by what, as in the paper (the text at hand lacks the formula)",
            sp.Le(nu, nu_of_paper, evaluate=False),
            "Assumption 7",
            is_known=False,
        ),
    ),
    domain=_of_fedar,
    symbols=(N, T, chance),
    regimes=regimes.ASSUMPTION_7,
    kind=StatementKind.ASSUMPTION,
    note=(
        "The paper assumes this rather than claims it, and its formula is lost: nothing holds or "
        "is refuted. See the reading 'bounded absence'."
    ),
)

ASSUMPTION_7_BOUNDED = replace(
    ASSUMPTION_7,
    reading="bounded absence",
    hypotheses=ASSUMPTION_7.hypotheses[:1],
    note=(
        "Our own wording of what is lost: no absence exceeds nu. The check is whether the paper's "
        "own availability satisfies it. The paper bounds inactivity in its theory and draws "
        "availability independently in its experiments; it does not say that the two agree. They "
        "do not: for p < 1, and for any bound, the probability that it is exceeded tends to 1 as T "
        "grows."
    ),
)

ASSUMPTION_7_DERIVED = replace(
    ASSUMPTION_7_BOUNDED,
    reading="derived",
    hypotheses=(
        *ASSUMPTION_7_BOUNDED.hypotheses,
        Hypothesis("a schedule, not chance", sp.Eq(chance, 0, evaluate=False), "Assumption 7"),
        Hypothesis(
            "a bound that the schedule keeps", sp.Le(longest, nu, evaluate=False), "Assumption 7"
        ),
    ),
    note=(
        "Every run keeps within a bound if absences are bounded by construction: with cycles, "
        "traces, or all clients in every round. With independent clients only a bound that grows "
        "with t can be kept for ever, and only with a probability below one."
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    THEOREM_1,
    THEOREM_1_DERIVED,
    THEOREM_2,
    THEOREM_2_DERIVED,
    AVERAGE_INACTIVITY,
    MAXIMUM_INACTIVITY,
    NUMBER_OF_CLIENTS,
    WEIGHT,
    INITIAL_ERROR,
    VARIANCE,
    ASSUMPTION_7,
    replace(
        ASSUMPTION_7_BOUNDED,
        refutations=(
            Refutation(
                "Section 6.1 draws availability independently in every round, so absences can be "
                "arbitrarily long, but Theorem 2 assumes a bound on them.",
                Weight.MISSING_HYPOTHESIS,
                "scheduled availability in place of random availability",
                "derived",
                (
                    "p = 0.1, 100 rounds in a row allowed",
                    "p = 0.1, 50 rounds in a row allowed",
                    "p = 0.5, 10 rounds in a row allowed",
                    "Markov",
                ),
                ("fedar-assumption-7.json",),
                answer="It is an assumption of the theory only; the experiments go beyond it.",
            ),
        ),
    ),
    ASSUMPTION_7_DERIVED,
)
