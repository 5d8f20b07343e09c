"""Piecewise quadratic clients: closed forms, the class's inequalities, fractions beside floats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fltheory.problems.piecewise_quadratic_problem import PiecewiseQuadraticProblem


@pytest.fixture
def drawn() -> PiecewiseQuadraticProblem:
    rng = np.random.default_rng(0)
    points, heights = rng.normal(size=(3, 5, 2)).round(3), rng.normal(size=(3, 5)).round(3)
    return PiecewiseQuadraticProblem(points, 0.3 * heights, L=2.0, mu=0.5)


def test_one_point_is_a_quadratic() -> None:
    """L/2 ||x||^2 up to a linear term: mu/2 ||x||^2 + (L - mu)/2 ||x - p||^2."""
    problem = PiecewiseQuadraticProblem([[[1.0]], [[-1.0]]], [[0.0], [0.0]], L=3.0, mu=1.0)
    x = np.array([[2.0], [2.0]])
    assert problem.client_gradients(x, np.array([0, 1])).tolist() == [[4.0], [8.0]]
    assert problem.gradient(np.array([2.0])).tolist() == [6.0]
    assert problem.excess_loss(np.array([2.0])) == pytest.approx(6.0)


def test_two_points_are_hubers_loss() -> None:
    """Points at -1 and 1: the envelope is zero between them, and a parabola outside."""
    problem = PiecewiseQuadraticProblem([[[-1.0], [1.0]]], [[0.0, 0.0]], L=2.0, mu=0.0)
    assert problem.loss(np.array([[0.5], [1.0], [3.0]])).tolist() == pytest.approx([0, 0, 4])


def test_gradients_are_those_of_the_losses(drawn: PiecewiseQuadraticProblem) -> None:
    rng, step = np.random.default_rng(1), 1e-6
    for client in range(3):
        x = rng.normal(size=2)
        slopes = [
            (drawn.client_losses(x + step * d)[client] - drawn.client_losses(x - step * d)[client])
            / (2 * step)
            for d in np.eye(2)
        ]
        gradient = drawn.client_gradients(x[None], np.array([client]))[0]
        assert gradient == pytest.approx(slopes, abs=1e-7)


def test_fractions_and_floats_agree(drawn: PiecewiseQuadraticProblem) -> None:
    rng = np.random.default_rng(2)
    whole = rng.integers(-20, 21, size=(9, 2))
    exact = np.array([[Fraction(int(v), 8) for v in row] for row in whole])
    clients = np.arange(9) % 3
    found = drawn.client_gradients(exact, clients)
    assert all(isinstance(value, Fraction) for value in found.ravel())
    floats = drawn.client_gradients(whole / 8, clients)
    assert found.astype(float) == pytest.approx(floats, abs=1e-12)


def test_clients_are_smooth_and_strongly_convex(drawn: PiecewiseQuadraticProblem) -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        x, client = rng.normal(size=(2, 2)) * 3, rng.integers(3)
        gradients = drawn.client_gradients(x, np.full(2, client))
        g, d = gradients[0] - gradients[1], x[0] - x[1]
        assert (1 + 0.25) * (g @ d) >= g @ g / 2 + 0.5 * (d @ d) - 1e-12


def test_the_origin_is_the_optimum(drawn: PiecewiseQuadraticProblem) -> None:
    assert drawn.gradient(np.zeros(2)) == pytest.approx(0, abs=1e-15)
    assert drawn.x_star.tolist() == [0, 0]
    rng = np.random.default_rng(4)
    assert (drawn.excess_loss(rng.normal(size=(50, 2))) > 0).all()
    assert drawn.F_star == pytest.approx(float(drawn.loss(np.zeros(2))))
    assert (drawn.sigma, drawn.server_sigma, drawn.sigma_G) == (0, 0, float("inf"))
    assert drawn.alpha.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(
    ("points", "heights", "L", "mu", "message"),
    [
        ([[1.0]], [[0.0]], 1, 0, r"points must have shape \(n_clients, n_points, dim\)"),
        ([[[1.0]]], [0.0], 1, 0, r"heights must have shape \(1, 1\), got \(1,\)"),
        ([[[1.0]]], [[0.0]], 1, 1, "mu must be below L = 1, got 1"),
        ([[[1.0]]], [[0.0]], 0, 0, "L must be a finite number above 0"),
        ([[[float("nan")]]], [[0.0]], 1, 0, "points must be finite"),
    ],
)
def test_bad_input_is_refused(
    points: object, heights: object, L: float, mu: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        PiecewiseQuadraticProblem(points, heights, L=L, mu=mu)  # type: ignore[arg-type]
