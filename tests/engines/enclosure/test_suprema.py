"""Suprema over balls, enclosed, against closed forms and a search over angles with 80 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from flint import arb, fmpq
from oracles import random_problem

from fltheory.algorithms import FedAvg
from fltheory.engines.affine.numbers import Balls, with_parameters
from fltheory.engines.enclosure.exact_setting import (
    WIDENING,
    NoExactTwinError,
    exact_setting,
    largest_weighted_square,
)
from fltheory.engines.setting import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import Ball, QuadraticProblem


@pytest.mark.parametrize(
    ("weights", "offsets", "radius", "value"),
    [
        # One coordinate: (3 + 1/2)^2 w.
        ([fmpq(2)], [fmpq(-1, 2)], fmpq(3), fmpq(49, 2)),
        # Nothing pulls: the steepest direction.
        ([fmpq(2), fmpq(5)], [fmpq(0), fmpq(0)], fmpq(3), fmpq(45)),
        # The hard case: y_1 = 1/(4-1) of the pull, the rest along the steepest direction.
        (
            [fmpq(1), fmpq(4)],
            [fmpq(3), fmpq(0)],
            fmpq(2),
            (1 + fmpq(3)) ** 2 + 4 * (4 - fmpq(1)),
        ),
        # Clients of weight zero do not matter.
        ([fmpq(0), fmpq(1)], [fmpq(7), fmpq(1)], fmpq(2), fmpq(9)),
        ([fmpq(0)], [fmpq(7)], fmpq(2), fmpq(0)),
    ],
)
def test_closed_forms_are_fractions(weights, offsets, radius, value) -> None:
    assert largest_weighted_square(weights, offsets, radius) == value


@pytest.mark.parametrize("seed", range(8))
def test_the_plane_searched_over_angles(seed: int) -> None:
    """The largest of ``w_1 (r cos a + o_1)^2 + w_2 (r sin a + o_2)^2`` is in a tiny ball.

    Fails if the multiplier is not refined (the ball is wide), or if either end is moved inwards.
    """
    rng = np.random.default_rng(seed)
    w, o = (
        [fmpq(int(number), 100) for number in rng.integers(low, high, 2)]
        for low, high in ((1, 300), (-200, 200))
    )
    radius = fmpq(int(rng.integers(50, 300)), 100)
    with Balls(128).in_use():
        found = largest_weighted_square(w, o, radius)
    with mpmath.workdps(90):
        weight, offset = ([mpmath.mpf(int(x.p)) / int(x.q) for x in each] for each in (w, o))
        r = mpmath.mpf(int(radius.p)) / int(radius.q)

        def point(angle: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
            return r * mpmath.cos(angle) + offset[0], r * mpmath.sin(angle) + offset[1]

        def square(angle: mpmath.mpf) -> mpmath.mpf:
            return sum(a * y**2 for a, y in zip(weight, point(angle), strict=True))

        def slope(angle: mpmath.mpf) -> mpmath.mpf:
            x, y = point(angle)
            return weight[1] * y * mpmath.cos(angle) - weight[0] * x * mpmath.sin(angle)

        best = max((2 * mpmath.pi * k / 720 for k in range(720)), key=square)
        text = mpmath.nstr(square(mpmath.findroot(slope, best)), 80)
    with Balls(300).in_use():
        oracle = arb(text) + arb(0, 1e-70)
        assert found.overlaps(oracle)
        assert float(arb(found).rad()) < 1e-30 * float(arb(found).mid())


def test_those_of_a_problem_are_those_of_float64() -> None:
    problem = QuadraticProblem(
        [np.diag([1.0, 0.5]), np.diag([0.3, 0.9])], [[1.0, -2.0], [0.5, 3.0]]
    )
    setting = Setting(FedAvg(0.1, 1), problem, UniformSubset(2, 1), 1, [0.0, 0.0])
    twin, ball = exact_setting(setting).problem, Ball([0.25, 0.0], 4.0)
    exact_ball = with_parameters(ball, WIDENING)
    for name in ("largest_gradients_on", "largest_losses_on"):
        plain, exact = getattr(problem, name)(ball), getattr(twin, name)(exact_ball)
        np.testing.assert_allclose([float(each) for each in exact], plain, rtol=1e-12)


def test_rotated_hessians_are_refused() -> None:
    problem = random_problem(1, 2, 2)
    setting = Setting(FedAvg(0.1, 1), problem, UniformSubset(2, 1), 1, [0.0, 0.0])
    with pytest.raises(NoExactTwinError, match="hessians must be diagonal"):
        exact_setting(setting).problem.largest_gradients_on(Ball([0.0, 0.0], 1.0))
