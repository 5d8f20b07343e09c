"""Claims on PAC learnability: exact figures of a learning problem, compared without sampling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from fltheory.claims.shared.bound_curve import BoundCurve
from fltheory.claims.shared.comparison import BOUND_ROUNDING, Trial, decided
from fltheory.claims.shared.curve_samples import Drawing, drawn_at, judged_curve
from fltheory.claims.statement import Basis, lost_in
from fltheory.engines import Setting
from fltheory.evidence.evaluation import check_point_hypothesis, evaluate
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Evidence, Grade, HypothesisCheck, Outcome, Verdict
from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.fields import Check, must_be, regimes_of
from fltheory.learnability.system import LearningSetting, exact_effort
from fltheory.validation import FloatArray

_LONGEST_FRACTION = 24
_MOST_SAMPLES_TRIED = 20_000
_FROM_BELOW = "bound from below"


@dataclass(frozen=True, eq=False)
class LearningRegime:
    """A named learning problem, made when it is first asked for.

    Attributes
    ----------
    about : str
        What is special here, in a line.
    make : callable
        Makes the problem.
    effort : int
        As that of a `fltheory.theorems.Regime`.
    """

    about: str
    make: Callable[[], LearningSetting]
    effort: ClassVar[int] = 1

    @cached_property
    def setting(self) -> LearningSetting:
        """The problem, the same object every time."""
        return self.make()


@dataclass(frozen=True)
class LearningQuantity:
    """A number that a learning problem has.

    Attributes
    ----------
    value : callable
        A fraction, or a float and a bound on its rounding error.
    text : str
    sample : callable, optional
        Independent estimates of it, (replicas,), from the problem, their number and a generator,
        for figures.
    latex : str
        How it is typeset; by its text where there is none.
    """

    value: Callable[[Any], Fraction | tuple[float, float]]
    text: str
    sample: Callable[[Any, int, np.random.Generator], FloatArray] | None = None
    latex: str = ""


@dataclass(frozen=True, kw_only=True)
class LearningClaim(Basis):
    """A claim ``quantity <= bound``, or with another relation, without sampling.

    Attributes
    ----------
    relation : Relation
        How the quantity is claimed to compare with the bound.

    The other attributes are those of `Statement` and `Basis`.
    """

    why_not_certified: ClassVar[str] = "it is about samples, and no algorithm runs"
    quantity: LearningQuantity
    relation: Relation
    bound: sp.Expr
    checks: ClassVar[Mapping[str, Check]] = {
        "quantity": must_be(LearningQuantity),
        "relation": must_be(Relation),
        "regimes": regimes_of(LearningRegime),
    }

    def _formulas(self) -> tuple[sp.Basic, ...]:
        return (self.bound, *super()._formulas())

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """What it asserts."""
        quantity = self.quantity
        return (Assertion(quantity.text, quantity.latex, self.relation, self.bound),)

    def verdict(self, setting: Setting | LearningSetting, sampling: Sampling) -> Verdict:
        """Compare both sides, in fractions where both are fractions."""
        return self._compared(of_learning(setting))

    @property
    def why_not_searched(self) -> str:
        """Which hypotheses are lost, as nothing meets them; "" for none."""
        return lost_in(self)

    def trial(self, setting: Any, sampling: Sampling) -> Trial:
        """Evaluate the hypotheses, then both sides; problems of too many samples are refused."""
        problem = of_learning(setting)
        if exact_effort(problem) > _MOST_SAMPLES_TRIED:
            raise ValueError(f"setting must have at most {_MOST_SAMPLES_TRIED:,} samples in all")
        checks = point_hypotheses(self, self.constants(problem))
        if not all(check.holds for check in checks):
            return Trial.unmet(checks)
        verdict = self._compared(problem)
        return Trial.applied(verdict.ratio, verdict.outcome is Outcome.REFUTED)

    def _compared(self, problem: LearningSetting) -> Verdict:
        constants = self.constants(problem)
        hypotheses = point_hypotheses(self, constants)
        found = self.quantity.value(problem)
        bound = _exact(self.bound, constants)
        if isinstance(found, Fraction) and bound is not None:
            evidence = Evidence(Grade.RATIONAL, 0.0)
            holds: bool | None = self.relation.holds(found, bound)
            truth, limit, detail = float(found), float(bound), _sides(found, bound)
        else:
            truth, error = found if isinstance(found, tuple) else (float(found), 0.0)
            limit = float(evaluate(self.bound, constants))
            side = "bound" if isinstance(found, Fraction) else "truth"
            why = f"its {side} is no fraction on this setting"
            evidence = Evidence(Grade.FLOAT64, error, why_not_exact=why)
            slack = error + BOUND_ROUNDING * abs(limit)
            ends = {self.relation.holds(end, limit) for end in (truth - slack, truth + slack)}
            holds, detail = (ends.pop() if len(ends) == 1 else None), ""
        return Verdict(
            theorem=self.id,
            reading=self.reading,
            outcome=decided(hypotheses, holds),
            evidence=evidence,
            truth=truth,
            bound=limit,
            hypotheses=hypotheses,
            relation=self.relation,
            detail=detail,
        )

    def curve_over(
        self, settings: Sequence[Any], values: FloatArray, drawing: Drawing
    ) -> BoundCurve:
        """Follow both sides over a parameter."""
        verdicts = [self._compared(one) for one in settings]
        drawn = drawn_at(self.quantity.sample, settings, drawing.draws, drawing.sampling.seed)
        name = _FROM_BELOW if self.relation.is_from_below else "bound"
        return judged_curve(
            self.name,
            self.quantity,
            drawing.variable or "",
            values,
            verdicts,
            drawn,
            bound_name=name,
        )


def of_learning(setting: Setting | LearningSetting) -> LearningSetting:
    """Return the learning problem.

    Raises
    ------
    ValueError
        For the setting of a run.
    """
    if isinstance(setting, Setting):
        raise ValueError(f"setting must be a learning problem, got {setting!r}")
    return setting


def point_hypotheses(claim: Basis, constants: Mapping[Any, Any]) -> tuple[HypothesisCheck, ...]:
    """Evaluate hypotheses without a run."""
    return tuple(check_point_hypothesis(item, constants) for item in claim.hypotheses)


def _exact(expression: sp.Expr, constants: Mapping[Any, Any]) -> Fraction | None:
    """Evaluate in fractions; None where a symbol's value is a float."""
    values = {symbol: constants[symbol] for symbol in expression.free_symbols}
    if not all(isinstance(value, Fraction | int) for value in values.values()):
        return None
    exact = expression.subs({s: sp.Rational(v.numerator, v.denominator) for s, v in values.items()})
    return Fraction(int(exact.p), int(exact.q)) if exact.is_Rational else None


def _sides(truth: Fraction, bound: Fraction) -> str:
    """Return both sides as fractions, where they are short."""
    short = max(truth.denominator, bound.denominator) < 10**_LONGEST_FRACTION
    return f"{truth} against {bound}" if short else ""
