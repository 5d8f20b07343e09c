"""Verdicts: outcome, evidence, and checked hypotheses."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from enum import Enum

from fltheory.grammar.assertion import Relation
from fltheory.grammar.hypothesis import Hypothesis

AT_THE_LIMIT = sys.float_info.min
"""The amount by which a strict inequality fails, as a margin, if both sides are equal."""
SLOPE_IS_MET = 0.05
SLOPE_IS_MISSED = 0.25
"""A slope exceeding the claimed one by at most the first limit counts as the claimed order.

From the second limit on, it counts as another order.
"""


class Outcome(Enum):
    """The four verdicts; each value says what the verdict means.

    Examples
    --------
    >>> Outcome.HOLDS.value
    'every hypothesis is met and truth <= bound'
    """

    HOLDS = "every hypothesis is met and truth <= bound"
    REFUTED = "every hypothesis is met and truth > bound"
    INAPPLICABLE = "some hypothesis fails"
    UNDECIDED = (
        "the error interval of the truth, or of a hypothesis, straddles its limit: "
        "it is too wide, or rare events were not seen"
    )


class Scope(Enum):
    """The scope of a verdict; each value is its name in files and tables."""

    ONE_SETTING = "one setting"
    CLASS = "every loss of the class"


class Grade(Enum):
    """Grades of evidence; each value says what the grade means."""

    RATIONAL = "exact arithmetic, no rounding"
    EXACT = "enclosed: every rounding of truth, bound, constants and hypotheses accounted for"
    FLOAT64 = "computed in float64, with an estimate of its rounding that is not a proof"
    STATISTICAL = "sampled, with a stated probability of error"


@dataclass(frozen=True)
class Evidence:
    """How a truth was obtained.

    Attributes
    ----------
    grade : Grade
    error : float
        Half-width of the interval around the truth. It is a bound on rounding errors or the longer
        side of a confidence interval, which is infinite if nothing bounds unseen values.
    error_probability : float
        Probability that at least one interval used in the check misses its value; zero unless the
        evidence is statistical.
    replicas : int or None
        Sample size, if the evidence is statistical.
    scope : str
        Limits of the evidence, if any.
    ends : pair of float, optional
        Ends of the interval, if it is not symmetric.
    why_not_exact : str
        For float64, the reason why the check was not enclosed.
    """

    grade: Grade
    error: float
    error_probability: float = 0.0
    replicas: int | None = None
    scope: str = ""
    ends: tuple[float, float] | None = None
    why_not_exact: str = ""


@dataclass(frozen=True)
class HypothesisCheck:
    """The check of one hypothesis on one setting.

    Attributes
    ----------
    name, condition, source : str
    holds : bool or None
        None if the error interval of the condition's value contains the limit.
    margin : float
        Distance inside (positive) or outside (negative) the limit, or NaN if the condition is
        undefined, for instance because of division by zero.
    at_round : int or None
        The round with the smallest margin, for conditions on every round.
    left, right : float
        Approximate values of both sides, in that round; NaN if undefined or unknown.
    relation : str
        The condition's sign: ``<=``, ``<``, ``>=``, ``>``, ``=`` or ``!=``.
    """

    name: str
    condition: str
    source: str
    holds: bool | None
    margin: float
    at_round: int | None = None
    left: float = math.nan
    right: float = math.nan
    relation: str = "<="

    @classmethod
    def of(
        cls,
        hypothesis: Hypothesis,
        holds: bool | None,
        margin: float,
        at_round: int | None = None,
        sides: tuple[float, float] = (math.nan, math.nan),
    ) -> HypothesisCheck:
        """Return the check of a hypothesis, given its results."""
        name, condition, source = hypothesis.name, hypothesis.text, hypothesis.source
        return cls(name, condition, source, holds, margin, at_round, *sides, hypothesis.relation)

    @property
    def sides(self) -> str:
        """Return both sides in numbers, with enough digits to distinguish them.

        Examples
        --------
        >>> check = HypothesisCheck("small step", "s <= 1", "", False, -1e-7, 3, 1.0000001, 1.0)
        >>> check.sides
        '1.0000001 <= 1 in round 3'
        """
        where = "" if self.at_round is None else f" in round {self.at_round}"
        if math.isnan(self.left) or math.isnan(self.right):
            return f"undefined{where}"
        left, right = _told_apart(self.left, self.right)
        return f"{left} {self.relation} {right}{where}"

    @property
    def failure(self) -> str:
        """Return a line that says how the hypothesis fails."""
        where = "" if self.at_round is None else f" in round {self.at_round}"
        if math.isnan(self.margin):
            return f"{self.name}: undefined{where}"
        if self.margin == -AT_THE_LIMIT:
            return f"{self.name}: both sides are equal, {self.relation} is required{where}"
        return f"{self.name}: margin {self.margin:.3g}{where}"


@dataclass(frozen=True)
class Verdict:
    """The outcome of checking a statement on one setting.

    Attributes
    ----------
    theorem, reading : str
        Id and reading of the statement.
    outcome : Outcome
    evidence : Evidence
    truth, bound : float
        Both sides of the inequality. For a claimed order, the slope of the truth and the claimed
        slope over the last decade, in logarithms.
    hypotheses : tuple of HypothesisCheck
    detail : str
        Details of a claimed order, or both sides as fractions.
    relation : Relation
        The claimed relation between truth and bound. For an order, both are slopes.

    Examples
    --------
    >>> from fltheory import theorems, verify
    >>> theorem = theorems.get("sa-fl/5", reading="derived")
    >>> verdict = verify.check(theorem, theorem.regimes["q = 0"].setting)
    >>> verdict.outcome.name, verdict.truth <= verdict.bound
    ('HOLDS', True)
    """

    theorem: str
    reading: str
    outcome: Outcome
    evidence: Evidence
    truth: float
    bound: float
    hypotheses: tuple[HypothesisCheck, ...]
    detail: str = ""
    relation: Relation = Relation.AT_MOST

    @property
    def scope(self) -> Scope:
        """The scope, i.e. a single setting. Verdicts on whole classes come from `worst_case`."""
        return Scope.ONE_SETTING

    @property
    def is_rate(self) -> bool:
        """Whether truth and bound are slopes."""
        return self.relation is Relation.OF_ORDER

    @property
    def ratio(self) -> float:
        """truth/bound or, for a claimed order, the excess of the truth's slope. It may be NaN.

        For a lower bound it is bound/truth, so in both cases a value above 1 violates the bound.
        """
        if self.is_rate:
            return self.truth - self.bound
        if self.relation.is_from_below:
            return _quotient(self.bound, self.truth)
        return _quotient(self.truth, self.bound)

    @property
    def contrary(self) -> str:
        """The sign that stands between truth and bound if the claim is refuted."""
        return self.relation.contrary

    @property
    def failed(self) -> tuple[HypothesisCheck, ...]:
        """Hypotheses that are not met."""
        return tuple(check for check in self.hypotheses if check.holds is False)


def _told_apart(left: float, right: float) -> tuple[str, str]:
    """Return two numbers as texts that are equal only if the numbers are."""
    for digits in range(4, 17):
        texts = f"{left:.{digits}g}", f"{right:.{digits}g}"
        if left == right or texts[0] != texts[1]:
            return texts
    return repr(float(left)), repr(float(right))


def _quotient(above: float, below: float) -> float:
    if below == 0:
        return 0.0 if above == 0 else math.inf
    return above / below
