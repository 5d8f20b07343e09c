"""Claimed directions, i.e. claims that a theorem's quantity grows or falls with a variable."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from fltheory.claims.comparison import Comparison, Trial, unmet
from fltheory.claims.curves import BoundCurve
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import AxisReading, RateAxis, worst_of
from fltheory.claims.statement import lost_in
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.grammar.assertion import Relation


@dataclass(frozen=True)
class DirectionClaim(RateClaim):
    """A claim that a theorem's quantity grows or falls with a variable.

    The claim has one axis, and only the direction of the ``order`` is claimed. It is up if the
    order grows with the variable's values, and down if it falls.

    Examples
    --------
    >>> from fltheory.theorems import registered
    >>> claims = [claim for claim in registered() if isinstance(claim, DirectionClaim)]
    >>> sorted({claim.id for claim in claims})[:1]
    ['fedar/average-inactivity']
    """

    why_not_certified: ClassVar[str] = "a direction compares runs, and a certificate holds one"
    searched_where: ClassVar[str] = "met every hypothesis at every value"
    search_raises: ClassVar[str] = "ratio of successive values, which should stay below 1,"
    _relation: ClassVar[Relation] = Relation.GOES_WITH
    _decades: ClassVar[int] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.axes) != 1:
            raise ValueError(
                f"the claim {self.id!r} must have exactly one axis, got {len(self.axes)}"
            )
        order = self.axes[0].order
        if not order.free_symbols:
            raise ValueError(f"order of the claim {self.id!r} must grow or fall, got {order}")

    @property
    def why_not_searched(self) -> str:
        """Why the claim cannot be refuted: missing hypotheses. A direction needs no bound."""
        return lost_in(self.theorem)

    def orders_along(self, axis: RateAxis, values: Sequence[Mapping[Any, Any]]) -> list[float]:
        """Return values that move in the claimed direction.

        Only the first and the last value are compared, so the sizes of values do not matter.
        """
        return [float(evaluate(axis.order, one)) for one in values]

    def known_along(
        self, axis: RateAxis, settings: Sequence[Setting], claimed_slope: float
    ) -> None:
        """Return None, because a limit of the truth does not determine its direction."""
        return

    def _first_judged(self, grid: Sequence[int]) -> int:
        """Return 0, because every step counts."""
        return 0

    def _trial_in_vain(self, excess_of_bound: float) -> None:
        """Return None, because the bound does not determine the direction of the truth."""
        return

    def _trial_of(self, reading: AxisReading) -> Trial:
        """Return the trial of the step that is closest to the opposite direction."""
        verdict = self.judged([reading])
        return Trial.applied(
            verdict.truth, verdict.outcome is Outcome.REFUTED, None, verdict.detail
        )

    def judged(self, readings: Sequence[AxisReading]) -> Verdict:
        """Judge a claimed direction by the truths at successive values of the variable.

        The claim holds if every step goes in the claimed direction by more than the errors of both
        truths. It is refuted if one step goes in the opposite direction by more than these errors.
        Otherwise it is undecided.
        """
        reading = worst_of(readings)
        axis, comparisons, orders = reading.axis, reading.comparisons, reading.orders
        hypotheses = reading.hypotheses
        steps = list(pairwise(comparisons))
        if orders[0] > orders[-1]:
            steps = [(after, before) for before, after in steps]
        worst = max(steps, key=_quotient)
        error, scale = math.fsum(side.evidence.error for side in worst), worst[1].truth
        truths = ", ".join(f"{comparison.truth:.4g}" for comparison in comparisons)
        values = ", ".join(str(value) for value in reading.grid)
        return Verdict(
            theorem=self.id,
            reading=self.reading,
            outcome=unmet(hypotheses) or _direction(steps),
            evidence=replace(
                worst[0].evidence, error=error / scale if scale else math.inf if error else 0.0
            ),
            truth=_quotient(worst),
            bound=1.0,
            hypotheses=hypotheses,
            detail=f"{axis.variable} = {values}: {truths}",
        )

    def with_claimed_line(self, curve: BoundCurve, reading: AxisReading) -> BoundCurve:
        """Add the line of previous truths, beyond which the next truth is claimed to lie."""
        before = np.concatenate([[np.nan], curve.judged[:-1]])
        course = "exceeded" if reading.orders[-1] > reading.orders[0] else "undercut"
        return replace(curve, bound=before, bound_name=f"truth one value before, to be {course}")


def _quotient(step: tuple[Comparison, Comparison]) -> float:
    """Return the ratio of the first truth to the second, or one if both are zero."""
    lower, higher = (side.truth for side in step)
    if higher == 0:
        return 1.0 if lower == 0 else math.inf
    return lower / higher


def _direction(steps: Sequence[tuple[Comparison, Comparison]]) -> Outcome:
    """Judge whether the first of each pair is below the second."""
    pairs = [(lower.interval, higher.interval) for lower, higher in steps]
    if all(higher[0] > lower[1] for lower, higher in pairs):
        return Outcome.HOLDS
    contrary = any(higher[1] < lower[0] for lower, higher in pairs)
    return Outcome.REFUTED if contrary else Outcome.UNDECIDED
