"""Check one statement on one setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fltheory.engines import Setting
from fltheory.learnability import LearningSetting
from fltheory.theorems.learning_claim import DecayClaim, LearningClaim
from fltheory.theorems.statement import (
    DirectionClaim,
    Hypothesis,
    PointClaim,
    RateAxis,
    RateClaim,
    Statement,
    Theorem,
)
from fltheory.validation import FloatArray
from fltheory.verify.evaluation import (
    check_hypothesis,
    check_point_hypothesis,
    evaluate,
    theorem_values,
)
from fltheory.verify.learning_check import check_decay, check_learning_claim
from fltheory.verify.truth import Sampling, Truth, truth_of
from fltheory.verify.verdict import (
    SLOPE_IS_MET,
    SLOPE_IS_MISSED,
    Evidence,
    Grade,
    HypothesisCheck,
    Outcome,
    Verdict,
)

_BOUND_ROUNDING = 64 * float(np.finfo(np.float64).eps)


def check(
    theorem: Statement,
    setting: Setting | LearningSetting,
    *,
    replicas: int = 2000,
    seed: int = 0,
    error_probability: float = 1e-9,
) -> Verdict:
    """Say what a statement is worth on a setting.

    The truth is computed by the exact engine where a round is affine, and sampled elsewhere.
    Hypotheses that depend on the trajectory are evaluated on it.

    Parameters
    ----------
    theorem : Statement
        From `fltheory.theorems.get`, or one of your own.
    setting : Setting, or what a statement on learnability speaks of
    replicas, seed : int
        For sampling, where it is needed.
    error_probability : float
        Allowed for all sampled intervals of this check together.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        If the theorem does not speak of such a setting at all (another algorithm, say).

    Examples
    --------
    >>> from fltheory import theorems
    >>> theorem = theorems.get("sa-fl/5", reading="derived")
    >>> check(theorem, theorem.regimes["q = 0"].setting).outcome.name
    'HOLDS'
    """
    sampling = Sampling(replicas, seed, error_probability)
    if isinstance(theorem, LearningClaim):
        return check_learning_claim(theorem, _learning(setting))
    if isinstance(theorem, DecayClaim):
        return check_decay(theorem, _learning(setting), sampling)
    if not isinstance(setting, Setting):
        raise ValueError(f"setting must be a Setting for {theorem.id}, got {setting!r}")
    if isinstance(theorem, RateClaim):
        return axes_verdict(theorem, read_axes(theorem, setting, sampling))
    if isinstance(theorem, PointClaim):
        comparison = compare_at_point(theorem, setting)
    else:
        comparison = compare(theorem, setting, sampling)
    return Verdict(
        theorem=theorem.id,
        reading=theorem.reading,
        outcome=comparison.outcome,
        evidence=comparison.evidence,
        truth=comparison.truth,
        bound=comparison.bound,
        hypotheses=comparison.hypotheses,
    )


def _learning(setting: Setting | LearningSetting) -> LearningSetting:
    if isinstance(setting, Setting):
        raise ValueError(f"setting must be a learning problem, got {setting!r}")
    return setting


@dataclass(frozen=True)
class Comparison:
    """Truth, bound and hypotheses of a theorem on one setting."""

    truth: float
    bound: float
    evidence: Evidence
    hypotheses: tuple[HypothesisCheck, ...]

    @property
    def outcome(self) -> Outcome:
        """Combine them into a verdict."""
        unmet = _unmet(self.hypotheses)
        if unmet is not None:
            return unmet
        slack = self.evidence.error + _BOUND_ROUNDING * abs(self.bound)
        if self.truth + slack <= self.bound:
            return Outcome.HOLDS
        if self.truth - slack > self.bound or math.isinf(self.truth):
            return Outcome.REFUTED
        return Outcome.UNDECIDED


def _unmet(hypotheses: Sequence[HypothesisCheck]) -> Outcome | None:
    """Return the verdict if it is settled by the hypotheses, else None."""
    if any(check.holds is False for check in hypotheses):
        return Outcome.INAPPLICABLE
    if any(check.holds is None for check in hypotheses):
        return Outcome.UNDECIDED
    return None


def compare(
    theorem: Theorem,
    setting: Setting,
    sampling: Sampling,
    extra_hypotheses: tuple[Hypothesis, ...] = (),
) -> Comparison:
    """Evaluate a theorem, and further hypotheses, on a setting."""
    truth = truth_of(setting, theorem.observe(setting), sampling)
    return compare_with(truth, theorem, setting, extra_hypotheses)


def compare_with(
    truth: Truth,
    theorem: Theorem,
    setting: Setting,
    extra_hypotheses: tuple[Hypothesis, ...] = (),
) -> Comparison:
    """Evaluate a theorem, and further hypotheses, on a setting whose truth is known."""
    values = theorem_values(theorem, theorem.constants(setting))
    left, error = left_side(theorem, truth, setting)
    return Comparison(
        truth=left,
        bound=float(evaluate(theorem.bound, values)),
        evidence=truth.evidence(error),
        hypotheses=tuple(
            check_hypothesis(hypothesis, values, theorem.round_symbols, truth)
            for hypothesis in (*theorem.hypotheses, *extra_hypotheses)
        ),
    )


def left_side(theorem: Theorem, truth: Truth, setting: Setting) -> tuple[float, float]:
    """Return a theorem's quantity on a run, and the half-width of the interval around it."""
    quantity = theorem.quantity
    error = quantity.error(truth.error(quantity.field), setting)
    return quantity.of(truth.trajectory, setting), error


def compare_at_point(
    claim: PointClaim, setting: Setting, extra_hypotheses: tuple[Hypothesis, ...] = ()
) -> Comparison:
    """Evaluate a claim that needs no run, and further hypotheses."""
    values = theorem_values(claim, claim.constants(setting))
    truth, error = claim.quantity.value(setting)
    return Comparison(
        truth=truth,
        bound=float(evaluate(claim.bound, values)),
        evidence=Evidence(Grade.EXACT, error),
        hypotheses=tuple(
            check_point_hypothesis(item, values) for item in (*claim.hypotheses, *extra_hypotheses)
        ),
    )


@dataclass(frozen=True)
class AxisReading:
    """What one axis of a claimed order shows over three decades."""

    axis: RateAxis
    grid: tuple[int, ...]
    comparisons: tuple[Comparison, ...]
    orders: tuple[float, ...]
    truth_slope: float
    bound_slope: float
    claimed_slope: float

    @property
    def hypotheses(self) -> tuple[HypothesisCheck, ...]:
        """Return each hypothesis at the setting where its margin is worst."""
        return _worst_hypotheses(self.comparisons)

    @property
    def outcome(self) -> Outcome:
        """Judge the truth's slope, once the hypotheses are met at every value."""
        unmet = _unmet(self.hypotheses)
        if unmet is not None:
            return unmet
        excess = self.truth_slope - self.claimed_slope
        if excess <= SLOPE_IS_MET:
            return Outcome.HOLDS
        return Outcome.REFUTED if excess >= SLOPE_IS_MISSED else Outcome.UNDECIDED

    @property
    def text(self) -> str:
        """Return the slopes in a line; a bound without known constants has none."""
        bound = "" if math.isnan(self.bound_slope) else f"bound {self.bound_slope:+.2f}, "
        return (
            f"in {self.axis.variable}: truth {self.truth_slope:+.2f}, "
            f"{bound}claimed {self.claimed_slope:+.2f}"
        )


def slope_of_last_decade(
    grid: Sequence[int], values: Sequence[float] | Sequence[FloatArray]
) -> FloatArray:
    """Fit log(value) to log(variable) over the last decade.

    NaN where a value has no logarithm, or the last decade has no two values.

    Parameters
    ----------
    grid : sequence of int
        Values of the variable, in increasing order.
    values : sequence of float, or of arrays (n,)
        One for each.
    """
    last_decade = np.array(grid) >= grid[-1] / 10
    logs = np.log(np.array(grid)[last_decade])
    with np.errstate(divide="ignore", invalid="ignore"):
        heights = np.log(np.array(values, dtype=np.float64)[last_decade])
    finite = np.isfinite(heights).all(axis=0) & (logs.size > 1)
    if not finite.any():
        return np.full(finite.shape, np.nan)
    slopes = np.polyfit(logs, np.where(finite, heights, 0.0), 1)[0]
    return np.where(finite, slopes, np.nan)


def _worst_hypotheses(comparisons: Sequence[Comparison]) -> tuple[HypothesisCheck, ...]:
    by_name = zip(*(comparison.hypotheses for comparison in comparisons), strict=True)
    return tuple(min(checks, key=_badness) for checks in by_name)


def _badness(check: HypothesisCheck) -> tuple[int, float]:
    rank = {False: 0, None: 1, True: 2}[check.holds]
    return rank, -math.inf if math.isnan(check.margin) else check.margin


_FROM_WORST = (Outcome.REFUTED, Outcome.UNDECIDED, Outcome.INAPPLICABLE, Outcome.HOLDS)


def read_axes(claim: RateClaim, setting: Setting, sampling: Sampling) -> tuple[AxisReading, ...]:
    """Read the order of decay off three decades of each variable."""
    return tuple(_read_axis(claim, axis, setting, sampling) for axis in claim.axes)


def worst_of(readings: Sequence[AxisReading]) -> AxisReading:
    """Return the reading that decides the verdict on a claim of several orders."""
    return min(readings, key=lambda reading: _FROM_WORST.index(reading.outcome))


def axes_verdict(claim: RateClaim, readings: Sequence[AxisReading]) -> Verdict:
    """Judge a claimed order, or direction, by what was read along its variables."""
    if isinstance(claim, DirectionClaim):
        return _direction_verdict(claim, worst_of(readings))
    return _rate_verdict(claim, readings)


def _rate_verdict(claim: RateClaim, readings: Sequence[AxisReading]) -> Verdict:
    """Judge a claimed order by its slopes.

    A slope is fitted over the last decade. An excess over the claimed slope of at most
    0.05 counts as the claimed order, one of at least 0.25 as another; between them the check
    is undecided. A claim of several orders is refuted by one, and holds if all of them do.
    """
    worst = worst_of(readings)
    decided = worst.comparisons[-1]
    return Verdict(
        theorem=claim.id,
        reading=claim.reading,
        outcome=worst.outcome,
        evidence=replace(decided.evidence, scope=_scope(worst)),
        truth=worst.truth_slope,
        bound=worst.claimed_slope,
        hypotheses=worst.hypotheses,
        is_rate=True,
        detail="; ".join(reading.text for reading in readings),
    )


def _direction_verdict(claim: RateClaim, reading: AxisReading) -> Verdict:
    """Judge a claimed direction by the truth at successive values of the variable.

    The claim holds if every step goes in the claimed direction, beyond the errors of both truths,
    and is refuted if one goes the other way; between them it is undecided.
    """
    axis, comparisons, orders = reading.axis, reading.comparisons, reading.orders
    hypotheses = reading.hypotheses
    steps = list(pairwise(comparisons))
    if orders[0] > orders[-1]:
        steps = [(after, before) for before, after in steps]
    worst = max(steps, key=lambda step: step[0].truth / step[1].truth)
    error = math.fsum(side.evidence.error for side in worst)
    truths = ", ".join(f"{comparison.truth:.4g}" for comparison in comparisons)
    values = ", ".join(str(value) for value in reading.grid)
    return Verdict(
        theorem=claim.id,
        reading=claim.reading,
        outcome=_unmet(hypotheses) or _direction(steps),
        evidence=replace(worst[0].evidence, error=error / worst[1].truth),
        truth=worst[0].truth / worst[1].truth,
        bound=1.0,
        hypotheses=hypotheses,
        detail=f"{axis.variable} = {values}: {truths}",
    )


def _direction(steps: Sequence[tuple[Comparison, Comparison]]) -> Outcome:
    """Judge whether the first of each pair is below the second."""
    gaps = [
        (higher.truth - lower.truth, higher.evidence.error + lower.evidence.error)
        for lower, higher in steps
    ]
    if all(gap > error for gap, error in gaps):
        return Outcome.HOLDS
    return Outcome.REFUTED if any(gap < -error for gap, error in gaps) else Outcome.UNDECIDED


def _scope(reading: AxisReading) -> str:
    first, last = reading.grid[0], reading.grid[-1]
    return f"an order is a limit: read off {reading.axis.variable} = {first} .. {last}"


def _compared(
    statement: Theorem | PointClaim,
    setting: Setting,
    sampling: Sampling,
    extra_hypotheses: tuple[Hypothesis, ...],
) -> Comparison:
    if isinstance(statement, PointClaim):
        return compare_at_point(statement, setting, extra_hypotheses)
    return compare(statement, setting, sampling, extra_hypotheses)


def _compared_along(
    claim: RateClaim, axis: RateAxis, setting: Setting, sampling: Sampling
) -> tuple[list[Comparison], list[float]]:
    """Return what every value of an axis shows, and the claimed order there."""
    comparisons, orders = [], []
    for value in axis.grid(setting):
        scheduled = axis.schedule(setting, value)
        comparisons.append(_compared(claim.theorem, scheduled, sampling, axis.hypotheses))
        orders.append(float(evaluate(axis.order, claim.theorem.constants(scheduled))))
    return comparisons, orders


def _read_axis(
    claim: RateClaim, axis: RateAxis, setting: Setting, sampling: Sampling
) -> AxisReading:
    grid = axis.grid(setting)
    comparisons, orders = _compared_along(claim, axis, setting, sampling)

    def slope(values: Sequence[float]) -> float:
        return float(slope_of_last_decade(grid, values))

    return AxisReading(
        axis=axis,
        grid=tuple(grid),
        comparisons=tuple(comparisons),
        orders=tuple(orders),
        truth_slope=slope([comparison.truth for comparison in comparisons]),
        bound_slope=slope([comparison.bound for comparison in comparisons]),
        claimed_slope=slope(orders),
    )
