"""Nonconvex clients: derivatives, constants and the global minimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.problems import RippledProblem, nonconvex

PROBLEMS = st.builds(
    nonconvex,
    st.integers(2, 6),
    st.integers(1, 4),
    L=st.floats(0.1, 10.0),
    sigma_G=st.floats(0.0, 5.0),
    bowl=st.floats(0.05, 0.95),
    frequency=st.floats(0.5, 4.0),
    seed=st.integers(0, 1000),
)


@given(PROBLEMS)
def test_gradients_are_the_slopes_of_the_losses(problem: RippledProblem) -> None:
    """Central differences with step h err by h^2/6 times the third derivative."""
    rng = np.random.default_rng(0)
    points, step = rng.standard_normal((4, problem.dim)), 1e-4
    clients = rng.integers(0, problem.n_clients, 4)
    slopes, client_slopes = np.empty_like(points), np.empty_like(points)
    for axis, unit in enumerate(step * np.eye(problem.dim)):
        slopes[:, axis] = (problem.loss(points + unit) - problem.loss(points - unit)) / (2 * step)
        difference = problem.client_losses(points + unit) - problem.client_losses(points - unit)
        client_slopes[:, axis] = difference[np.arange(4), clients] / (2 * step)
    tolerance = {"rtol": 1e-6, "atol": 1e-6 * problem.L * problem.frequency}
    np.testing.assert_allclose(problem.gradient(points), slopes, **tolerance)
    np.testing.assert_allclose(
        problem.client_gradients(points, clients), client_slopes, **tolerance
    )


@given(PROBLEMS)
def test_global_minimum(problem: RippledProblem) -> None:
    rng = np.random.default_rng(1)
    points = problem.x_star + rng.standard_normal((50, problem.dim)) * 5
    assert (problem.loss(points) > 0).all()
    assert problem.F_star == problem.loss(problem.x_star) == 0.0
    np.testing.assert_array_equal(problem.gradient(problem.x_star), np.zeros(problem.dim))
    np.testing.assert_array_equal(problem.excess_loss(points), problem.loss(points))


@given(PROBLEMS)
def test_curvature_limits_are_attained(problem: RippledProblem) -> None:
    """F'' = a + b w^2 cos(w s): L at s = 0 and mu at s = pi / w; gradients are L-Lipschitz."""
    step = 1e-5 / problem.frequency
    unit = np.zeros(problem.dim)
    unit[0] = 1.0
    for place, limit in ((0.0, problem.L), (np.pi / problem.frequency, problem.mu)):
        at = problem.x_star + place * unit
        rise = problem.gradient(at + step * unit) - problem.gradient(at - step * unit)
        np.testing.assert_allclose(rise[0] / (2 * step), limit, atol=1e-5 * problem.L)
    rng = np.random.default_rng(2)
    left, right = rng.standard_normal((2, 50, problem.dim)) * 3
    change = np.linalg.norm(problem.gradient(left) - problem.gradient(right), axis=1)
    assert (change <= problem.L * np.linalg.norm(left - right, axis=1) * (1 + 1e-12)).all()


@given(PROBLEMS)
def test_dissimilarity_is_the_longest_tilt_everywhere(problem: RippledProblem) -> None:
    points = np.random.default_rng(3).standard_normal((3, problem.dim))
    clients = np.arange(problem.n_clients)
    for x in points:
        gradients = problem.client_gradients(np.tile(x, (problem.n_clients, 1)), clients)
        np.testing.assert_allclose(
            problem.alpha @ gradients, problem.gradient(x), rtol=1e-9, atol=1e-11
        )
        gaps = np.linalg.norm(gradients - problem.gradient(x), axis=1)
        np.testing.assert_allclose(gaps.max(), problem.sigma_G, rtol=1e-9, atol=1e-12)


def test_weights_cancel_the_tilts() -> None:
    problem = RippledProblem(
        [[1.0], [-3.0]],
        curvature=1.0,
        amplitude=2.0,
        frequency=3.0,
        x_star=[0.5],
        target_weights=[0.75, 0.25],
    )
    assert (problem.L, problem.mu, problem.sigma_G) == (19.0, -17.0, 3.0)
    np.testing.assert_allclose(
        problem.client_losses(np.array([1.5])),
        problem.loss(np.array([1.5])) + np.array([1.0, -3.0]),
    )


GOOD = {
    "tilts": [[1.0, 0.0], [-1.0, 0.0]],
    "curvature": 1.0,
    "amplitude": 1.0,
    "frequency": 2.0,
    "x_star": [0.0, 0.0],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tilts": [1.0, -1.0]}, r"tilts must have shape \(n_clients, dim\), got \(2,\)"),
        ({"tilts": [[1.0, np.nan], [0.0, 0.0]]}, r"tilts must be finite, got nan"),
        (
            {"tilts": [[1.0, 0.0], [-0.5, 0.0]]},
            r"tilts must cancel under the target weights, got a weighted sum of up to 0\.25",
        ),
        (
            {"target_weights": [0.75, 0.25]},
            r"tilts must cancel under the target weights, got a weighted sum of up to 0\.5",
        ),
        ({"x_star": [0.0]}, r"x_star must have shape \(2,\), got \(1,\)"),
        ({"x_star": [0.0, np.inf]}, r"x_star must be finite, got inf"),
        ({"curvature": 0.0}, r"curvature must be a finite number above 0, got 0\.0"),
        ({"amplitude": -1.0}, r"amplitude must be a finite number above 0, got -1\.0"),
        ({"frequency": np.nan}, r"frequency must be a finite number above 0, got nan"),
        ({"sigma": -1.0}, r"sigma must be a finite number of at least 0, got -1\.0"),
        ({"server_sigma": np.inf}, r"server_sigma must be a finite number of at least 0, got inf"),
        ({"target_weights": [1.0]}, r"target_weights must have shape \(2,\), got \(1,\)"),
    ],
)
def test_bad_input_is_named(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RippledProblem(**(GOOD | changed))
