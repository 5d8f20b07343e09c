"""The least constants of the drift lemma."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.theorems.cited_lemmas import (
    PRINTED_STEP,
    excess_for_all_smooth,
    gradient_constant,
    largest_ratio,
    largest_step,
    noise_constant,
)

STEPS, SIZES = st.integers(1, 60), st.floats(1e-3, 4.0)


@given(STEPS, SIZES)
def test_they_are_geometric_sums(steps: int, size: float) -> None:
    powers = [(1 + size / steps) ** k for k in range(steps)]
    assert noise_constant(steps, size) == pytest.approx(sum(p * p for p in powers) / steps)
    assert gradient_constant(steps, size) == pytest.approx(2 * (sum(powers) / steps) ** 2)


def test_their_limits() -> None:
    """K to infinity: (e^2s - 1)/(2s) and 2 ((e^s - 1)/s)^2; s to zero: 1 and 2."""
    for size in (1 / 8, 1.0, 2.0):
        assert noise_constant(10**6, size) == pytest.approx(
            math.expm1(2 * size) / (2 * size), rel=1e-5
        )
        assert gradient_constant(10**6, size) == pytest.approx(
            2 * (math.expm1(size) / size) ** 2, rel=1e-5
        )
    assert noise_constant(7, 1e-9) == pytest.approx(1)
    assert gradient_constant(7, 1e-9) == pytest.approx(2)


@given(STEPS, SIZES)
def test_they_grow_with_the_step_and_convexity_helps(steps: int, size: float) -> None:
    above = 1 + 1e-12
    for constant in (noise_constant, gradient_constant):
        assert constant(steps, size) <= above * constant(steps, 1.1 * size)
        assert constant(steps, size, convex=True) <= above * constant(steps, size)
    assert largest_ratio(steps, size, convex=True) == pytest.approx(1 / 5)


def test_the_largest_step_is_where_the_bound_is_met() -> None:
    """K = 2: (1 + (1 + s/2)^2)/2 = 5 at s = 4."""
    assert largest_step(1) == math.inf
    assert largest_step(2) == pytest.approx(4.0, rel=1e-12)
    for steps in (5, 100):
        size = largest_step(steps)
        assert largest_ratio(steps, size) == pytest.approx(1.0, rel=1e-12)
        assert size > 8 * PRINTED_STEP


def test_excess_for_all_smooth_clients() -> None:
    """None for one step; at the lemma's limit 2%, and in general below (1 + eta L)^K's size."""
    assert excess_for_all_smooth(1, 0.5) == pytest.approx(1.0)
    assert 1 < excess_for_all_smooth(200, PRINTED_STEP) < 1.021
    assert excess_for_all_smooth(10, 1.0) > excess_for_all_smooth(10, 0.1) > 1


@pytest.mark.parametrize(
    ("steps", "size", "message"),
    [
        (0, 0.1, "local_steps must be a whole number of at least 1"),
        (2, 0.0, "step must be"),
        (2, math.nan, "step must be"),
    ],
)
def test_bad_arguments(steps: int, size: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        noise_constant(steps, size)
    with pytest.raises(ValueError, match=message):
        gradient_constant(steps, size)
