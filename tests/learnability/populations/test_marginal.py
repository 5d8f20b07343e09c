"""Piecewise constant densities."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fltheory.learnability.populations import Marginal, uniform

STEPS = Marginal((0, 1, 3, 4), ("1/2", 0, "1/2"))


def test_mass_below_and_densities() -> None:
    assert [STEPS.below(Fraction(x)) for x in (-1, 0, "1/2", 1, 2, 3, "7/2", 4, 9)] == [
        0,
        0,
        Fraction(1, 4),
        Fraction(1, 2),
        Fraction(1, 2),
        Fraction(1, 2),
        Fraction(3, 4),
        1,
        1,
    ]
    assert STEPS.densities == (Fraction(1, 2), 0, Fraction(1, 2))
    assert STEPS.density_between(Fraction(3), Fraction(4)) == Fraction(1, 2)
    assert STEPS.density_between(Fraction(4), Fraction(5)) == 0


def test_draws_follow_the_masses(rng: np.random.Generator) -> None:
    """20,000 draws; a share of 1/2 is off by 0.03 with probability below 1e-15 (Hoeffding)."""
    points = STEPS.draw(rng, (20_000,))
    assert not ((points > 1) & (points < 3)).any()
    assert abs((points < 1).mean() - 0.5) < 0.03
    assert abs((points < 0.5).mean() - 0.25) < 0.03
    assert points.min() >= 0
    assert points.max() <= 4


@pytest.mark.parametrize(
    ("edges", "masses", "message"),
    [
        ((0,), (), "edges must be two or more"),
        ((1, 0), (1,), "in increasing order"),
        ((0, 1), (1, 0), "masses must be 1 numbers of at least 0 with sum 1"),
        ((0, 1, 2), ("3/2", "-1/2"), "masses must be 2 numbers of at least 0 with sum 1"),
        ((0, 1, 2), ("1/2", "1/4"), "with sum 1, got .'1/2', '1/4'."),
        ((0, float("inf")), (1,), "edges must be made of finite numbers, got inf"),
        ((0, "x"), (1,), "edges must be made of finite numbers, got 'x'"),
    ],
)
def test_bad_input(edges, masses, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Marginal(edges, masses)


def test_uniform() -> None:
    assert uniform("1/3", 2).densities == (Fraction(3, 5),)
