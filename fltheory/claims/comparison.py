"""Comparison of both sides of an inequality, and its hypotheses, on one setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from fltheory.evidence.enclosed_check import EnclosedSides
from fltheory.evidence.verdict import Evidence, Grade, HypothesisCheck, Outcome
from fltheory.grammar.assertion import Relation

# A bound takes a few dozen operations, each of which rounds by half an eps; this allows for 128.
BOUND_ROUNDING = 64 * float(np.finfo(np.float64).eps)
_LONGEST_FRACTION = 24
LEAST_EXCESS = 1e-290
"""Near 1e-308 floats lose digits, so a smaller excess may be due to underflow."""


def is_above(lower: float, bound: float) -> bool:
    """Return whether a truth's lower end exceeds a bound by more than rounding or underflow."""
    return lower - BOUND_ROUNDING * abs(bound) - LEAST_EXCESS > bound


@dataclass(frozen=True)
class Comparison:
    """Truth, bound and hypotheses of a theorem on one setting.

    ``fractions`` contains both sides if they are fractions.
    """

    truth: float
    bound: float
    evidence: Evidence
    hypotheses: tuple[HypothesisCheck, ...]
    enclosed: EnclosedSides | None = None
    relation: Relation = Relation.AT_MOST
    fractions: tuple[Fraction, Fraction] | None = None

    @property
    def outcome(self) -> Outcome:
        """The outcome that follows from the hypotheses and both sides."""
        if self.enclosed is not None:
            return decided(self.hypotheses, self.enclosed.below)
        return unmet(self.hypotheses) or self._compared

    @property
    def _compared(self) -> Outcome:
        if self.fractions is not None:
            return _OUTCOMES[self.relation.holds(*self.fractions)]
        rounding = BOUND_ROUNDING * abs(self.bound)
        lower, upper = self.interval
        if self.relation is not Relation.AT_MOST:
            found = {
                self.relation.holds(e, self.bound) for e in (lower - rounding, upper + rounding)
            }
            return _OUTCOMES[found.pop() if len(found) == 1 else None]
        if upper + rounding <= self.bound:
            return Outcome.HOLDS
        if is_above(lower, self.bound) or (math.isinf(self.truth) and not self._is_sampled):
            return Outcome.REFUTED
        return Outcome.UNDECIDED

    @property
    def interval(self) -> tuple[float, float]:
        """Return both ends of the interval around the truth."""
        error = self.evidence.error
        return self.evidence.ends or (self.truth - error, self.truth + error)

    @property
    def _is_sampled(self) -> bool:
        return self.evidence.replicas is not None

    @property
    def sides(self) -> str:
        """Return both sides as text if they are short fractions, otherwise ""."""
        if self.fractions is None:
            return ""
        short = max(side.denominator for side in self.fractions) < 10**_LONGEST_FRACTION
        return " against ".join(map(str, self.fractions)) if short else ""

    @property
    def unseen(self) -> str:
        """Return a sentence on rare events that the sample may miss, if they decide the outcome."""
        if not self._is_sampled or self.outcome is not Outcome.UNDECIDED:
            return ""
        draws = f"{self.evidence.replicas:,} draws"
        if math.isinf(self.truth):
            return f"rare events were not seen: one of {draws} left the floating-point range"
        above = self.interval[1] - self.truth
        if math.isinf(above):
            return f"rare events were not seen: nothing bounds what {draws} did not show"
        open_ones = [check.name for check in self.hypotheses if check.holds is None]
        where = f" or to {', '.join(open_ones)}" if open_ones else ""
        return (
            f"rare events were not seen: what {draws} did not show may add {above:.2g} "
            f"to the truth{where}"
        )

    @classmethod
    def of_enclosed(cls, sides: EnclosedSides) -> Comparison:
        """Return the comparison of enclosed sides."""
        evidence = Evidence(Grade.EXACT, sides.truth_error)
        return cls(sides.truth, sides.bound, evidence, sides.hypotheses, sides)

    def said_not_exact(self, why: str) -> Comparison:
        """Return the comparison, with the reason if it is in float64."""
        if self.evidence.grade is not Grade.FLOAT64:
            return self
        return replace(self, evidence=replace(self.evidence, why_not_exact=why))


_OUTCOMES = {True: Outcome.HOLDS, False: Outcome.REFUTED, None: Outcome.UNDECIDED}


def unmet(hypotheses: Sequence[HypothesisCheck]) -> Outcome | None:
    """Return the outcome if the hypotheses settle it, otherwise None."""
    if any(check.holds is False for check in hypotheses):
        return Outcome.INAPPLICABLE
    if any(check.holds is None for check in hypotheses):
        return Outcome.UNDECIDED
    return None


def decided(hypotheses: Sequence[HypothesisCheck], holds: bool | None) -> Outcome:
    """Return the outcome, given whether the claim itself holds (None if that is open)."""
    return unmet(hypotheses) or _OUTCOMES[holds]


@dataclass(frozen=True)
class Trial:
    """A measure of how close a setting comes to refuting a statement.

    Attributes
    ----------
    score : float
        The number that a search maximises; it is negative if the statement does not apply.
    applies : bool
        Whether the setting tests the statement, which means that every hypothesis and the further
        conditions of its kind hold.
    ratio : float
        A ratio that exceeds 1 if the claim is violated; NaN if the statement does not apply.
    refutes : bool
    remark : str
        A short remark.
    """

    score: float
    applies: bool = False
    ratio: float = math.nan
    refutes: bool = False
    remark: str = ""

    @classmethod
    def unmet(cls, checks: Sequence[HypothesisCheck]) -> Trial:
        """Return the trial of a setting with failing hypotheses, scored by number and margins."""
        margins = [check.margin for check in checks if not check.holds]
        return cls(-sum(1 + math.tanh(abs(margin)) for margin in margins if not math.isnan(margin)))

    @classmethod
    def applied(
        cls, ratio: float, refutes: bool, score: float | None = None, remark: str = ""
    ) -> Trial:
        """Return the trial of a setting to which the statement applies; NaN has the worst score."""
        score = ratio if score is None else score
        return cls(-math.inf if math.isnan(score) else score, True, ratio, refutes, remark)


def ratio_of(truth: float, bound: float) -> float:
    """Return truth/bound, or infinity if the truth exceeds a bound that is not positive."""
    if bound > 0:
        return truth / bound
    return math.inf if truth > bound else -math.inf
