"""Words of proofs: classes, heterogeneity, and numbers that are never rounded down."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fltheory.evidence.verdict import Scope
from fltheory.worst_case.proof.proof_file import (
    ClassOutcome,
    class_text,
    polynomial_text,
    text_from_above,
)


@pytest.mark.parametrize(
    ("L", "mu", "text"),
    [
        (Fraction(1), Fraction(1, 10), "1-smooth and 1/10 = 0.1-strongly convex"),
        (Fraction(2), Fraction(-2), "2-smooth, convex or not"),
        (Fraction(2), Fraction(-1), "2-smooth, convex or not, of curvature -1 at least"),
    ],
)
def test_a_class_in_words(L: Fraction, mu: Fraction, text: str) -> None:
    assert class_text(L, mu) == text


def test_a_polynomial_leaves_out_what_is_zero() -> None:
    assert polynomial_text([Fraction(1), Fraction(0), Fraction(-1, 4)]) == "1 + -0.25 eta_c^2"


def test_a_bound_is_never_shown_smaller_than_it_is() -> None:
    """1/3 rounded to seven digits is below it."""
    assert text_from_above(Fraction(1, 3)) == "0.3333334"
    assert text_from_above(Fraction(1, 4)) == "0.25"
    assert Fraction(text_from_above(Fraction(1, 3 * 10**9))) > Fraction(1, 3 * 10**9)


def test_verdicts_on_a_class_speak_of_every_loss() -> None:
    assert {one.scope for one in ClassOutcome} == {Scope.CLASS}
