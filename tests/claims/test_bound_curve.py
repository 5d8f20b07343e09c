"""What a curve says of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fltheory.claims.curves import BoundCurve, at_most
from fltheory.verify import Outcome

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


def test_several_verdicts_are_told_with_where_they_hold() -> None:
    holds, refuted, no = Outcome.HOLDS, Outcome.REFUTED, Outcome.INAPPLICABLE
    x = np.array([0.25, 1.0, 300.0, 400_000.0])

    def words(*outcomes: Outcome, variable: str = "rounds $R$") -> str:
        return replace(COMPUTED, variable=variable, values=x, outcomes=outcomes).verdict

    assert words(holds, holds, holds, no) == "HOLDS for $R$ <= 300, INAPPLICABLE at $R$ = 400,000"
    assert words(no, holds, holds, refuted) == (
        "INAPPLICABLE at $R$ = 0.25, HOLDS for 1 <= $R$ <= 300, REFUTED at $R$ = 400,000"
    )
    assert words(no, no, refuted, refuted, variable="q") == (
        "INAPPLICABLE for q <= 1, REFUTED for q >= 300"
    )
    assert COMPUTED.heading == ("t (printed): HOLDS at $R$ = 1 and at $R$ = 4, REFUTED at $R$ = 2")
    assert replace(COMPUTED, outcomes=()).heading == "t (printed): no claim"


def test_values_may_come_in_any_order() -> None:
    outcomes = (Outcome.REFUTED, Outcome.HOLDS, Outcome.HOLDS)
    turned = replace(COMPUTED, values=np.array([3.0, 2.0, 1.0]), outcomes=outcomes)
    assert turned.verdict == "HOLDS for $R$ <= 2, REFUTED at $R$ = 3"


def test_verdicts_that_alternate_or_are_about_cases_are_counted() -> None:
    alternating = (Outcome.HOLDS, Outcome.REFUTED) * 3
    curve = replace(COMPUTED, values=np.arange(6.0), outcomes=alternating)
    assert curve.verdict == "HOLDS at 3, REFUTED at 3 of 6 values of $R$"
    cases = replace(COMPUTED, labels=("a", "b", "c"))
    assert cases.verdict == "HOLDS in 2 cases, REFUTED in 1 case"


def test_a_verdict_from_a_sample_says_so() -> None:
    """Also where the truth of the first rounds is known."""
    one = replace(SAMPLED, outcomes=(Outcome.HOLDS,) * 3, error_probability=1e-9)
    assert one.heading == "t (printed): HOLDS (sampled, wrong with probability at most 1e-9)"


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
    with pytest.raises(
        ValueError, match="truth must be positive to be divided by its minimum, got a minimum of 0"
    ):
        replace(COMPUTED, truth=X - 1).relative()


@pytest.mark.parametrize(
    ("chance", "text"),
    [
        (0.05, "at most 0.05"),
        (1e-2, "at most 0.01"),
        (1e-3, "at most 0.001"),
        (2e-3, "at most 0.002"),
        (2.1e-3, "at most 0.003"),
        (9.5e-5, "at most 0.0001"),
        (1e-9, "at most 1e-9"),
        (1e-9 / 11, "at most 1e-10"),
    ],
)
def test_a_chance_of_error_is_never_less_than_it_is(chance: float, text: str) -> None:
    assert at_most(chance) == text
    assert float(text.removeprefix("at most ")) >= chance * (1 - 1e-8)


def test_something_must_be_known() -> None:
    with pytest.raises(ValueError, match="truth and truth_error must be given unless"):
        replace(SAMPLED, sampled=None)
