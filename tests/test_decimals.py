"""What written numbers stand for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from fltheory.decimals import as_fraction, fraction_text, normalised


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(7), "7"),
        (Fraction(-1, 4), "-1/4 = -0.25"),
        (Fraction(1, 10**6 - 1), "1/999999 = 1e-06"),
        (Fraction(1, 3 * 10**6), "3.33333e-07"),
    ],
)
def test_a_fraction_is_shown_with_what_it_is_about(value: Fraction, text: str) -> None:
    assert fraction_text(value) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, Fraction(1, 10)),
        (np.float64(1e-8), Fraction(1, 10**8)),
        (3, Fraction(3)),
        (np.int64(-2), Fraction(-2)),
        (Fraction(2, 7), Fraction(2, 7)),
        (fmpq(-3, 4), Fraction(-3, 4)),
        (sp.Rational(5, 6), Fraction(5, 6)),
    ],
    ids=repr,
)
def test_numbers_stand_for_what_was_written(value, expected: Fraction) -> None:
    assert as_fraction(value) == expected


@given(st.decimals(-(10**6), 10**6, places=6))
def test_decimals_come_back(written) -> None:
    assert as_fraction(float(written)) == Fraction(written)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1/2", None, 1j])
def test_what_is_no_number_is_refused(value) -> None:
    with pytest.raises(ValueError, match="value must be a finite number, got"):
        as_fraction(value)


def test_weights_sum_to_one() -> None:
    assert normalised([0.1] * 10) == [Fraction(1, 10)] * 10
    assert sum(normalised([0.3, 0.3, 0.3])) == 1
