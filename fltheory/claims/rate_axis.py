"""The variables of claimed orders, and their evaluation over three decades."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import sympy as sp
from flint import arb

from fltheory.claims.comparison import Comparison, is_above, unmet
from fltheory.engines import Setting
from fltheory.evidence.enclosed_check import EnclosedSides
from fltheory.evidence.enclosed_values import Value, ball, ends
from fltheory.evidence.verdict import (
    SLOPE_IS_MET,
    SLOPE_IS_MISSED,
    Evidence,
    Grade,
    HypothesisCheck,
    Outcome,
)
from fltheory.grammar.fields import check_fields
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class KnownDecay:
    """A known lower bound on a quantity, which is a multiple of a power of the variable.

    Attributes
    ----------
    exponent : float
        The exponent, which is zero if the quantity stays above a positive number.
    why : str
        The reason, as a short phrase about the truth.
    in_floats : bool
        Whether it was computed in floats instead of being proved by hand.
    """

    exponent: float
    why: str
    in_floats: bool = False


def with_rounds(setting: Setting, rounds: int) -> Setting:
    """Return a setting with a different number of rounds only; a schedule for `RateAxis`."""
    return replace(setting, rounds=rounds)


def three_decades(setting: Setting) -> tuple[int, ...]:
    """Return numbers of rounds, three decades up to a setting's number; a grid for `RateAxis`."""
    return tuple(max(2, round(setting.rounds / 10**k)) for k in (3, 2, 1, 0.5, 0))


@dataclass(frozen=True)
class RateAxis:
    """A claimed order in one variable, with all else fixed or changing on a schedule with it.

    Attributes
    ----------
    variable : sympy symbol
    order : sympy expression
        The claimed order as a function of ``variable``.
    grid : callable
        Returns the variable's values for a setting, in increasing order over three decades.
    schedule : callable
        Returns the setting with the variable, and everything that the statement couples to it, set
        for a value.
    hypotheses : tuple of Hypothesis
        Conditions that belong only to this claim.
    families : mapping
        Other schedules, by name, that the statement also allows, such as constant steps if it
        requires only that steps are large. Any schedule that the hypotheses do not exclude can
        refute the claim.
    known_decay : callable, optional
        Takes the settings along the axis and returns a power of the variable such that the truth is
        known to be at least a multiple of that power, or None. Such a power refutes a claimed order
        that falls faster, whatever the slopes.
    under : str
        The name of the family that this axis belongs to; empty for the statement's own schedule.

    Examples
    --------
    >>> from fltheory.theorems import get
    >>> axis = get("sa-fl/corollary-1").axes[0]
    >>> axis.variable, axis.order
    (R, 1/sqrt(R))
    """

    variable: sp.Symbol
    order: sp.Expr
    grid: Callable[[Setting], tuple[int, ...]]
    schedule: Callable[[Setting, int], Setting]
    hypotheses: tuple[Hypothesis, ...] = ()
    families: Mapping[str, Callable[[Setting, int], Setting]] = field(default_factory=dict)
    known_decay: Callable[[Sequence[Setting]], KnownDecay | None] | None = None
    under: str = ""

    def __post_init__(self) -> None:
        check_fields(self, f"the axis of {self.variable}")

    @property
    def of_families(self) -> tuple[RateAxis, ...]:
        """One axis for each of the ``families``."""
        return tuple(
            replace(self, schedule=schedule, families={}, under=name)
            for name, schedule in self.families.items()
        )

    def values(self, setting: Setting, *, decades: int = 0) -> tuple[int, ...]:
        """Return the grid for a setting.

        Raises
        ------
        ValueError
            If the grid does not increase, or does not cover at least ``decades`` decades from a
            number above 0.
        """
        grid = tuple(self.grid(setting))
        increasing = bool(grid) and all(low < high for low, high in pairwise(grid))
        if not increasing or (decades and not 0 < 10**decades * grid[0] <= grid[-1]):
            over = f" from above 0 over at least {decades} decades" if decades else ""
            raise ValueError(f"grid of the axis of {self.variable} must increase{over}, got {grid}")
        return grid


@dataclass(frozen=True)
class AxisReading:
    """The results on one axis of a claimed order, over three decades.

    ``known`` is a known lower bound on the truth that decays too slowly for the claimed order, or
    None if there is no such bound. ``slopes`` are the enclosed slopes, if all their inputs are
    enclosed.
    """

    axis: RateAxis
    grid: tuple[int, ...]
    comparisons: tuple[Comparison, ...]
    orders: tuple[float, ...]
    truth_slope: float
    bound_slope: float
    claimed_slope: float
    slope_ends: tuple[float, float] | None = None
    known: KnownDecay | None = None
    slopes: EnclosedSlopes | None = None

    @property
    def hypotheses(self) -> tuple[HypothesisCheck, ...]:
        """Each hypothesis at the setting where its margin is worst."""
        return worst_hypotheses([one.hypotheses for one in self.comparisons])

    @property
    def outcome(self) -> Outcome:
        """The outcome, from a known lower bound or the slope if hypotheses hold at every value."""
        settled = unmet(self.hypotheses)
        if settled is not None:
            return settled
        if self.known is not None:
            return Outcome.REFUTED
        lower, upper = self._excess
        if upper <= SLOPE_IS_MET:
            return Outcome.HOLDS
        missed = lower >= SLOPE_IS_MISSED
        return Outcome.REFUTED if missed and self.is_left_by_the_truth else Outcome.UNDECIDED

    @property
    def is_left_by_the_truth(self) -> bool:
        """Whether the bound decays as claimed, and the truth ends above it by more than its error.

        A truth far below its bound may be flat for arbitrarily long and still have the claimed
        order. A bound with unknown constants cannot be exceeded.
        """
        last = self.comparisons[-1]
        if self.slopes is not None and last.enclosed is not None:
            return self.slopes.excess_of_bound[1] <= SLOPE_IS_MET and last.enclosed.below is False
        as_claimed = self.bound_slope - self.claimed_slope <= SLOPE_IS_MET
        return as_claimed and is_above(last.interval[0], last.bound)

    @property
    def _excess(self) -> tuple[float, float]:
        """The ends of the interval for the excess of the truth's slope over the claimed slope."""
        if self.slopes is not None:
            return self.slopes.excess_of_truth
        lower, upper = self.slope_ends or (self.truth_slope, self.truth_slope)
        return lower - self.claimed_slope, upper - self.claimed_slope

    @property
    def evidence(self) -> Evidence:
        """The evidence for the last truth, with the slope's own interval if truths are sampled."""
        seen = f"read off {self.axis.variable} = {self.grid[0]} .. {self.grid[-1]}"
        if self.known is not None:
            seen = f"the truth's is known, hypotheses are {seen}"
        scope = f"an order is a limit: {seen}"
        found = replace(self.comparisons[-1].evidence, scope=scope)
        if self.slopes is not None:
            lower, upper = self.slopes.of_truth
            error = max(self.truth_slope - lower, upper - self.truth_slope)
            return replace(found, error=math.nextafter(error, math.inf))
        if self.slope_ends is None:
            return found
        lower, upper = self.slope_ends
        error = max(self.truth_slope - lower, upper - self.truth_slope)
        chance = sum(one.evidence.error_probability for one in self.comparisons)
        return replace(found, error=error, error_probability=chance, ends=self.slope_ends)

    @property
    def unseen(self) -> str:
        """A sentence on rare events that samples may have missed, if a slope is then undecided."""
        if self.slope_ends is None or self.outcome is not Outcome.UNDECIDED:
            return ""
        lower, upper = self.slope_ends
        return (
            "rare events were not seen: with what draws did not show the truth's slope is within "
            f"{lower:+.2f} .. {upper:+.2f}"
        )

    @property
    def text(self) -> str:
        """The slopes in a line; a bound without known constants has no slope."""
        bound = "" if math.isnan(self.bound_slope) else f"bound {self.bound_slope:+.2f}, "
        known = "" if self.known is None else f"; the truth {self.known.why}"
        under = f", {self.axis.under}" if self.axis.under else ""
        return (
            f"slopes in {self.axis.variable}{under}: truth {self.truth_slope:+.2f}, "
            f"{bound}claimed {self.claimed_slope:+.2f}{known}"
        )


@dataclass(frozen=True)
class EnclosedSlopes:
    """Enclosed slopes over the last decade, and their excess over the claimed slope.

    Attributes
    ----------
    of_truth, excess_of_truth, excess_of_bound : pair of float
        Both ends of an interval; infinite for a bound without a slope.
    """

    of_truth: tuple[float, float]
    excess_of_truth: tuple[float, float]
    excess_of_bound: tuple[float, float]

    @classmethod
    def of(
        cls, grid: Sequence[int], sides: Sequence[EnclosedSides], orders: Sequence[Value]
    ) -> EnclosedSlopes | None:
        """Return the slopes, or None if a truth or an order is not provably above zero."""
        truth = enclosed_slope(grid, [ball(one.truth, one.truth_error) for one in sides])
        bound = enclosed_slope(grid, [ball(one.bound, one.bound_error) for one in sides])
        claimed = enclosed_slope(grid, orders)
        if not (truth.is_finite() and claimed.is_finite()):
            return None
        return cls(ends(truth), ends(truth - claimed), ends(bound - claimed))


def enclosed_slope(grid: Sequence[int], values: Sequence[Value]) -> arb:
    """Return an enclosure of the slope of `slope_of_last_decade`, not finite if undefined."""
    last = [place for place, value in enumerate(grid) if 10 * value >= grid[-1]]
    logs = [arb(grid[place]).log() for place in last]
    middle = sum(logs, arb(0)) / len(logs)
    spread = sum(((one - middle) ** 2 for one in logs), arb(0))
    heights = [arb(values[place]).log() for place in last]
    pairs = zip(logs, heights, strict=True)
    return sum(((one - middle) * height for one, height in pairs), arb(0)) / spread


def slope_of_last_decade(
    grid: Sequence[int], values: Sequence[float] | Sequence[FloatArray]
) -> FloatArray:
    """Fit log(value) to log(variable) over the last decade.

    The slope is NaN if a value has no logarithm, or the last decade has fewer than two values.

    Parameters
    ----------
    grid : sequence of int
        Values of the variable, in increasing order.
    values : sequence of float, or of arrays (n,)
        One for each value of the grid.
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


def worst_hypotheses(
    checks: Sequence[tuple[HypothesisCheck, ...]],
) -> tuple[HypothesisCheck, ...]:
    """Return each hypothesis at the value where its margin is worst."""
    return tuple(min(of_one, key=_badness) for of_one in zip(*checks, strict=True))


def _badness(check: HypothesisCheck) -> tuple[int, float]:
    rank = {False: 0, None: 1, True: 2}[check.holds]
    return rank, -math.inf if math.isnan(check.margin) else check.margin


_FROM_WORST = (Outcome.REFUTED, Outcome.UNDECIDED, Outcome.INAPPLICABLE, Outcome.HOLDS)


def worst_of(readings: Sequence[AxisReading]) -> AxisReading:
    """Return the reading that decides the verdict on a claim of several orders."""
    return min(readings, key=lambda reading: _FROM_WORST.index(reading.outcome))


def evidence_of(worst: AxisReading, readings: Sequence[AxisReading]) -> Evidence:
    """Return the evidence of the worst axis, with the weakest grade of all if the claim holds."""
    evidence = worst.evidence
    if worst.outcome is not Outcome.HOLDS:
        return evidence
    weakest = max((one.evidence for one in readings), key=lambda one: list(Grade).index(one.grade))
    if weakest.grade is evidence.grade:
        return evidence
    return replace(
        evidence,
        grade=weakest.grade,
        error_probability=weakest.error_probability,
        replicas=weakest.replicas,
        why_not_exact=weakest.why_not_exact,
    )


def axis_reading(
    axis: RateAxis,
    grid: Sequence[int],
    comparisons: Sequence[Comparison],
    orders: Sequence[float],
    known: KnownDecay | None,
    slopes: EnclosedSlopes | None = None,
) -> AxisReading:
    """Return the reading of an axis, given both sides and the claimed order at each value."""
    return AxisReading(
        axis=axis,
        grid=tuple(grid),
        comparisons=tuple(comparisons),
        orders=tuple(orders),
        truth_slope=slope(grid, [comparison.truth for comparison in comparisons]),
        bound_slope=slope(grid, [comparison.bound for comparison in comparisons]),
        claimed_slope=slope(grid, orders),
        slope_ends=slope_ends(grid, comparisons),
        known=known,
        slopes=slopes,
    )


def slope(grid: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of one series over the last decade (see `slope_of_last_decade`)."""
    return float(slope_of_last_decade(grid, values))


def slope_ends(
    grid: Sequence[int], comparisons: Sequence[Comparison]
) -> tuple[float, float] | None:
    """Return the smallest and largest slope through sampled truths' intervals, or None if exact.

    A least-squares slope is a sum of logarithms with fixed weights. So it is extreme if the
    logarithms with positive weight are at one end of their intervals, and the others at the
    opposite end.
    """
    if all(one.evidence.replicas is None for one in comparisons):
        return None
    ends = np.array([one.interval for one in comparisons])
    middle = (np.array(grid) >= grid[-1] / 10) * 1.0
    logs = np.log(np.array(grid, dtype=np.float64))
    late = logs > (logs @ middle) / middle.sum()
    steep, flat = (np.where(late, ends[:, a], ends[:, 1 - a]) for a in (0, 1))
    if not (np.isfinite(ends) & (ends > 0))[middle > 0].all():
        return -math.inf, math.inf
    return float(slope_of_last_decade(grid, list(steep))), float(
        slope_of_last_decade(grid, list(flat))
    )
