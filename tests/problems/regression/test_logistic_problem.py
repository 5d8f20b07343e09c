"""Logistic clients: gradients, optima and constants against independent derivations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from fltheory.problems import LogisticProblem


def drawn(seed: int, n_clients: int = 3, dim: int = 2, ridge: float = 0.1) -> LogisticProblem:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, n_clients)
    features = [rng.normal(size=(size, dim)) * rng.uniform(0.2, 3) for size in sizes]
    labels = [rng.integers(0, 2, size) for size in sizes]
    alpha = rng.dirichlet(np.ones(n_clients))
    return LogisticProblem(features, labels, ridge=ridge, target_weights=alpha / alpha.sum())


def plain_losses(problem: LogisticProblem, x: np.ndarray) -> list[float]:
    """Cross-entropy of the labels, a sample after another."""
    losses = []
    for client in range(problem.n_clients):
        span = range(problem.starts[client], problem.starts[client + 1])
        total = 0.0
        for j in span:
            # The chance of the label itself: one less that of the other would lose its digits.
            total -= np.log(1 / (1 + np.exp(-problem.signs[j] * (problem.samples[j] @ x))))
        losses.append(total / len(span) + problem.ridge / 2 * float(x @ x))
    return losses


def test_two_samples_by_hand() -> None:
    """a = 1 with label 1 and a = 2 with label 0, ridge 1/2, at x = 0: loss log 2.

    The gradient is mean(-1/2, 2/2) = 1/4; the largest curvature (1 + 4)/2/4 + 1/2 = 9/8.
    """
    problem = LogisticProblem([[[1.0], [2.0]]], [[1, 0]], ridge=0.5)
    np.testing.assert_allclose(problem.loss(np.zeros(1)), np.log(2), rtol=1e-15)
    np.testing.assert_allclose(problem.gradient(np.zeros(1)), [0.25], rtol=1e-15)
    assert pytest.approx(9 / 8, rel=1e-15) == problem.L
    assert problem.mu == 0.5
    np.testing.assert_array_equal(problem.accuracy(np.array([[1.0], [-1.0], [0.0]])), [0.5] * 3)


def test_symmetric_labels_have_their_optimum_at_zero() -> None:
    problem = LogisticProblem([[[1.0, 2.0], [1.0, 2.0]]] * 2, [[1, 0], [0, 1]], ridge=0.3)
    np.testing.assert_allclose(problem.x_star, [0, 0], atol=1e-15)
    assert problem.F_star == pytest.approx(np.log(2), rel=1e-15)


@given(st.integers(0, 1000))
def test_losses_are_cross_entropies(seed: int) -> None:
    problem = drawn(seed)
    x = np.random.default_rng(seed).normal(size=2)
    expected = plain_losses(problem, x)
    np.testing.assert_allclose(problem.client_losses(x), expected, rtol=1e-12)
    assert problem.loss(x) == pytest.approx(float(problem.alpha @ expected), rel=1e-12)


@given(st.integers(0, 1000))
def test_gradients_are_central_differences(seed: int) -> None:
    problem = drawn(seed)
    x = np.random.default_rng(seed).normal(size=(3, 2))
    step = 1e-5
    differences = np.stack(
        [
            (problem.client_losses(x + step * e) - problem.client_losses(x - step * e)) / (2 * step)
            for e in np.eye(2)
        ],
        axis=-1,
    )
    for client in range(3):
        ours = problem.client_gradients(x, np.full(3, client))
        np.testing.assert_allclose(ours, differences[:, client], atol=1e-8)
    expected = np.einsum("i,tia->ta", problem.alpha, differences)
    np.testing.assert_allclose(problem.gradient(x), expected, atol=1e-8)


def test_points_of_several_clients_at_once() -> None:
    problem = drawn(3)
    x, clients = np.random.default_rng(0).normal(size=(5, 2)), np.array([2, 0, 2, 1, 0])
    one_by_one = [problem.client_gradients(x[t : t + 1], clients[t : t + 1])[0] for t in range(5)]
    np.testing.assert_allclose(problem.client_gradients(x, clients), one_by_one, rtol=1e-14)


@given(st.integers(0, 1000), st.sampled_from([1e-4, 1e-2, 1.0, 100.0]))
def test_the_optimum_is_that_of_another_solver(seed: int, ridge: float) -> None:
    problem = drawn(seed, ridge=ridge)
    assert np.linalg.norm(problem.gradient(problem.x_star)) < 1e-11
    other = minimize(
        lambda x: float(problem.alpha @ plain_losses(problem, x)), np.zeros(2), method="BFGS"
    )
    # BFGS stops at a gradient of about 1e-5: the optima are that over mu apart at most.
    assert problem.F_star <= other.fun + 1e-12
    assert other.fun - problem.F_star < 1e-8 / ridge
    assert problem.excess_loss(problem.x_star) == 0


@given(st.integers(0, 1000))
def test_client_optima_are_stationary(seed: int) -> None:
    problem = drawn(seed)
    gradients = problem.client_gradients(problem.client_optima, np.arange(3))
    np.testing.assert_allclose(gradients, 0, atol=1e-11)
    for client in range(3):
        x = problem.client_optima[client]
        assert problem.client_minima[client] == pytest.approx(plain_losses(problem, x)[client])


@given(
    st.integers(0, 1000),
    st.floats(-20, 20, allow_nan=False),
    st.floats(-20, 20, allow_nan=False),
)
def test_smooth_and_strongly_convex_with_the_stated_constants(
    seed: int, first: float, second: float
) -> None:
    """``mu/2 |h|^2 <= F_i(y) - F_i(x) - <grad F_i(x), h> <= L/2 |h|^2`` for every client."""
    problem = drawn(seed)
    rng = np.random.default_rng(seed)
    x = np.array([first, second])
    h = rng.normal(size=2) * 10 ** rng.uniform(-2, 1)
    slope = problem.client_gradients(np.tile(x, (3, 1)), np.arange(3)) @ h
    above = problem.client_losses(x + h) - problem.client_losses(x) - slope
    square = float(h @ h)
    rounding = 1e-12 * (1 + float(problem.client_losses(x).max()))
    assert (above >= problem.mu / 2 * square - rounding).all()
    assert (above <= problem.L / 2 * square + rounding).all()


@given(st.integers(0, 1000))
def test_the_constants_are_reached(seed: int) -> None:
    """Second differences reach L at zero along some axis, and mu far away."""
    problem = drawn(seed)
    largest = 0.0
    for client in range(3):
        span = slice(problem.starts[client], problem.starts[client + 1])
        samples = problem.samples[span]
        hessian = samples.T @ samples / (4 * len(samples)) + problem.ridge * np.eye(2)
        largest = max(largest, float(np.linalg.eigvalsh(hessian)[-1]))
    assert pytest.approx(largest, rel=1e-12) == problem.L
    away = 1e6 * np.array([0.6, 0.8])
    pushed = problem.client_gradients(np.tile(away, (3, 1)), np.arange(3))
    pushed -= problem.client_gradients(np.tile(away - [1.0, 0.0], (3, 1)), np.arange(3))
    np.testing.assert_allclose(pushed[:, 0], problem.mu, rtol=1e-6)


def test_equal_arrays_and_lists_are_alike() -> None:
    rng = np.random.default_rng(1)
    features, labels = rng.normal(size=(3, 4, 2)), rng.integers(0, 2, (3, 4))
    one = LogisticProblem(features, labels, ridge=0.1)
    two = LogisticProblem(list(features), list(labels), ridge=0.1)
    np.testing.assert_array_equal(one.x_star, two.x_star)
    np.testing.assert_array_equal(one.alpha, [1 / 3] * 3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"features": []}, r"features must hold the data of at least one client, got none"),
        ({"features": [[[1.0]], [[1.0, 2.0]]]}, r"got \(1, 2\) for client 1"),
        ({"features": [[[1.0]], [[np.nan]]]}, r"features must be finite, got nan"),
        ({"labels": [[0], [0.5]]}, r"labels must be 0 or 1, got others for client 1"),
        (
            {"labels": [[0], [0, 1]]},
            r"labels must be one per sample, of shapes \[\(1,\), \(1,\)\], got",
        ),
        ({"ridge": 0.0}, r"ridge must be a finite number above 0, got 0\.0"),
        ({"target_weights": [0.5, 0.4]}, r"target_weights must sum to 1, got a sum of 0\.9"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    good = {"features": [[[1.0]], [[2.0]]], "labels": [[0], [1]], "ridge": 0.1}
    with pytest.raises(ValueError, match=message):
        LogisticProblem(**(good | changed))
