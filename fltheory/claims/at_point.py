"""Inequalities between numbers of a setting or a learning problem that need no run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import sympy as sp

from fltheory.claims.comparison import Comparison, Trial
from fltheory.claims.curves import CurveSample, drawn_at
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
from fltheory.evidence.verdict import Evidence, Grade, Outcome
from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.fields import Check, must_be
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.units import Unit
from fltheory.learnability.system import LearningSetting, exact_effort

_MOST_SAMPLES_TRIED = 20_000


@dataclass(frozen=True, kw_only=True)
class PointClaim(Inequality):
    """An inequality between numbers of a setting that need no run.

    If the inequality is claimed at every point of a set, its quantity and bound are taken at the
    worst point, so that one check settles all points. The attributes are those of `Theorem`.

    Examples
    --------
    >>> from fltheory.theorems import get
    >>> claim = get("ca-fed/1")
    >>> claim.quantity.text
    'F(w) - F* at the w where the bound is tightest'
    """

    quantity: PointQuantity
    checks: ClassVar[Mapping[str, Check]] = {"quantity": must_be(PointQuantity)}

    def compared(self, setting: Any, sampling: Sampling) -> Comparison:
        """Evaluate both sides and the hypotheses, in fractions if possible; no sampling."""
        values = theorem_values(self, constants_of(self.constants, setting))
        checks = tuple(check_point_hypothesis(item, values) for item in self.hypotheses)
        of = partial(Comparison, hypotheses=checks, relation=self.assertions[0].relation)
        found = self.quantity.value(setting)
        if isinstance(found, Fraction):
            bound = _exact(self.bound, values)
            if bound is not None:
                evidence = Evidence(Grade.RATIONAL, 0.0)
                return of(float(found), float(bound), evidence, fractions=(found, bound))
        truth, error = (float(found), 0.0) if isinstance(found, Fraction) else found
        side = "bound" if isinstance(found, Fraction) else "truth"
        why = f"its {side} is no fraction on this setting"
        evidence = Evidence(Grade.FLOAT64, error, why_not_exact=why)
        return of(truth, float(evaluate(self.bound, values)), evidence)

    def enclosed(self, setting: Setting, most: float = AFFORDABLE) -> EnclosedSides:
        """Return both sides enclosed; NotEnclosedError names the part that cannot be enclosed."""
        return enclosed_at_point(self, setting)

    def remark(self, setting: Setting) -> str:
        """Return how tight a claim about all points is at its tightest point, if this is known."""
        looseness = self.quantity.looseness
        if looseness is None:
            return ""
        return f"largest truth/bound over {looseness.over} {looseness.largest_ratio(setting):.3g}"

    def drawn_in(self, settings: Sequence[Setting], draws: int, seed: int) -> CurveSample | None:
        """Sample the quantity in each setting, or return None if it cannot be sampled."""
        return drawn_at(self.quantity.sample, settings, draws, seed)


@dataclass(frozen=True, kw_only=True)
class LearningClaim(PointClaim):
    """A claim on a learning problem that ``quantity <= bound``, or with a different relation.

    Attributes
    ----------
    relation : Relation
        The claimed relation between quantity and bound.

    The other attributes are those of `Theorem`.
    """

    why_not_certified: ClassVar[str] = "it is about samples, and no algorithm runs"
    relation: Relation
    checks: ClassVar[Mapping[str, Check]] = {**PointClaim.checks, "relation": must_be(Relation)}

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """The claim's assertions."""
        return tuple(replace(one, relation=self.relation) for one in super().assertions)

    def spoken_of(self, setting: Any) -> LearningSetting:
        """Return the learning problem, or raise ValueError if given the setting of a run."""
        return of_learning(setting)

    def best_compared(self, setting: Any, sampling: Sampling) -> Comparison:
        """Compare both sides; if possible, `compared` uses fractions, which need no enclosures."""
        return self.compared(setting, sampling)

    def trial(self, setting: Any, sampling: Sampling) -> Trial:
        """Evaluate the hypotheses, then both sides; refuse problems with too many samples."""
        problem = of_learning(setting)
        if exact_effort(problem) > _MOST_SAMPLES_TRIED:
            raise ValueError(f"setting must have at most {_MOST_SAMPLES_TRIED:,} samples in all")
        checks = self.hypotheses_without_run(problem)
        if not all(check.holds for check in checks):
            return Trial.unmet(checks)
        verdict = self.verdict(problem, sampling)
        return Trial.applied(verdict.ratio, verdict.outcome is Outcome.REFUTED)

    def unit_formulas(self) -> tuple[Mapping[sp.Symbol, Unit], Sequence[tuple[str, sp.Basic]]]:
        """Return no units or formulas, because probabilities and counts have no units."""
        return {}, ()


def of_learning(setting: Setting | LearningSetting) -> LearningSetting:
    """Return the learning problem.

    Raises
    ------
    ValueError
        If given the setting of a run.
    """
    if isinstance(setting, Setting):
        raise ValueError(f"setting must be a learning problem, got {setting!r}")
    return setting


def _exact(expression: sp.Expr, constants: Mapping[Any, Any]) -> Fraction | None:
    """Evaluate with exact fractions, or return None if a symbol's value is a float."""
    values = {symbol: constants[symbol] for symbol in expression.free_symbols}
    if not all(isinstance(value, Fraction | int) for value in values.values()):
        return None
    exact = expression.subs({s: sp.Rational(v.numerator, v.denominator) for s, v in values.items()})
    return Fraction(int(exact.p), int(exact.q)) if exact.is_Rational else None
