"""Chances of crossing a line, against all orders of few points and against draws of many."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from fltheory.learnability.complexity import log_less_than_half_seen, log_more_than_twice_seen


def test_two_points_by_hand() -> None:
    """With level 1/8: both above 1/4, and none else; or the lower one below 1/16 or both < 7/16.

    P_2 is 0 up to the lower point, which must pass 1/4; one point at t carries it to 5/4. Upwards:
    1/2 > 2t + 1/8 needs a point below 3/16, and 1 > 2t + 1/8 both below 7/16.
    """
    assert math.exp(log_less_than_half_seen(2, 1 / 8)) == pytest.approx(9 / 16)
    below, both = Fraction(3, 16), Fraction(7, 16)
    above = 1 - (1 - below) ** 2 + (both - below) ** 2
    assert math.exp(log_more_than_twice_seen(2, 1 / 8)) == pytest.approx(float(above))


@pytest.mark.parametrize(("m", "level"), [(6, 0.07), (25, 0.05)])
def test_draws(m: int, level: float) -> None:
    """Of 200,000 draws the shares are within six standard errors."""
    points = np.sort(np.random.default_rng(3).random((200_000, m)), axis=1)
    seen = np.arange(m)
    less = (points > 2 * (level + seen / m)).any(axis=1)
    more = ((seen + 1) / m > 2 * points + level).any(axis=1)
    for event, log_chance in (
        (less, log_less_than_half_seen(m, level)),
        (more, log_more_than_twice_seen(m, level)),
    ):
        chance = math.exp(log_chance)
        assert abs(event.mean() - chance) < 6 * math.sqrt(chance * (1 - chance) / 200_000)


def test_nothing_crosses_a_line_that_starts_beyond_all_points() -> None:
    assert log_less_than_half_seen(5, 0.5) == -math.inf
    assert log_more_than_twice_seen(5, 1.0) == -math.inf
    assert log_less_than_half_seen(5, 0.0) == log_more_than_twice_seen(5, 0.0) == 0.0
