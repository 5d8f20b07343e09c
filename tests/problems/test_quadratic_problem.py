"""Quadratic clients: constants against optimisers, gradients against differences."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_problem

from fltheory.problems import QuadraticProblem

PROBLEMS = st.builds(
    random_problem,
    st.integers(0, 10_000),
    st.integers(1, 6),
    st.integers(1, 4),
    shared=st.booleans(),
)


def loss_of_client(problem: QuadraticProblem, client: int, x: np.ndarray) -> float:
    """The definition, for one client and one point."""
    hessian = problem.hessians if problem.hessians.ndim == 2 else problem.hessians[client]
    gap = x - problem.optima[client]
    return float(0.5 * gap @ hessian @ gap)


def test_two_points(two_points: QuadraticProblem) -> None:
    """(x + 1)^2 and (x - 1)^2, everything by hand."""
    x = np.array([[0.0], [2.0]])
    assert (two_points.L, two_points.mu, two_points.F_star) == (2.0, 2.0, 1.0)
    assert (two_points.sigma_G, two_points.Gamma) == (2.0, 1.0)
    np.testing.assert_array_equal(two_points.x_star, [0.0])
    np.testing.assert_array_equal(two_points.alpha, [0.5, 0.5])
    np.testing.assert_array_equal(two_points.client_minima, [0.0, 0.0])
    np.testing.assert_allclose(two_points.loss(x), [1.0, 5.0])
    np.testing.assert_allclose(two_points.excess_loss(x), [0.0, 4.0])
    np.testing.assert_allclose(two_points.gradient(x), [[0.0], [4.0]])
    np.testing.assert_allclose(two_points.client_losses(x), [[1.0, 1.0], [9.0, 1.0]])


def test_target_weights_move_the_optimum() -> None:
    """Minimise 3/4 (x + 1)^2 + 1/4 (x - 1)^2: x* = -1/2, F* = 3/4; client 2 has Gamma 9/4."""
    problem = QuadraticProblem([[2.0]], [[-1.0], [1.0]], target_weights=[0.75, 0.25])
    np.testing.assert_allclose(problem.x_star, [-0.5], rtol=1e-15)
    np.testing.assert_allclose(problem.F_star, 0.75, rtol=1e-15)
    np.testing.assert_allclose(problem.Gamma, 2.25, rtol=1e-15)
    np.testing.assert_allclose(problem.sigma_G, 3.0, rtol=1e-15)


@given(PROBLEMS, st.booleans())
def test_optimum(problem: QuadraticProblem, weighted: bool) -> None:
    """The weighted client gradients cancel at x*, and F is no smaller anywhere else."""
    if weighted:
        weights = np.arange(1.0, problem.n_clients + 1)
        problem = QuadraticProblem(
            problem.hessians, problem.optima, target_weights=weights / weights.sum()
        )
    scale = np.abs(problem.gradients_at_optimum).max() + 1e-300
    assert np.abs(problem.alpha @ problem.gradients_at_optimum).max() <= 1e-13 * max(scale, 1.0)
    rng = np.random.default_rng(0)
    nearby = problem.x_star + rng.standard_normal((20, problem.dim)) * 0.1
    by_definition = [
        sum(a * loss_of_client(problem, i, x) for i, a in enumerate(problem.alpha)) for x in nearby
    ]
    np.testing.assert_allclose(problem.loss(nearby), by_definition, rtol=1e-11)
    assert (problem.loss(nearby) >= problem.F_star).all()
    np.testing.assert_allclose(
        problem.excess_loss(nearby), np.array(by_definition) - problem.F_star, atol=1e-12
    )


@given(PROBLEMS)
def test_client_losses_and_gradients(problem: QuadraticProblem) -> None:
    """Central differences are exact on quadratics but for rounding."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((5, problem.dim))
    clients = rng.integers(0, problem.n_clients, 5)
    losses = problem.client_losses(points)
    assert losses.shape == (5, problem.n_clients)
    gradients = problem.client_gradients(points, clients)
    for row, (x, client) in enumerate(zip(points, clients, strict=True)):
        np.testing.assert_allclose(
            losses[row, client], loss_of_client(problem, client, x), rtol=1e-11
        )
        for axis, unit in enumerate(np.eye(problem.dim)):
            slope = loss_of_client(problem, client, x + unit) - loss_of_client(
                problem, client, x - unit
            )
            np.testing.assert_allclose(gradients[row, axis], slope / 2, rtol=1e-9, atol=1e-10)


def test_shapes_of_common_points(mixed_hessians: QuadraticProblem) -> None:
    points = np.random.default_rng(2).standard_normal((4, 5, 2))
    assert mixed_hessians.loss(points).shape == (4, 5)
    assert mixed_hessians.gradient(points).shape == (4, 5, 2)
    losses = mixed_hessians.client_losses(points)
    assert losses.shape == (4, 5, 3)
    np.testing.assert_allclose(losses @ mixed_hessians.alpha, mixed_hessians.loss(points))


def test_curvatures_are_those_of_any_client() -> None:
    """Not of the mean: clients diag(4, 1) and diag(1, 9)/3 have L = 4 and mu = 1/3."""
    problem = QuadraticProblem([np.diag([4.0, 1.0]), np.diag([1.0 / 3, 3.0])], np.zeros((2, 2)))
    np.testing.assert_allclose((problem.L, problem.mu), (4.0, 1 / 3), rtol=1e-14)


def test_dissimilarity_is_unbounded_unless_hessians_agree() -> None:
    optima = [[0.0], [1.0]]
    assert QuadraticProblem([[[1.0]], [[2.0]]], optima).sigma_G == np.inf
    stacked = QuadraticProblem([[[2.0]], [[2.0]]], optima)
    assert not stacked.shared_hessian
    np.testing.assert_allclose(stacked.sigma_G, 1.0, rtol=1e-14)


@given(st.integers(0, 1000), st.floats(1e-3, 1e8))
def test_error_of_the_optimum_is_within_its_bound(seed: int, shift: float) -> None:
    """With dyadic data and equal weights 1/4, long double resolves x* far below float64."""
    rng = np.random.default_rng(seed)
    optima = rng.standard_normal((4, 3)) + shift
    problem = QuadraticProblem(np.eye(3), optima)
    truth = optima.astype(np.longdouble).mean(axis=0)
    error = np.linalg.norm((problem.x_star - truth).astype(float))
    assert error <= problem.x_star_error


def test_equal_optima_leave_no_rounding_behind_but_that_of_their_decimals() -> None:
    """The floats are the optimum; 0.1 and 0.3 as they were written are a little beside them."""
    problem = QuadraticProblem(np.eye(2), np.tile([0.1, 0.3], (7, 1)))
    np.testing.assert_array_equal(problem.x_star, [0.1, 0.3])
    beside = [Fraction("0.1") - Fraction(0.1), Fraction("0.3") - Fraction(0.3)]
    assert sum(gap**2 for gap in beside) <= Fraction(problem.x_star_error) ** 2
    assert problem.x_star_error < 1e-15
    assert problem.sigma_G == 0.0


@pytest.mark.parametrize("own", [False, True])
def test_every_one_of_many_clients_counts_in_the_bound_on_the_optimum(own: bool) -> None:
    """One client far away, first or last of them: the bound is that of the other order."""
    n_clients, far = 2**15, 2.0**20
    optima = np.zeros((n_clients, 1))
    optima[0] = far
    hessians = np.ones((n_clients, 1, 1)) if own else [[1.0]]
    first = QuadraticProblem(hessians, optima).x_star_error
    last = QuadraticProblem(hessians, optima[::-1]).x_star_error
    # Nothing rounds: x* = 2^5. By the formula the far client adds (N + 4) + (d + 4) + 2 distances,
    # and all others, at |x*|, together as much again.
    alone = np.finfo(float).eps * (n_clients + 11) * far / n_clients
    assert first == pytest.approx(last, rel=1e-9)
    assert first == pytest.approx(2 * alone, rel=1e-3)


def test_does_not_change(two_points: QuadraticProblem) -> None:
    with pytest.raises(FrozenInstanceError):
        two_points.sigma = 1.0
    with pytest.raises(ValueError, match="read-only"):
        two_points.optima[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        two_points.hessians[0] = 5.0


GOOD = {"hessians": np.eye(2), "optima": [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"optima": [1.0, 2.0]}, r"optima must have shape \(n_clients, dim\), got \(2,\)"),
        ({"optima": np.zeros((0, 2))}, r"optima must have shape .*got \(0, 2\)"),
        ({"optima": [[0.0, np.nan]] * 3}, r"optima must be finite, got nan"),
        (
            {"hessians": np.eye(3)},
            r"hessians must have shape \(2, 2\) or \(3, 2, 2\) to match .*got \(3, 3\)",
        ),
        ({"hessians": [np.eye(2)] * 2}, r"hessians must have shape .*got \(2, 2, 2\)"),
        (
            {"hessians": [[1.0, 0.5], [0.25, 1.0]]},
            r"hessians must be symmetric, got an asymmetry of 0\.25",
        ),
        (
            {"hessians": [[1.0, 2.0], [2.0, 1.0]]},
            r"hessians must be positive definite, got a smallest eigenvalue of -1",
        ),
        (
            {"hessians": np.diag([1.0, 0.0])},
            r"hessians must be positive definite, got a smallest eigenvalue of 0",
        ),
        ({"hessians": [[1.0, np.inf], [np.inf, 1.0]]}, r"hessians must be finite, got inf"),
        ({"sigma": -0.5}, r"sigma must be a finite number of at least 0, got -0\.5"),
        ({"server_sigma": np.nan}, r"server_sigma must be a finite number of at least 0, got nan"),
        ({"target_weights": [0.5, 0.5]}, r"target_weights must have shape \(3,\), got \(2,\)"),
        ({"target_weights": [0.5, 0.5, 0.0]}, r"target_weights must be positive, got 0 among"),
        ({"target_weights": [0.5, 0.25, 0.2]}, r"target_weights must sum to 1, got a sum of 0\.95"),
    ],
)
def test_bad_input_is_named(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QuadraticProblem(**(GOOD | changed))
