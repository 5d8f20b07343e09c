"""Claimed orders: under a schedule of step sizes a theorem's quantity decays in some order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np
import sympy as sp

from fltheory import validation
from fltheory.claims.bound_curve import BoundCurve, quantity_label
from fltheory.claims.comparison import BOUND_ROUNDING, Comparison, unmet
from fltheory.claims.curve_samples import Drawing, plain_curve, sides_of
from fltheory.claims.statement import Inequality, Statement, of_runs
from fltheory.derivations.derivation import Derivation
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import (
    SLOPE_IS_MET,
    SLOPE_IS_MISSED,
    Evidence,
    HypothesisCheck,
    Outcome,
    Verdict,
)
from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.fields import check_fields, must_be, regimes_of
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.refutation import Refutation, StatementKind
from fltheory.grammar.regime import Regime
from fltheory.grammar.units import Unit
from fltheory.learnability.system import LearningSetting
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class RateAxis:
    """A claimed order in one variable, with all else fixed or scheduled along.

    Attributes
    ----------
    variable : sympy symbol
    order : sympy expression
        The claimed order as a function of ``variable``.
    grid : callable
        Values of the variable for a setting, in increasing order over three decades.
    schedule : callable
        The setting with the variable at a value, and all that the statement ties to it.
    hypotheses : tuple of Hypothesis
        Conditions of this claim alone.

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

    def __post_init__(self) -> None:
        check_fields(self, f"the axis of {self.variable}")

    def values(self, setting: Setting, *, decades: int = 0) -> tuple[int, ...]:
        """Return the grid for a setting.

        Raises
        ------
        ValueError
            Unless it increases, over so many decades at least from a number above 0.
        """
        grid = tuple(self.grid(setting))
        increasing = bool(grid) and all(low < high for low, high in pairwise(grid))
        if not increasing or (decades and not 0 < 10**decades * grid[0] <= grid[-1]):
            over = f" from above 0 over {decades} decades at least" if decades else ""
            raise ValueError(f"grid of the axis of {self.variable} must increase{over}, got {grid}")
        return grid


@dataclass(frozen=True)
class RateClaim(Statement):
    """A corollary: under a schedule of step sizes a theorem's quantity decays in some order.

    Attributes
    ----------
    theorem : Inequality
        Whose quantity, bound and hypotheses it rests on.
    axes : tuple of RateAxis
        The claimed orders, all of which must hold.

    The other attributes are those of `Statement`.

    Examples
    --------
    The bound of your own theorem decays as 1/R on some setting, over three decades:

    >>> from dataclasses import replace
    >>> from fltheory import theorems
    >>> R = sp.Symbol("R", positive=True, integer=True)
    >>> axis = RateAxis(
    ...     variable=R,
    ...     order=1 / R,
    ...     grid=lambda setting: (10, 100, 1000, 10_000),
    ...     schedule=lambda setting, rounds: replace(setting, rounds=rounds),
    ... )
    >>> claim = RateClaim(
    ...     id="own/order",
    ...     reading="printed",
    ...     title="SAFARI decays as 1/R",
    ...     source="an example",
    ...     theorem=theorems.get("sa-fl/5", "derived"),
    ...     axes=(axis,),
    ... )
    >>> claim.assertions[0].text
    'in R: E||x_R - x*||^2 = O(1/R)'
    """

    id: str
    reading: str
    title: str
    source: str
    theorem: Inequality
    axes: tuple[RateAxis, ...]
    regimes: Mapping[str, Regime] = field(default_factory=dict)
    note: str = ""
    kind: StatementKind = StatementKind.THEOREM
    refutations: tuple[Refutation, ...] = ()
    derivation: Derivation | None = None
    _relation: ClassVar[Relation] = Relation.OF_ORDER
    _decades: ClassVar[int] = 3

    why_not_certified: ClassVar[str] = "an order is not broken by any one run"
    why_not_searched: ClassVar[str] = (
        "an inequality to be refuted by one setting, got {}, a claimed order: see falsify_rate"
    )

    def __post_init__(self) -> None:
        check_fields(
            self,
            f"the claim {self.id!r}",
            theorem=must_be(Inequality),
            axes=partial(validation.tuple_of, kind=RateAxis),
            regimes=regimes_of(Regime),
        )
        if not self.axes:
            raise ValueError(f"axes of the claim {self.id!r} must be at least one, got none")

    def values(self, axis: RateAxis, setting: Setting) -> tuple[int, ...]:
        """Return an axis's values for a setting, over as many decades as the claim is read off.

        Raises
        ------
        ValueError
            If there are fewer.
        """
        return axis.values(setting, decades=self._decades)

    @property
    def basis(self) -> Inequality:
        """What its symbols and hypotheses belong to: the theorem that it rests on."""
        return self.theorem

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """What it asserts, in each of its variables."""
        left = self.theorem.quantity.text, self.theorem.quantity.latex
        return tuple(
            Assertion(*left, self._relation, axis.order, axis.variable, axis.hypotheses)
            for axis in self.axes
        )

    def readings(self, setting: Setting, sampling: Sampling) -> tuple[AxisReading, ...]:
        """Read the order of decay off three decades of each variable."""
        return tuple(_read_axis(self, axis, setting, sampling) for axis in self.axes)

    def judged(self, readings: Sequence[AxisReading]) -> Verdict:
        """Judge a claimed order by its slopes.

        A slope is fitted over the last decade. An excess over the claimed slope of at most 0.05
        counts as the claimed order. One of at least 0.25 counts as another order where the bound
        itself decays as claimed and the truth ends above it; all else is undecided. A claim of
        several orders is refuted by one, and holds if all of them do.
        """
        worst = worst_of(readings)
        texts = [*(reading.text for reading in readings), *filter(None, [worst.unseen])]
        return Verdict(
            theorem=self.id,
            reading=self.reading,
            outcome=worst.outcome,
            evidence=worst.evidence,
            truth=worst.truth_slope,
            bound=worst.claimed_slope,
            hypotheses=worst.hypotheses,
            relation=Relation.OF_ORDER,
            detail="; ".join(texts),
        )

    def verdict(self, setting: Setting | LearningSetting, sampling: Sampling) -> Verdict:
        """Judge what is read off its axes."""
        return self.judged(self.readings(of_runs(self, setting), sampling))

    def verdict_and_curve(
        self, setting: Setting | LearningSetting, sampling: Sampling
    ) -> tuple[Verdict, BoundCurve | None]:
        """Return the verdict, and both sides along the axis that decides it."""
        readings = self.readings(of_runs(self, setting), sampling)
        worst = worst_of(readings)
        curve = plain_curve(str(worst.axis.variable), worst.grid, worst.comparisons)
        return self.judged(readings), curve

    def unit_formulas(self) -> tuple[Mapping[sp.Symbol, Unit], Sequence[tuple[str, sp.Basic]]]:
        """Return the conditions of its own, in the theorem's symbols."""
        return self.theorem.units, [
            (f"hypothesis '{hypothesis.name}'", hypothesis.condition)
            for axis in self.axes
            for hypothesis in axis.hypotheses
        ]

    def curve(self, setting: Setting | LearningSetting, drawing: Drawing) -> BoundCurve:
        """Follow it over the variable that decides the verdict."""
        setting = of_runs(self, setting)
        readings = self.readings(setting, drawing.sampling)
        reading = worst_of(readings)
        curve = BoundCurve(
            self.name,
            f"${reading.axis.variable}$",
            quantity_label(self.theorem.quantity),
            np.array(reading.grid, dtype=np.float64),
            np.full(len(reading.grid), np.nan),
            (self.judged(readings).outcome,) * len(reading.grid),
            bound_name="claimed order",
            **sides_of(reading.comparisons),
        )
        if curve.is_computed and drawing.draws:
            settings = [reading.axis.schedule(setting, value) for value in reading.grid]
            drawn = self.theorem.drawn_in(settings, drawing.draws, drawing.sampling.seed)
            curve = replace(curve, **({} if drawn is None else drawn.fields()))
        return self.with_claimed_line(curve, reading)

    def with_claimed_line(self, curve: BoundCurve, reading: AxisReading) -> BoundCurve:
        """Draw the claimed order through the truth where the last decade begins."""
        place = int(np.argmax(curve.values >= curve.values[-1] / 10))
        claimed = np.array(reading.orders) / reading.orders[place] * curve.judged[place]
        bounds = np.array([one.bound for one in reading.comparisons])
        parts = {"bound": bounds} if np.isfinite(bounds).all() else {}
        return replace(curve, bound=claimed, parts=parts, note=reading.text)


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
    slope_ends: tuple[float, float] | None = None

    @property
    def hypotheses(self) -> tuple[HypothesisCheck, ...]:
        """Return each hypothesis at the setting where its margin is worst."""
        return _worst_hypotheses(self.comparisons)

    @property
    def outcome(self) -> Outcome:
        """Judge the truth's slope, once the hypotheses are met at every value."""
        settled = unmet(self.hypotheses)
        if settled is not None:
            return settled
        lower, upper = self.slope_ends or (self.truth_slope, self.truth_slope)
        if upper - self.claimed_slope <= SLOPE_IS_MET:
            return Outcome.HOLDS
        missed = lower - self.claimed_slope >= SLOPE_IS_MISSED
        return Outcome.REFUTED if missed and self.is_left_by_the_truth else Outcome.UNDECIDED

    @property
    def is_left_by_the_truth(self) -> bool:
        """Whether the bound decays as claimed, and the truth ends above it beyond all error.

        A truth that is far below its bound may be flat for as long as one likes and be of the
        claimed order; a bound with unknown constants is none to be above of.
        """
        last = self.comparisons[-1]
        as_claimed = self.bound_slope - self.claimed_slope <= SLOPE_IS_MET
        return as_claimed and last.interval[0] > last.bound + BOUND_ROUNDING * abs(last.bound)

    @property
    def evidence(self) -> Evidence:
        """Return the last truth's, with the slope's own interval where truths are sampled."""
        scope = f"an order is a limit: read off {self.axis.variable} = "
        found = replace(
            self.comparisons[-1].evidence, scope=f"{scope}{self.grid[0]} .. {self.grid[-1]}"
        )
        if self.slope_ends is None:
            return found
        lower, upper = self.slope_ends
        error = max(self.truth_slope - lower, upper - self.truth_slope)
        chance = sum(one.evidence.error_probability for one in self.comparisons)
        return replace(found, error=error, error_probability=chance, ends=self.slope_ends)

    @property
    def unseen(self) -> str:
        """Return what samples cannot know, in a sentence, where that leaves a slope undecided."""
        if self.slope_ends is None or self.outcome is not Outcome.UNDECIDED:
            return ""
        lower, upper = self.slope_ends
        return (
            "rare events were not seen: with what draws did not show the truth's slope is within "
            f"{lower:+.2f} .. {upper:+.2f}"
        )

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


def worst_of(readings: Sequence[AxisReading]) -> AxisReading:
    """Return the reading that decides the verdict on a claim of several orders."""
    return min(readings, key=lambda reading: _FROM_WORST.index(reading.outcome))


def _compared_along(
    claim: RateClaim, axis: RateAxis, setting: Setting, sampling: Sampling
) -> tuple[list[Comparison], list[float]]:
    """Return what every value of an axis shows, and the claimed order there."""
    comparisons, orders = [], []
    for value in claim.values(axis, setting):
        scheduled = axis.schedule(setting, value)
        comparisons.append(claim.theorem.compared(scheduled, sampling, axis.hypotheses))
        orders.append(float(evaluate(axis.order, claim.theorem.constants(scheduled))))
    return comparisons, orders


def _read_axis(
    claim: RateClaim, axis: RateAxis, setting: Setting, sampling: Sampling
) -> AxisReading:
    grid = claim.values(axis, setting)
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
        slope_ends=slope_ends(grid, comparisons),
    )


def slope_ends(
    grid: Sequence[int], comparisons: Sequence[Comparison]
) -> tuple[float, float] | None:
    """Return the least and the largest slope through the intervals of sampled truths, if any.

    A least-squares slope is a sum of logarithms with fixed weights: it is steepest where those
    of positive weight are at one end of their intervals, and the others at the other.
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
