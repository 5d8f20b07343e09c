"""Claimed orders, i.e. claims that a theorem's quantity decays at a certain order along a schedule.

A schedule determines the step sizes. The module also finds the limit of a quantity as a run grows,
if that limit is known and nonzero.

With the same steps in every round, the moments of a run converge, but often not to zero, because
gradient noise and absent clients leave an error that no number of rounds removes. Such a limit
refutes every vanishing order, whatever constants the order hides, without fitting a slope.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
import sympy as sp

from fltheory import validation
from fltheory.claims.comparison import Comparison, Trial, ratio_of
from fltheory.claims.curves import BoundCurve, Drawing, plain_curve, quantity_label, sides_of
from fltheory.claims.rate_axis import (
    AxisReading,
    EnclosedSlopes,
    KnownDecay,
    RateAxis,
    axis_reading,
    evidence_of,
    slope,
    worst_hypotheses,
    worst_of,
)
from fltheory.claims.statement import Inequality, Statement, lost_in, of_runs
from fltheory.engines import Setting, stationary
from fltheory.engines.enclosure.enclosed import NotEnclosedError
from fltheory.evidence.enclosed_check import AFFORDABLE, enclosed_on, enclosed_run
from fltheory.evidence.evaluation import constants_of, evaluate, theorem_values, values_in
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import (
    SLOPE_IS_MET,
    SLOPE_IS_MISSED,
    Grade,
    Outcome,
    Verdict,
)
from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.fields import check_fields, must_be, regimes_of
from fltheory.grammar.quantities import BoundedQuantity
from fltheory.grammar.regime import Regime
from fltheory.grammar.units import Unit
from fltheory.learnability.system import LearningSetting

_FIELDS = ("squared_distance", "squared_gradient", "excess_loss")


def known_limit(quantity: Any, settings: Sequence[Setting]) -> float | None:
    """Return a lower bound on a quantity's limit along a run, or None if no limit is known.

    Parameters
    ----------
    quantity : BoundedQuantity, or a quantity that needs no run
        Limits are known for the last value and for a plain mean over the rounds, which has the same
        limit.
    settings : sequence of Setting
        Settings along a variable, which must differ only in their numbers of rounds.
    """
    if not isinstance(quantity, BoundedQuantity) or quantity.field not in _FIELDS:
        return None
    if quantity.reduction not in ("last", "mean") or quantity.weights is not None:
        return None
    first = settings[0]
    if not all(_differ_in_rounds_alone(first, other) for other in settings):
        return None
    try:
        limit = stationary(first)
    except (ValueError, ArithmeticError):
        return None
    value = float(getattr(limit, quantity.field)) - limit.rounding_error.get(quantity.field, 0.0)
    return max(value, 0.0) if limit.converges and math.isfinite(value) else None


def _differ_in_rounds_alone(one: Setting, other: Setting) -> bool:
    return (
        one.algorithm is other.algorithm
        and one.problem is other.problem
        and one.participation is other.participation
    )


def vanishes(order: sp.Expr, variable: sp.Symbol, values: Mapping[sp.Symbol, float]) -> bool:
    """Return whether a claimed order tends to zero as its variable grows, with all else fixed.

    It also returns False if SymPy cannot find the limit, which happens for some maxima and cases.
    Slopes then decide.
    """
    known: dict[Any, Any] = {
        symbol: value
        for symbol, value in values.items()
        if symbol != variable and symbol in order.free_symbols
    }
    try:
        return bool(sp.limit(order.subs(known), variable, sp.oo) == 0)
    except (NotImplementedError, TypeError, ValueError):
        return False


_MOST_ROUNDS_AT_A_POINT = 500
_WORK_A_VALUE = AFFORDABLE / 40
"""Limit on the cost of enclosing a run at one of up to ten values of a variable."""


@dataclass(frozen=True, kw_only=True)
class RateClaim(Statement):
    """A corollary that a theorem's quantity has some order of decay under a schedule of steps.

    Attributes
    ----------
    theorem : Inequality
        The theorem whose quantity, bound and hypotheses the claim uses.
    axes : tuple of RateAxis
        The claimed orders, all of which must hold.

    The other attributes are those of `Statement`.

    Examples
    --------
    A claim that the quantity of your own theorem decays as 1/R on a setting, over three decades:

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

    theorem: Inequality
    axes: tuple[RateAxis, ...] = ()
    _relation: ClassVar[Relation] = Relation.OF_ORDER
    _decades: ClassVar[int] = 3

    why_not_certified: ClassVar[str] = "no single run can break an order"
    searched_where: ClassVar[str] = (
        "met every hypothesis at every value, with a bound of the claimed order"
    )
    search_raises: ClassVar[str] = "truth/bound at the last value"
    search_budget: ClassVar[int] = 100

    def __post_init__(self) -> None:
        check_fields(
            self,
            f"the claim {self.id!r}",
            theorem=must_be(Inequality),
            axes=partial(validation.tuple_of, kind=RateAxis),
            regimes=regimes_of(Regime),
        )
        if not self.axes:
            raise ValueError(f"the claim {self.id!r} must have at least one axis, got no axes")
        theorem = self.theorem.with_symbols_of(self._formulas_of_axes())
        object.__setattr__(self, "theorem", theorem)

    def _formulas_of_axes(self) -> tuple[sp.Basic, ...]:
        conditions = (item.condition for axis in self.axes for item in axis.hypotheses)
        return (*(axis.order for axis in self.axes), *conditions)

    def values(self, axis: RateAxis, setting: Setting) -> tuple[int, ...]:
        """Return an axis's values for a setting, checking that they cover enough decades.

        Raises
        ------
        ValueError
            If the values cover fewer decades than the claim needs.
        """
        return axis.values(setting, decades=self._decades)

    def theorem_on(self, axis: RateAxis) -> Inequality:
        """Return the theorem with the conditions of an axis added."""
        if not axis.hypotheses:
            return self.theorem
        hypotheses = (*self.theorem.hypotheses, *axis.hypotheses)
        return replace(cast(Any, self.theorem), hypotheses=hypotheses)

    @property
    def basis(self) -> Inequality:
        """The owner of the symbols and hypotheses, i.e. the theorem on which the claim is based."""
        return self.theorem

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """The claim's assertions, one for each variable."""
        left = self.theorem.quantity.text, self.theorem.quantity.latex
        return tuple(
            Assertion(*left, self._relation, axis.order, axis.variable, axis.hypotheses)
            for axis in self.axes
        )

    def readings(self, setting: Setting, sampling: Sampling) -> tuple[AxisReading, ...]:
        """Determine the order of decay over three decades of each variable.

        If the statement's own schedules do not refute it, other families of schedules are tried,
        and the readings of those that refute it are added.
        """
        own = tuple(_read_axis(self, axis, setting, sampling) for axis in self.axes)
        if worst_of(own).outcome is Outcome.REFUTED:
            return own
        others = (one for axis in self.axes for one in axis.of_families)
        refuting = (one for one in others if self._trial_along(one, setting, sampling).refutes)
        return (*own, *(_read_axis(self, one, setting, sampling) for one in refuting))

    @property
    def why_not_searched(self) -> str:
        """Why the claim cannot be refuted: missing hypotheses or unknown constants of the bound."""
        regimes = self.regimes.values()
        if regimes and not any(self._can_be_refuted_on(regime.setting) for regime in regimes):
            unknown = (
                "its bound has constants that are not known; fltheory verify judges its slopes"
            )
            return lost_in(self.theorem) or unknown
        return lost_in(self.theorem)

    def _can_be_refuted_on(self, setting: Setting) -> bool:
        """Return whether the truth could exceed a known bound or has a known limit."""
        theorem = self.theorem
        values = theorem_values(theorem, constants_of(theorem.constants, setting))
        in_bound = theorem.bound.free_symbols
        if not any(math.isnan(value) for key, value in values.items() if key in in_bound):
            return True
        along = (self.settings_along(axis, setting) for axis in self.axes)
        return any(known_limit(theorem.quantity, settings) is not None for settings in along)

    def settings_along(self, axis: RateAxis, setting: Setting) -> list[Setting]:
        """Return the settings at an axis's values."""
        return [axis.schedule(setting, value) for value in self.values(axis, setting)]

    def orders_along(self, axis: RateAxis, values: Sequence[Mapping[Any, Any]]) -> list[float]:
        """Return the claimed order, given the values of all symbols along the axis.

        Raises
        ------
        ValueError
            If the claim is empty, because its order is not above 0 at the last value.
        """
        orders = [float(evaluate(axis.order, one)) for one in values]
        if orders[-1] <= 0:
            raise ValueError(
                f"order of the axis of {axis.variable} must end above 0, got {axis.order} = "
                f"{orders[-1]:g}"
            )
        return orders

    def known_along(
        self, axis: RateAxis, settings: Sequence[Setting], claimed_slope: float
    ) -> KnownDecay | None:
        """Return a known lower bound on the truth, if it decays too slowly for the claimed order.

        Return None if no such bound is known. A direction makes no claim about limits.
        """
        limit = known_limit(self.theorem.quantity, settings)
        values = theorem_values(self.theorem, self.theorem.constants(settings[-1])) if limit else {}
        if limit and vanishes(axis.order, axis.variable, values):
            return KnownDecay(0.0, f"tends to at least {limit:.3g}", in_floats=True)
        known = None if axis.known_decay is None else axis.known_decay(settings)
        leaves = known is not None and known.exponent - claimed_slope >= SLOPE_IS_MISSED
        return known if leaves else None

    def trial(self, setting: Any, sampling: Sampling) -> Trial:
        """Try each axis as far as the hypotheses are met, and return the best trial."""
        setting = of_runs(self, setting)
        axes = (one for axis in self.axes for one in (axis, *axis.of_families))
        tried = [self._trial_along(axis, setting, sampling) for axis in axes]
        return max(tried, key=lambda one: one.score)

    def _trial_along(self, axis: RateAxis, setting: Setting, sampling: Sampling) -> Trial:
        grid, theorem = self.values(axis, setting), self.theorem_on(axis)
        settings = self.settings_along(axis, setting)
        values = [theorem_values(theorem, constants_of(theorem.constants, one)) for one in settings]
        # This comes before the hypotheses, so that an empty claim is reported even if none of them
        # is met.
        orders = self.orders_along(axis, values)
        checks = worst_hypotheses([theorem.hypotheses_without_run(one) for one in settings])
        if not all(check.holds for check in checks):
            return Trial.unmet(checks)
        known = self.known_along(axis, settings, slope(grid, orders))
        of_run = {item.symbol for item in theorem.round_symbols}
        if not any(of_run & item.condition.free_symbols for item in theorem.hypotheses):
            # No hypothesis involves the earlier runs, so they need not be computed.
            first = self._first_judged(grid)
            grid, settings = grid[first:], settings[first:]
            orders, values = orders[first:], values[first:]
        if known is None and not of_run & theorem.bound.free_symbols:
            # No run needs to be computed if the bound shows that it could not refute the claim.
            bounds = [float(evaluate(theorem.bound, one)) for one in values]
            vain = self._trial_in_vain(slope(grid, bounds) - slope(grid, orders))
            if vain is not None:
                return vain
        comparisons: list[Comparison] = []
        for one in settings:
            comparisons.append(theorem.compared(one, sampling))
            if not all(check.holds for check in comparisons[-1].hypotheses):
                return Trial.unmet(comparisons[-1].hypotheses)
        return self._trial_of(axis_reading(axis, grid, comparisons, orders, known))

    def _first_judged(self, grid: Sequence[int]) -> int:
        """Return the index of the first value judged, which is the beginning of the last decade."""
        return next(place for place, value in enumerate(grid) if 10 * value >= grid[-1])

    def _trial_in_vain(self, excess_of_bound: float) -> Trial | None:
        """Return the trial if the bound decays more slowly than claimed, otherwise None."""
        if excess_of_bound <= SLOPE_IS_MET:
            return None
        return Trial(-1.0 if math.isnan(excess_of_bound) else -math.tanh(excess_of_bound))

    def _trial_of(self, reading: AxisReading) -> Trial:
        """Return how close truth and slope come to exceeding the bound and the claimed order."""
        if reading.known is not None:
            refutes = reading.outcome is Outcome.REFUTED
            return Trial.applied(math.inf, refutes, remark=reading.text)
        vain = self._trial_in_vain(reading.bound_slope - reading.claimed_slope)
        if vain is not None:
            return vain
        last = reading.comparisons[-1]
        ratio = ratio_of(last.truth, last.bound)
        excess = reading.truth_slope - reading.claimed_slope - SLOPE_IS_MISSED
        refutes = reading.outcome is Outcome.REFUTED
        # Both excesses are needed, so the search maximises the smaller of the two.
        return Trial.applied(ratio, refutes, min(ratio, 10.0**excess), reading.text)

    def judged(self, readings: Sequence[AxisReading]) -> Verdict:
        """Judge a claimed order by its slopes.

        A slope is fitted over the last decade. An excess over the claimed slope of at most 0.05
        counts as the claimed order. An excess of at least 0.25 counts as a different order if the
        bound itself decays as claimed and the truth ends above it. Everything else is undecided.
        Whatever the slopes, a known limit above zero refutes a vanishing order, and a known power
        refutes an order that falls faster. A claim of several orders is refuted if one of the
        orders is refuted, and holds if all of them hold. If the claim specifies schedules only by
        their order, any family of such schedules can refute it.
        """
        worst = worst_of(readings)
        texts = [*(reading.text for reading in readings), *filter(None, [worst.unseen])]
        return Verdict(
            theorem=self.id,
            reading=self.reading,
            outcome=worst.outcome,
            evidence=evidence_of(worst, readings),
            truth=worst.truth_slope,
            bound=worst.claimed_slope,
            hypotheses=worst.hypotheses,
            relation=Relation.OF_ORDER,
            detail="; ".join(texts),
        )

    def verdict(self, setting: Setting | LearningSetting, sampling: Sampling) -> Verdict:
        """Return the verdict from the readings of all axes."""
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
        """Return the claim's own conditions, in the theorem's symbols.

        Conditions that give only the order of a step size are left out, because the hidden constant
        carries the unit.
        """
        return self.theorem.units, [
            (f"hypothesis '{hypothesis.name}'", hypothesis.condition)
            for axis in self.axes
            for hypothesis in axis.hypotheses
            if not hypothesis.stated
        ]

    def curve(self, setting: Setting | LearningSetting, drawing: Drawing) -> BoundCurve:
        """Compute both sides over the variable that decides the verdict."""
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
            settings = self.settings_along(reading.axis, setting)
            drawn = self.theorem.drawn_in(settings, drawing.draws, drawing.sampling.seed)
            curve = replace(curve, **({} if drawn is None else drawn.fields()))
        return self.with_claimed_line(curve, reading)

    def with_claimed_line(self, curve: BoundCurve, reading: AxisReading) -> BoundCurve:
        """Add the claimed order as a line through the truth at the beginning of the last decade."""
        place = int(np.argmax(curve.values >= curve.values[-1] / 10))
        claimed = np.array(reading.orders) / reading.orders[place] * curve.judged[place]
        bounds = np.array([one.bound for one in reading.comparisons])
        parts = {"bound": bounds} if np.isfinite(bounds).all() else {}
        return replace(curve, bound=claimed, parts=parts, note=reading.text)


def _read_axis(
    claim: RateClaim, axis: RateAxis, setting: Setting, sampling: Sampling
) -> AxisReading:
    """Evaluate both sides, the hypotheses and the claimed order at every value of an axis."""
    grid, settings = claim.values(axis, setting), claim.settings_along(axis, setting)
    theorem = claim.theorem_on(axis)
    # This comes before any run, so that an empty claim is reported whatever its hypotheses are.
    orders = claim.orders_along(axis, [values_in(theorem, [axis.order], one) for one in settings])
    known = claim.known_along(axis, settings, slope(grid, orders))
    try:
        if known is not None and known.in_floats:
            # Known lower bounds are computed in floats, even if the values along the axis are
            # enclosed.
            raise NotEnclosedError("a stationary error")
        comparisons, slopes = _enclosed(theorem, axis.order, grid, settings)
    except NotEnclosedError as error:
        computed = [theorem.compared(one, sampling) for one in settings]
        exact = all(one.evidence.grade is Grade.FLOAT64 for one in computed)
        comparisons = [one.said_not_exact(str(error)) for one in computed] if exact else computed
        slopes = None
    return axis_reading(axis, grid, comparisons, orders, known, slopes)


def _enclosed(
    theorem: Inequality, order: sp.Expr, grid: Sequence[int], settings: Sequence[Setting]
) -> tuple[list[Comparison], EnclosedSlopes]:
    """Enclose both sides and the order at every value.

    Raises
    ------
    NotEnclosedError
        If one of these cannot be enclosed; the message says which.
    """
    if not theorem.fields_of_run() and settings[-1].rounds > _MOST_ROUNDS_AT_A_POINT:
        raise NotEnclosedError(
            f"a quantity that needs no run, for more than {_MOST_ROUNDS_AT_A_POINT} rounds"
        )
    sides = [theorem.enclosed(settings[0], _WORK_A_VALUE)]
    if theorem.fields_of_run():
        # Either all or none are enclosed, so the most expensive run comes first. Its result is
        # cached.
        enclosed_run(cast(Any, theorem), settings[-1], _WORK_A_VALUE)
    sides += [theorem.enclosed(one, _WORK_A_VALUE) for one in settings[1:]]
    orders = [enclosed_on(theorem, one, order) for one in settings]
    slopes = EnclosedSlopes.of(grid, sides, orders)
    if slopes is None:
        raise NotEnclosedError("the slope of a quantity that is not certainly positive and finite")
    return [Comparison.of_enclosed(one) for one in sides], slopes
