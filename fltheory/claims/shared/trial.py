"""What one setting tells a search for a refutation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fltheory.evidence.verdict import HypothesisCheck


@dataclass(frozen=True)
class Trial:
    """How near a setting comes to refuting a statement.

    Attributes
    ----------
    score : float
        What a search raises: below zero where the statement does not apply.
    applies : bool
        Whether the setting tests it: every hypothesis holds, and whatever else its kind asks for.
    ratio : float
        How far the claim is from being broken, above 1 where it is; NaN where it does not apply.
    refutes : bool
    remark : str
        What else there is to say of it, in a few words.
    """

    score: float
    applies: bool = False
    ratio: float = math.nan
    refutes: bool = False
    remark: str = ""

    @classmethod
    def unmet(cls, checks: Sequence[HypothesisCheck]) -> Trial:
        """Return the trial of a setting at which hypotheses fail: how many, and by how much."""
        margins = [check.margin for check in checks if not check.holds]
        return cls(-sum(1 + math.tanh(abs(margin)) for margin in margins if not math.isnan(margin)))

    @classmethod
    def applied(
        cls, ratio: float, refutes: bool, score: float | None = None, remark: str = ""
    ) -> Trial:
        """Return the trial of a setting at which the statement applies; NaN counts as hopeless."""
        score = ratio if score is None else score
        return cls(-math.inf if math.isnan(score) else score, True, ratio, refutes, remark)


def ratio_of(truth: float, bound: float) -> float:
    """Return truth/bound; above a bound that is not positive, infinity."""
    if bound > 0:
        return truth / bound
    return math.inf if truth > bound else -math.inf
