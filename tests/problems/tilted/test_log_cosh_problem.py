"""Clients with bounded gradients: derivatives, constants and the minimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.problems import LogCoshProblem

TILTS = [[1.0, -2.0], [0.5, 1.0], [-1.5, 1.0]]


def problem(curvature: float = 2.0, width: float = 0.7) -> LogCoshProblem:
    return LogCoshProblem(TILTS, curvature=curvature, width=width, x_star=[1.0, -1.0], sigma=0.5)


PROBLEMS = st.builds(problem, st.floats(0.1, 10.0), st.floats(0.2, 5.0))


@given(PROBLEMS)
def test_gradients_are_the_slopes_of_the_losses(of: LogCoshProblem) -> None:
    points = of.x_star + np.random.default_rng(0).standard_normal((6, 2)) * 2 * of.width
    clients, step = np.array([0, 1, 2, 0, 1, 2]), 1e-5 * of.width
    for axis in range(2):
        unit = step * np.eye(2)[axis]
        rise = of.client_losses(points + unit) - of.client_losses(points - unit)
        slopes = rise[np.arange(6), clients] / (2 * step)
        found = of.client_gradients(points, clients)[:, axis]
        np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-5 * of.L * of.width)
        rise = of.loss(points + unit) - of.loss(points - unit)
        np.testing.assert_allclose(
            of.gradient(points)[:, axis], rise / (2 * step), rtol=1e-5, atol=1e-5 * of.L * of.width
        )


@given(PROBLEMS)
def test_constants(of: LogCoshProblem) -> None:
    rng = np.random.default_rng(1)
    left, right = of.x_star + rng.standard_normal((2, 50, 2)) * 4 * of.width
    change = np.linalg.norm(of.gradient(left) - of.gradient(right), axis=1)
    assert (change <= of.L * np.linalg.norm(left - right, axis=1) * (1 + 1e-12)).all()
    close = of.gradient(of.x_star + np.array([1e-6 * of.width, 0]))[0] / (1e-6 * of.width)
    assert close == pytest.approx(of.L, rel=1e-9)
    assert (np.linalg.norm(of.gradient(left), axis=1) < of.largest_gradient).all()
    far = of.x_star + np.array([50.0, -50.0]) * of.width
    assert np.linalg.norm(of.gradient(far)) == pytest.approx(of.largest_gradient, rel=1e-12)
    assert of.sigma_G == pytest.approx(np.sqrt(5.0))
    np.testing.assert_allclose(of.alpha @ of.tilts, 0, atol=1e-15)


@given(PROBLEMS)
def test_the_minimum_is_zero(of: LogCoshProblem) -> None:
    points = of.x_star + np.random.default_rng(2).standard_normal((50, 2))
    assert (of.loss(points) > 0).all()
    assert of.loss(of.x_star) == of.F_star == of.mu == 0.0
    np.testing.assert_array_equal(of.excess_loss(points), of.loss(points))


def test_both_ways_to_write_the_loss_meet() -> None:
    """Around |z| = 1e-4, where one takes over from the other: z^2/2 - z^4/12."""
    of = LogCoshProblem([[0.0]], curvature=1.0, width=1.0, x_star=[0.0])
    z = np.array([0.99e-4, 1.01e-4])
    expected = z**2 / 2 - z**4 / 12
    np.testing.assert_allclose(of.loss(z[:, None]), expected, rtol=1e-7)


def test_far_away_it_is_a_cone() -> None:
    of = LogCoshProblem([[0.0]], curvature=2.0, width=3.0, x_star=[1.0])
    expected = 2 * 9 * (1e6 / 3 - np.log(2))
    assert of.loss(np.array([1 + 1e6])) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tilts": [1.0]}, r"tilts must have shape \(n_clients, dim\)"),
        ({"tilts": [[1.0], [1.0]]}, "tilts must cancel under the target weights"),
        ({"x_star": [0.0, 0.0]}, r"x_star must have shape \(1,\)"),
        ({"curvature": 0.0}, "curvature must be a finite number above 0"),
        ({"width": -1.0}, "width must be a finite number above 0"),
        ({"sigma": -1.0}, "sigma must be a finite number of at least 0"),
        ({"target_weights": [0.5, 0.4]}, "target_weights must sum to 1"),
    ],
)
def test_bad_arguments(changes, message: str) -> None:
    arguments = {"tilts": [[1.0], [-1.0]], "curvature": 1.0, "width": 1.0, "x_star": [0.0]}
    with pytest.raises(ValueError, match=message):
        LogCoshProblem(**{**arguments, **changes})
