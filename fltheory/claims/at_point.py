"""Inequalities between numbers that a setting has by itself: no run, no rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fltheory.claims.shared.bound_curve import BoundCurve
from fltheory.claims.shared.comparison import Comparison
from fltheory.claims.shared.curve_samples import (
    CurveSample,
    Drawing,
    drawn_at,
    judged_curve,
    parts_of,
)
from fltheory.claims.statement import Inequality
from fltheory.engines import Setting
from fltheory.evidence.enclosed_check import AFFORDABLE, EnclosedSides, enclosed_at_point
from fltheory.evidence.evaluation import (
    check_point_hypothesis,
    constants_of,
    evaluate,
    theorem_values,
)
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Evidence, Grade
from fltheory.grammar.fields import Check, must_be
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import PointQuantity
from fltheory.validation import FloatArray


@dataclass(frozen=True, kw_only=True)
class PointClaim(Inequality):
    """An inequality between numbers that a setting has by itself: no run, no rounds.

    Where it is claimed at every point of a set, its quantity and bound are taken at the worst
    point, so that one check settles them all. Attributes are those of `Theorem`.

    Examples
    --------
    >>> from fltheory.theorems import get
    >>> claim = get("ca-fed/1")
    >>> claim.quantity.text
    'F(w) - F* at the w where the bound is tightest'
    """

    quantity: PointQuantity
    checks: ClassVar[Mapping[str, Check]] = {"quantity": must_be(PointQuantity)}

    def compared(
        self,
        setting: Setting,
        sampling: Sampling,
        extra_hypotheses: tuple[Hypothesis, ...] = (),
    ) -> Comparison:
        """Evaluate both sides, the hypotheses, and further ones; nothing is sampled."""
        values = theorem_values(self, constants_of(self.constants, setting))
        truth, error = self.quantity.value(setting)
        return Comparison(
            truth=truth,
            bound=float(evaluate(self.bound, values)),
            evidence=Evidence(Grade.FLOAT64, error),
            hypotheses=tuple(
                check_point_hypothesis(item, values)
                for item in (*self.hypotheses, *extra_hypotheses)
            ),
        )

    def enclosed(self, setting: Setting, most: float = AFFORDABLE) -> EnclosedSides:
        """Return both sides enclosed; NotEnclosedError says what in them is not."""
        return enclosed_at_point(self, setting)

    def remark(self, setting: Setting) -> str:
        """Return how tight a claim about all points is at its tightest, where that is known."""
        looseness = self.quantity.looseness
        if looseness is None:
            return ""
        return f"largest truth/bound over {looseness.over} {looseness.largest_ratio(setting):.3g}"

    def drawn_in(self, settings: Sequence[Setting], draws: int, seed: int) -> CurveSample | None:
        """Sample the quantity in each setting; None where it is not drawn."""
        return drawn_at(self.quantity.sample, settings, draws, seed)

    def curve_over(
        self, settings: Sequence[Any], values: FloatArray, drawing: Drawing
    ) -> BoundCurve:
        """Follow both sides over a parameter."""
        judged = [self.best_compared(one, drawing.sampling) for one in settings]
        drawn = self.drawn_in(settings, drawing.draws, drawing.sampling.seed)
        shown = parts_of(self, settings, drawing.parts)
        name = drawing.variable or ""
        return judged_curve(self.name, self.quantity, name, values, judged, drawn, parts=shown)
