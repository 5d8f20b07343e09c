"""SA-FL: Remarks 5 and 6, and the speed-up in m and K."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import FedAvg
from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import KnownDecay, RateAxis, with_rounds
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import Work, rational_trajectory
from fltheory.engines.trajectory import FIELDS
from fltheory.exact_or_float import largest
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.units import GRADIENT, LENGTH, PURE
from fltheory.participation import UniformSubset
from fltheory.participation.process import process_of
from fltheory.problems import QuadraticProblem
from fltheory.theorems.sa_fl import proof_rates, regimes
from fltheory.theorems.sa_fl.statements import (
    COROLLARY_1,
    COROLLARY_1_REPAIRED,
    COROLLARY_2_REPAIRED,
    FASTER_STEP,
    PLAIN_STEP,
    STEP_PRINTED_4,
    SUBMISSION_4,
    SUBMISSION_4_DERIVED,
    THEOREM_4,
    THEOREM_4_DERIVED,
    THEOREM_5,
    as_safari,
    safari_of,
)
from fltheory.theorems.sa_fl.symbols import (
    D_0,
    G_1,
    G_2,
    Delta_0,
    K,
    L,
    R,
    eta_s,
    m,
    mu,
    q,
    sigma_G,
    sigma_s,
)

# ------------------------------------------------------------ the speed-up
# The earlier version has ``eta_s = sqrt(mK/R)`` and ``q = Omega(1 - 1/(mK))``; the later one leaves
# mK out of the step and names that q as an alternative to low server noise. Appendix A.1 of the
# later version states what both must mean, ``R_s = O(R/(mK))``, and a condition under which the
# corollary is said to hold. Because Omega gives only a lower limit on q, shares of client rounds at
# both ends are tried.

_GRID = (1, 10, 100, 1000)
_HALF = sp.Rational(1, 2)
_ORDER = as_printed(lambda: (m * K * R) ** -_HALF)

Schedule = Callable[[Setting, int], Setting]


def _tiled(setting: Setting, participants: int) -> Setting:
    """Return the setting with more participants, and proportionally more clients of each kind.

    Raises
    ------
    ValueError
        If clients are not quadratic, or participants are not drawn uniformly.
    """
    problem, participation = setting.problem, setting.participation
    if not isinstance(problem, QuadraticProblem) or not isinstance(participation, UniformSubset):
        raise ValueError(
            "problem and participation must be a QuadraticProblem and a UniformSubset for a "
            f"speed-up in m, got {type(problem).__name__} and {participation!r}"
        )
    times, clients = participants // participation.size, problem.n_clients
    weights = problem.target_weights
    excluded = [
        one + copy * clients for copy in range(times) for one in sorted(participation.excluded)
    ]
    larger = replace(
        problem,
        hessians=np.tile(problem.client_hessians, (times, 1, 1)),
        optima=np.tile(problem.optima, (times, 1)),
        target_weights=None if weights is None else np.tile(weights, times) / times,
    )
    drawn = UniformSubset(times * clients, participants, excluded=tuple(excluded))
    return replace(setting, problem=larger, participation=drawn)


def _multiples_of_participants(setting: Setting) -> tuple[int, ...]:
    size = int(setting.participation.fixed_size or 1)
    return tuple(size * times for times in _GRID)


def _in_steps(setting: Setting, steps: int) -> Setting:
    return replace(setting, algorithm=replace(safari_of(setting), local_steps=steps))


def _product(setting: Setting) -> int:
    """Return mK."""
    return int(setting.participation.fixed_size or 1) * safari_of(setting).local_steps


def _coupled(setting: Setting, assist_lr: float, share: float) -> Setting:
    """Set eta_s, ``eta_c = 2 eta_s/K`` and q, with so few digits that decimals are exact."""
    algorithm = safari_of(setting)
    assist_lr = float(f"{assist_lr:.12g}")
    client_lr = float(f"{2 * assist_lr / algorithm.local_steps:.15g}")
    return replace(
        setting,
        algorithm=replace(algorithm, q=share, assist_lr=assist_lr, client_lr=client_lr),
    )


def _nearly_all(change: Schedule, *, faster: bool) -> Schedule:
    """Return a schedule with q = 1 - 1/(2mK), and eta_s = sqrt(mK/R) or 1/sqrt(R)."""

    def schedule(setting: Setting, value: int) -> Setting:
        changed = change(setting, value)
        product = _product(changed)
        step = math.sqrt((product if faster else 1) / changed.rounds)
        return _coupled(changed, step, 1 - 1 / (2 * product))

    return schedule


def _half(change: Schedule, *, faster: bool) -> Schedule:
    """Return a schedule with q = 1/2, and eta_s = 1/5 with R = 25 mK, or with R = 25."""

    def schedule(setting: Setting, value: int) -> Setting:
        changed = change(setting, value)
        rounds = 25 * (_product(changed) if faster else 1)
        return _coupled(replace(changed, rounds=rounds), 1 / 5, 1 / 2)

    return schedule


def _never_below(settings: Sequence[Setting]) -> KnownDecay | None:
    """State that the mean squared gradient does not decay if steps stay fixed as m or K grows.

    The last round is a server round with probability 1 - q, and adds noise that is independent of
    everything else: E||grad F(x_r)||^2 >= (1 - q) (mu eta_s sigma_s)^2 for r >= 1. And if all
    clients take part and share one Hessian, a round multiplies grad F by a matrix whose smallest
    eigenvalue is at least a = min(1 - eta_s L, (1 - eta_c L)^K), so E||grad F(x_r)||^2 >= a^(2r)
    ||grad F(x_0)||^2. As (1 - eta_c L)^K >= 1 - 2 eta_s L, neither bound depends on m or K.
    """
    first = settings[0]
    step, problem = safari_of(first).assist_lr, first.problem
    alike = all(
        safari_of(one).assist_lr == step
        and (one.problem.L, one.problem.mu) == (problem.L, problem.mu)
        and one.problem.server_sigma == problem.server_sigma
        and np.array_equal(one.x0, first.x0)
        for one in settings
    )
    if not alike or not 2 * step * problem.L < 1:
        return None
    noise = min(1 - safari_of(one).q for one in settings)
    noise = noise if len({safari_of(one).q for one in settings}) == 1 else 0.0
    least = noise * (problem.mu * step * problem.server_sigma) ** 2
    by = "a server's step adds"
    if first.rounds == settings[-1].rounds and all(_everybody_alike(one) for one in settings):
        factor = (1 - 2 * step * problem.L) ** 2
        kept = factor * (1 - factor**first.rounds) / (1 - factor) / first.rounds
        left = kept * float(np.sum(np.square(problem.gradient(first.x0[None])[0])))
        least, by = max((least, by), (left, "so many rounds leave"))
    return KnownDecay(0.0, f"stays above {least:.2g}, which {by}") if least > 0 else None


def _everybody_alike(setting: Setting) -> bool:
    """Return whether all clients take part and have the same Hessian."""
    return bool(np.all(setting.participation.marginals == 1)) and math.isfinite(
        setting.problem.sigma_G
    )


def _axes(*, faster: bool, hypotheses: tuple[Hypothesis, ...], tried: bool) -> tuple[RateAxis, ...]:
    """Return the claimed orders in R, m and K; if ``tried``, include schedules at q = 1/2."""
    in_rounds = RateAxis(
        R,
        R**-_HALF,
        COROLLARY_1.axes[0].grid,
        _nearly_all(with_rounds, faster=faster),
        hypotheses,
    )
    about = "q = 1/2, eta_s = 1/5"

    def speedup(variable: sp.Symbol, grid: Any, change: Schedule) -> RateAxis:
        return RateAxis(
            variable,
            _ORDER,
            grid,
            _nearly_all(change, faster=faster),
            hypotheses,
            families={about: _half(change, faster=faster)} if tried else {},
            known_decay=_never_below if tried else None,
        )

    return (
        in_rounds,
        speedup(m, _multiples_of_participants, _tiled),
        speedup(K, lambda setting: _GRID, _in_steps),
    )


_OF_ORDER_ONE = Hypothesis(
    "share of client rounds of order 1 - 1/(mK)",
    as_printed(lambda: sp.Ge(q, (1 - 1 / (m * K)) / 2)),
    "Corollary 1, constant 1/2",
    stated="q = Omega(1 - 1/(mK)), here at least half of it",
)
_NEARLY_ALL = Hypothesis(
    "few server rounds",
    as_printed(lambda: sp.Le(1 - q, 1 / (m * K))),
    "Appendix A.1, R_s = O(R/(mK)), constant 1",
)
_MANY_ROUNDS = Hypothesis(
    "rounds in proportion to (mK)^3",
    as_printed(lambda: sp.Le(m * K * L * eta_s, 1)),
    "the third term of the bound, R >= (mK)^3 L^2",
)

SUBMISSION_COROLLARY_1 = RateClaim(
    id="sa-fl-submission/corollary-1",
    title="SAFARI on nonconvex losses: O(1/sqrt(mKR)), a linear speed-up",
    source="SA-FL (earlier anonymous version), Corollary 1",
    theorem=SUBMISSION_4,
    derivation=proof_rates.speedup(SUBMISSION_4.bound, half=True),
    axes=_axes(faster=True, hypotheses=(FASTER_STEP, _OF_ORDER_ONE), tried=True),
    regimes=regimes.SPEEDUP,
    kind=StatementKind.COROLLARY,
    note=(
        "Checked to the letter: Omega is a lower limit, so q = 1/2 qualifies at any mK. The "
        "regimes have q = 1 - 1/(2mK); q = 1/2 is tried as well. With q = 1/2 the server's noise, "
        "L eta_s (1-q) sigma_s^2 in the bound, does not fall as mK grows. For equal clients and "
        "many rounds, sqrt(mKR) times the mean squared gradient tends to h (x_0^2 + 4 q sigma^2 + "
        "(1-q) mK sigma_s^2)/(2(1+q)), which grows in proportion to mK. The growth is visible at "
        "every R, with step sizes of 1/5 and R = 25 mK, which are tried here, and also with R = "
        "(mK)^3."
    ),
)

_LOWER_LIMIT = Refutation(
    "Omega(1 - 1/(mK)) allows q = 1/2. Then half of all rounds are server rounds, whose noise "
    "does not fall as mK grows. The bound's second term needs 1 - q = O(1/(mK)), as in Appendix "
    "A.1.",
    Weight.MISPRINT,
    "1 - q = O(1/(mK)) in place of q = Omega(1 - 1/(mK)), and R >= (mK)^3 L^2",
    "derived",
    ("at the level of the noise",),
    natural="at the level of the noise",
    answer="1 - q = O(1/(mK)) is meant, as in A.1, which has R_s = O(R/(mK)).",
)

SUBMISSION_COROLLARY_1_DERIVED = replace(
    SUBMISSION_COROLLARY_1,
    reading="derived",
    theorem=SUBMISSION_4_DERIVED,
    derivation=proof_rates.speedup(SUBMISSION_4_DERIVED.bound),
    axes=_axes(faster=True, hypotheses=(FASTER_STEP, _NEARLY_ALL, _MANY_ROUNDS), tried=False),
    note=(
        "This reading has 1 - q <= 1/(mK), which is from A.1, and the hypotheses that Theorem 4's "
        "proof needs. It also has R >= (mK)^3 L^2, as is usual for such rates, because the third "
        "term of the bound is of order mK/R. The condition on q then admits only clients with "
        "equal or nearly equal losses, because the gradients in it vanish as R grows, but 4 q "
        "sigma_G^2 does not."
    ),
)

SPEEDUP = replace(
    SUBMISSION_COROLLARY_1,
    id="sa-fl/corollary-1-speedup",
    title="SAFARI's linear speed-up in m and K with many client rounds",
    source="SA-FL (ICML 2024), Corollary 1, the alternative for q",
    theorem=THEOREM_4,
    derivation=proof_rates.speedup(THEOREM_4.bound, half=True, plain=True),
    axes=_axes(faster=False, hypotheses=(PLAIN_STEP, _OF_ORDER_ONE), tried=True),
    note=(
        "Checked to the letter: the second sentence of the corollary keeps eta_s = 1/sqrt(R). "
        "With that step size, the term 2 Delta_0/sqrt(R) in the bound does not depend on mK. Nor "
        "does the error that remains from the initial model after R rounds. The regimes have q = "
        "1 - 1/(2mK); q = 1/2 is tried as well, with R = 25."
    ),
)

SPEEDUP_DERIVED = replace(
    SUBMISSION_COROLLARY_1_DERIVED,
    id=SPEEDUP.id,
    title=SPEEDUP.title,
    source=SPEEDUP.source,
    theorem=THEOREM_4_DERIVED,
    derivation=proof_rates.speedup(THEOREM_4_DERIVED.bound),
    note="The step size is eta_s = sqrt(mK/R), as in the earlier version. "
    + SUBMISSION_COROLLARY_1_DERIVED.note,
)

_RATIO_A1 = as_printed(
    lambda: (
        (4 * sigma_G**2 - 4 * G_2 * (1 / (2 * K**2) - 2 * L * eta_s / K**2))
        / ((1 - L * eta_s) * G_1)
    )
)
_smooth, _dissimilarity, _step, _coupling = (
    item for item in THEOREM_4.hypotheses if not item.is_sign and item.name != "few client rounds"
)

A_1 = RateClaim(
    id="sa-fl/a1",
    title="Corollary 1's rate under the two requirements of Appendix A.1",
    source="SA-FL (ICML 2024), Appendix A.1",
    theorem=replace(
        THEOREM_4,
        hypotheses=(
            _smooth,
            _dissimilarity,
            STEP_PRINTED_4,
            _coupling,
            Hypothesis(
                "enough server rounds",
                as_printed(lambda: sp.Le(_RATIO_A1, (1 - q) / q)),
                "Appendix A.1, on R_s/R_c",
            ),
        ),
        derivation=None,
        refutations=(),
    ),
    axes=_axes(
        faster=True,
        hypotheses=(
            FASTER_STEP,
            Hypothesis(
                "few server rounds",
                as_printed(lambda: sp.Le((1 - q) / q, 1 / (m * K * (1 - 1 / (m * K))))),
                "Appendix A.1, on R_s/R_c, c = 1",
            ),
        ),
        tried=False,
    )[:1],
    regimes=regimes.APPENDIX_A1,
    kind=StatementKind.REMARK,
    note=(
        "Checked to the letter, with R_s = (1-q) R and R_c = qR in expectation: N/D <= R_s/R_c <= "
        "c/(mK (1 - c/(mK))). Here c = 1, eta_s is not squared, and G_1 and G_2 are Theorem 4's "
        "maxima. In this form of the condition, N may be negative, so equal clients meet it. The "
        "step size is eta_s = sqrt(mK/R), which the rate needs."
    ),
)

A_1_DERIVED = replace(
    A_1,
    reading="derived",
    theorem=THEOREM_4_DERIVED,
    axes=SUBMISSION_COROLLARY_1_DERIVED.axes[:1],
    note=(
        "This reading replaces the maxima by (54), which has sums over rounds, and it requires R "
        ">= (mK)^3 L^2. Because the gradients vanish at the claimed rate, (54) admits only "
        "clients with equal or nearly equal losses."
    ),
)


def _server_to_clients(setting: Setting) -> tuple[Any, float]:
    share = safari_of(as_safari(setting)).q
    return ((1 - share) / share if share > 0 else math.inf), 2.0**-50


def _all_to_clients(setting: Setting) -> tuple[Any, float]:
    share = safari_of(as_safari(setting)).q
    return (1 / share if share > 0 else math.inf), 2.0**-50


A_1_RATIO = PointClaim(
    id="sa-fl/a1-ratio",
    title="R_s = O(R/(mK)) bounds the number of server rounds per client round",
    source="SA-FL (ICML 2024), Appendix A.1, the upper end of R_s/R_c",
    quantity=PointQuantity(_server_to_clients, "R_s/R_c", PURE, r"\frac{R_s}{R_c}"),
    bound=as_printed(lambda: 1 / (m * K * (1 - 1 / (m * K)))),
    hypotheses=(
        _NEARLY_ALL,
        Hypothesis("more than one step a round", sp.Gt(m * K, 1), "for a positive denominator"),
    ),
    domain=as_safari,
    regimes=regimes.SHARES,
    kind=StatementKind.REMARK,
    note="Checked to the letter, with c = 1 and in expectation: R_s = (1-q) R and R_c = qR.",
)
A_1_ORDER = replace(
    A_1_RATIO,
    id="sa-fl/a1-order",
    title="The orders 1/sqrt(mKR) and 1/sqrt(mKR_c) are the same",
    source="SA-FL (ICML 2024), Appendix A.1, 'the same order'",
    quantity=PointQuantity(_all_to_clients, "R/R_c", PURE, r"\frac{R}{R_c}"),
    bound=as_printed(lambda: 1 / (1 - 1 / (m * K))),
    note=(
        "The two differ by the factor sqrt(R/R_c). R/R_c = 1/q is at most 1/(1 - c/(mK)), which "
        "is at most two for c = 1 and mK >= 2."
    ),
)


# ------------------------------------------------------------ Remarks 5 and 6
# Remark 5 has three statements: SAFARI is FedAvg at q = 1 and SGD at q = 0, and the bounds of
# Theorems 4 and 5 are then SGD's classical ones. Remark 6 says that FedAvg converges to a ball
# whose size depends on sigma_G, and that SAFARI can achieve the rates of ideal participation; "can"
# is read as "for some q". Remarks 1 and 2 are about data (see ``pac/remark-2``); 3 and 4 repeat
# Theorems 4 and 5.

_SOURCE = "SA-FL (ICML 2024), Remark"
_FIRST_ROUNDS = 2
_WORK = 2e7


def _first_rounds(setting: Setting, algorithm: Any) -> Any:
    """Return the moments of the first rounds as exact fractions; all rounds are alike."""
    return rational_trajectory(
        _with(setting, algorithm=algorithm, rounds=_FIRST_ROUNDS), (), Work(_WORK)
    )


def _with(setting: Setting, **fields: Any) -> Setting:
    """Return the setting, or its exact twin, with some fields changed."""
    changed = object.__new__(Setting)
    for name in ("algorithm", "problem", "participation", "rounds", "x0"):
        object.__setattr__(changed, name, fields.get(name, getattr(setting, name)))
    return changed


def _off_fedavg(setting: Setting) -> tuple[Any, float]:
    """Return the largest difference between SAFARI's and FedAvg's moments."""
    safari = safari_of(setting)
    ours = _first_rounds(setting, safari)
    theirs = _first_rounds(setting, FedAvg(safari.client_lr, safari.local_steps))
    gaps = [abs(ours[name] - theirs[name]) for name in FIELDS]
    return max(np.concatenate(gaps)), 0.0


def _off_sgd(setting: Setting) -> tuple[Any, float]:
    """Return the largest difference between E||x_r - x*||^2 of SAFARI and of SGD on F.

    SGD's errors follow ``C -> (1 - eta H) C (1 - eta H)' + eta^2 sigma_s^2/d``.
    """
    problem: Any = setting.problem
    safari = safari_of(setting)
    ours = _first_rounds(setting, safari)["squared_distance"]
    dim = problem.dim
    move = np.eye(dim, dtype=int) - safari.assist_lr * problem.mean_hessian
    away = setting.x0 - problem.x_star
    errors = np.outer(away, away)
    gaps = []
    for distance in ours:
        gaps.append(abs(distance - np.trace(errors)))
        added = safari.assist_lr**2 * problem.server_sigma**2 / dim * np.eye(dim, dtype=int)
        errors = move @ errors @ move.T + added
    return largest(gaps), 2.0**-40


def _at(share: int, remark: int = 5) -> Hypothesis:
    case = "the clients alone" if share else "the server alone"
    return Hypothesis(case, sp.Eq(q, share), f"Remark {remark}")


AS_FEDAVG = PointClaim(
    id="sa-fl/remark-5-fedavg",
    title="SAFARI at q = 1 is FedAvg",
    source=f"{_SOURCE} 5, first case",
    quantity=PointQuantity(
        _off_fedavg, "largest difference of the moments of SAFARI's models and FedAvg's", LENGTH**2
    ),
    bound=sp.Integer(0),
    hypotheses=(_at(1),),
    domain=as_safari,
    regimes=regimes.REMARK_5,
    kind=StatementKind.REMARK,
    note=(
        "Checked to the letter, for any clients, not only for equal ones. For equal clients, "
        "where sigma_G = 0, the remark advises q = 1. But then the condition on q, as printed in "
        "Theorem 4, excludes q = 1, because N is negative, and so is 1/(N/D + 1)."
    ),
)
AS_SGD = replace(
    AS_FEDAVG,
    id="sa-fl/remark-5-sgd",
    title="SAFARI at q = 0 is SGD on the server's data",
    source=f"{_SOURCE} 5, second case",
    quantity=PointQuantity(
        _off_sgd, "largest difference of E||x_r - x*||^2 of SAFARI and of SGD on F", LENGTH**2
    ),
    hypotheses=(_at(0),),
    note="Checked to the letter, for any clients: at q = 0 no client takes part.",
)

_convex, _server_step = (
    next(item for item in THEOREM_5.hypotheses if item.name == name)
    for name in ("strongly convex clients", "small server step")
)
_CLASSIC_STEP = Hypothesis("small server step", sp.Le(eta_s, 1 / L), "SGD's classic bound")
_CLASSIC_NOTE = (
    "With q = 0 the terms with sigma_G vanish, even if sigma_G is infinite, and SGD's classic "
    "bound remains. The theorem's conditions on q and on the client's step size are not required, "
    "because no client takes part."
)

CLASSIC_4 = Theorem(
    id="sa-fl/remark-5-bound-4",
    title="At q = 0 Theorem 4 is SGD's classic bound, without sigma_G",
    source=f"{_SOURCE} 5, on Theorem 4",
    quantity=THEOREM_4.quantity,
    bound=as_printed(lambda: 2 * Delta_0 / (R * eta_s) + L * eta_s * sigma_s**2),
    hypotheses=(_smooth, _at(0), _CLASSIC_STEP),
    domain=as_safari,
    regimes=regimes.REMARK_5,
    kind=StatementKind.REMARK,
    note=_CLASSIC_NOTE,
)
CLASSIC_5 = Theorem(
    id="sa-fl/remark-5-bound-5",
    title="At q = 0 Theorem 5 is SGD's classic bound, without sigma_G",
    source=f"{_SOURCE} 5, on Theorem 5",
    quantity=THEOREM_5.quantity,
    bound=as_printed(
        lambda: (
            (1 - 2 * eta_s * L * mu / (L + mu)) ** R * D_0**2
            + (L + mu) / (2 * L * mu) * eta_s * sigma_s**2
        )
    ),
    hypotheses=(_smooth, _convex, _at(0), _server_step),
    domain=as_safari,
    regimes=regimes.REMARK_5,
    kind=StatementKind.REMARK,
    note=_CLASSIC_NOTE,
)


def _gradient_where_fedavg_ends(setting: Setting) -> tuple[Any, float]:
    """Return ``||grad F||^2`` at the minimiser of the participants' mean loss.

    FedAvg converges to this point as its steps vanish. With a shared Hessian, it is the mean of
    their optima.
    """
    problem: Any = setting.problem
    presence = process_of(setting.participation).marginals
    if not np.isfinite(float(problem.sigma_G)):
        raise ValueError(
            "problem must have the same Hessian for every client for the error ball of FedAvg"
        )
    mean = (presence[:, None] * problem.optima).sum(axis=0) / presence.sum()
    gradient = problem.mean_hessian @ (mean - problem.x_star)
    return (gradient * gradient).sum(), 2.0**-40


ERROR_BALL = PointClaim(
    id="sa-fl/remark-6-fedavg",
    title="FedAvg with incomplete participation ends in a ball whose size depends on sigma_G",
    source=f"{_SOURCE} 6, cited from Yang et al. (2022)",
    quantity=PointQuantity(
        _gradient_where_fedavg_ends,
        "||grad F||^2 at the minimiser of the participants' mean loss",
        GRADIENT**2,
    ),
    bound=sigma_G**2,
    hypotheses=(_convex, _at(1, remark=6)),
    domain=as_safari,
    regimes=regimes.REMARK_6,
    kind=StatementKind.REMARK,
    note=(
        "The remark has no formula. We read it as follows. As the step sizes vanish, FedAvg's "
        "model ends at a point where the participants' mean gradient is zero. That mean differs "
        "from the gradient of F by at most sigma_G, so the gradient of F there is at most "
        "sigma_G. It is zero only if the participants have the same optimum as all clients "
        "together, and it is sigma_G where a single client takes part. So the ball does not "
        "vanish."
    ),
)


_CAN = (
    "'Can' is read as 'for some q', and 'under mild conditions' as the conditions of the repaired "
    "corollary. The rate comes from the server's data, because client rounds become ever rarer "
    "({}). With q = 0, which is SGD at the server, the rate is achieved too."
)

NONCONVEX = replace(
    COROLLARY_1_REPAIRED,
    id="sa-fl/remark-6-nonconvex",
    reading="printed",
    title="SAFARI with incomplete participation can achieve O(1/sqrt(mKR)) on nonconvex losses",
    source=f"{_SOURCE} 6, on Corollary 1",
    axes=COROLLARY_1_REPAIRED.axes[1:],
    derivation=None,
    regimes={**COROLLARY_1_REPAIRED.regimes, **regimes.REMARK_6_NONCONVEX},
    kind=StatementKind.REMARK,
    note=_CAN.format("q <= 1/sqrt(mKR), and sigma_s^2 <= sigma^2/(mK) at the server"),
)
CONVEX = replace(
    COROLLARY_2_REPAIRED,
    id="sa-fl/remark-6-convex",
    reading="printed",
    title="SAFARI with incomplete participation can achieve O(1/R) on strongly convex losses",
    source=f"{_SOURCE} 6, on Corollary 2",
    derivation=None,
    kind=StatementKind.REMARK,
    note=_CAN.format("q <= log(R)/R, and step sizes of order log(R)/R"),
)


STATEMENTS: tuple[Statement, ...] = (
    replace(SUBMISSION_COROLLARY_1, refutations=(_LOWER_LIMIT,)),
    SUBMISSION_COROLLARY_1_DERIVED,
    replace(
        SPEEDUP,
        refutations=(
            Refutation(
                "With eta_s = 1/sqrt(R), the term 2 Delta_0/sqrt(R) in the bound does not fall as "
                "mK grows. Nor does the error that remains from the initial model. The earlier "
                "version has sqrt(mK/R).",
                Weight.MISPRINT,
                "eta_s = sqrt(mK/R) in place of 1/sqrt(R)",
                "derived",
                ("at the level of the noise",),
                natural="at the level of the noise",
                answer="The sqrt(mK) in the earlier version's step size got lost.",
            ),
            replace(_LOWER_LIMIT, regimes=("at the level of the noise", "minority excluded")),
        ),
    ),
    SPEEDUP_DERIVED,
    replace(
        A_1,
        refutations=(
            Refutation(
                "The lower limit on R_s/R_c contains the largest gradients of all rounds, while "
                "(54) has sums over the rounds. So a single large gradient, at a distant start, "
                "meets the condition although some clients never take part.",
                Weight.GAP,
                "sums in place of maxima, as in (54)",
                "derived",
                ("minority excluded, started far away",),
                natural="minority excluded, started far away",
                answer="The appendix is about gradients that stay equally large throughout the "
                "run.",
            ),
        ),
    ),
    A_1_DERIVED,
    A_1_RATIO,
    A_1_ORDER,
    AS_FEDAVG,
    AS_SGD,
    CLASSIC_4,
    CLASSIC_5,
    ERROR_BALL,
    NONCONVEX,
    CONVEX,
)
