"""What a curve says of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fltheory.claims.bound_curve import confidence
from fltheory.verify import BoundCurve, Outcome

X = np.array([1.0, 2.0, 4.0])
COMPUTED = BoundCurve(
    "t (printed)",
    "$R$",
    "$y$",
    X,
    8 * X,
    (Outcome.HOLDS, Outcome.REFUTED, Outcome.HOLDS),
    truth=2 * X,
    truth_error=0 * X,
    sampled=3 * X,
    interval=X,
    replicas=10,
    error_probability=1e-3,
    parts={"part": X},
)
SAMPLED = replace(COMPUTED, truth=np.array([2.0, np.nan, np.nan]), truth_error=None)


def test_several_verdicts_are_counted() -> None:
    assert COMPUTED.verdict == "HOLDS at 2, REFUTED at 1"
    assert COMPUTED.heading == "t (printed): HOLDS at 2, REFUTED at 1"
    assert replace(COMPUTED, outcomes=()).heading == "t (printed): no claim"


def test_a_verdict_from_a_sample_says_so() -> None:
    """Also where the truth of the first rounds is known."""
    one = replace(SAMPLED, outcomes=(Outcome.HOLDS,) * 3, error_probability=1e-9)
    assert one.heading == "t (printed): HOLDS (sampled, 99.9999999 % intervals)"


def test_what_is_judged_is_the_truth_if_it_is_computed() -> None:
    assert COMPUTED.judged is COMPUTED.truth
    assert COMPUTED.judged_error is COMPUTED.truth_error
    assert SAMPLED.judged is SAMPLED.sampled
    assert SAMPLED.judged_error is SAMPLED.interval


def test_relative_to_the_least_value() -> None:
    relative = COMPUTED.relative()
    assert relative.bound.tolist() == [1.0, 2.0, 4.0]
    assert relative.truth is not None
    assert relative.truth.tolist() == [1.0, 2.0, 4.0]
    assert relative.sampled is not None
    assert relative.interval is not None
    assert relative.sampled.tolist() == [1.5, 3.0, 6.0]
    assert relative.interval.tolist() == [0.5, 1.0, 2.0]
    assert (relative.verdict, dict(relative.parts)) == (COMPUTED.verdict, {})
    with pytest.raises(ValueError, match="truth must be positive to be taken relative to, got 0"):
        replace(COMPUTED, truth=X - 1).relative()


@pytest.mark.parametrize(
    ("chance", "text"),
    [(0.05, "90 %"), (1e-2, "99 %"), (1e-3, "99.9 %"), (2e-3, "99 %"), (1e-9, "99.9999999 %")],
)
def test_confidence_is_never_more_than_it_is(chance: float, text: str) -> None:
    assert confidence(chance) == text
    assert float(text.removesuffix(" %")) <= 100 * (1 - chance) + 1e-12


def test_something_must_be_known() -> None:
    with pytest.raises(ValueError, match="truth must be given, with its error, where"):
        replace(SAMPLED, sampled=None)
