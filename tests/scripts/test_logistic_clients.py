"""Logistic clients' steps: full batches in closed form, minibatches in law."""

from __future__ import annotations

import numpy as np
import pytest

from docs.scripts.ca_fed import LogisticClients
from fltheory.algorithms import FedAvg
from fltheory.engines.simulation import simulate
from fltheory.participation import UniformSubset
from fltheory.problems import LogisticProblem


def problem_of(n_clients: int = 3, size: int = 12, dim: int = 2) -> LogisticProblem:
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(size + i, dim)) for i in range(n_clients)]
    labels = [rng.integers(0, 2, size + i) for i in range(n_clients)]
    return LogisticProblem(features, labels, ridge=0.1)


def clients_of(problem: LogisticProblem, batch_size: int | None = None) -> LogisticClients:
    return LogisticClients(problem, np.random.default_rng(1), batch_size)


def test_full_batches_are_gradient_descent() -> None:
    problem = problem_of()
    x = np.array([[1.0, -1.0], [0.5, 2.0]])
    who = np.array([[True, False, True], [False, True, False]])
    push = np.random.default_rng(2).normal(size=(2, 3, 2))
    changes = clients_of(problem).local_sgd(x, who, steps=3, lr=0.2, correction=push)
    for replica, client in zip(*np.nonzero(who), strict=True):
        y = x[replica].copy()
        for _ in range(3):
            gradient = problem.client_gradients(y[None], np.array([client]))[0]
            y = y - 0.2 * (gradient + push[replica, client])
        np.testing.assert_allclose(changes[replica, client], y - x[replica], rtol=1e-13)
    np.testing.assert_array_equal(changes[~who], 0)


def test_a_proximal_term_is_part_of_the_gradient() -> None:
    """y = y - 0.2 v with v = 0.5 v + g + 3 (y - x), two steps by hand."""
    problem = problem_of()
    clients = LogisticClients(problem, np.random.default_rng(1), momentum=0.5)
    x, who = np.array([[1.0, -1.0]]), np.array([[False, True, False]])
    first = problem.client_gradients(x, np.array([1]))
    y = x - 0.2 * first
    second = 0.5 * first + problem.client_gradients(y, np.array([1])) + 3 * (y - x)
    found = clients.local_sgd(x, who, steps=2, lr=0.2, proximal=3.0)[:, 1]
    np.testing.assert_allclose(found, y - 0.2 * second - x, rtol=1e-13)
    summed = clients.summed_local_sgd(x, who, np.full((1, 3), 2.0), steps=2, lr=0.2, proximal=3.0)
    np.testing.assert_allclose(summed, 2 * found, rtol=1e-13)


def test_momentum_begins_each_round_at_rest() -> None:
    """v = 0.5 v + g, y = y - lr v, over two rounds of two steps."""
    problem = problem_of()
    clients = LogisticClients(problem, np.random.default_rng(1), momentum=0.5)
    x, who, y = np.array([[1.0, -1.0]]), np.array([[False, True, False]]), np.array([[1.0, -1.0]])
    for _ in range(2):
        x = x + clients.local_sgd(x, who, steps=2, lr=0.2)[:, 1]
        first = problem.client_gradients(y, np.array([1]))
        second = problem.client_gradients(y - 0.2 * first, np.array([1]))
        y = y - 0.2 * first - 0.2 * (0.5 * first + second)
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_the_sum_is_the_weighted_sum_of_those_present() -> None:
    problem = problem_of()
    x, who = np.ones((2, 2)), np.array([[True, False, True], [True, True, False]])
    weights = np.array([[0.5, 7.0, 2.0], [1.0, 3.0, 7.0]])
    changes = clients_of(problem).local_sgd(x, who, steps=2, lr=0.1)
    summed = clients_of(problem).summed_local_sgd(x, who, weights, steps=2, lr=0.1)
    np.testing.assert_allclose(summed[0], 0.5 * changes[0, 0] + 2 * changes[0, 2], rtol=1e-14)
    np.testing.assert_allclose(summed[1], changes[1, 0] + 3 * changes[1, 1], rtol=1e-14)


def test_minibatch_gradients_have_the_mean_and_variance_of_drawing_with_replacement() -> None:
    """B draws: the mean is the gradient, the covariance that of one sample's over B."""
    problem, replicas, batch = problem_of(), 40_000, 4
    x = np.array([0.7, -0.4])
    who = np.zeros((replicas, 3), dtype=bool)
    who[:, 1] = True
    changes = clients_of(problem, batch).local_sgd(np.tile(x, (replicas, 1)), who, steps=1, lr=1.0)
    found = -changes[:, 1]
    span = slice(problem.starts[1], problem.starts[2])
    samples, signs = problem.samples[span], problem.signs[span]
    each = -(signs / (1 + np.exp(signs * (samples @ x))))[:, None] * samples + 0.1 * x
    variance = each.var(axis=0) / batch
    error = np.sqrt(variance / replicas)
    assert (np.abs(found.mean(axis=0) - each.mean(axis=0)) < 5 * error).all()
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.05)


def test_reported_losses() -> None:
    """Exact without batches; with them right on average; zero for those absent."""
    problem, replicas = problem_of(), 20_000
    x = np.tile([0.7, -0.4], (replicas, 1))
    who = np.ones((replicas, 3), dtype=bool)
    who[:, 2] = False
    exact = clients_of(problem).loss(x[:1], who[:1])
    np.testing.assert_allclose(exact[0, :2], problem.client_losses(x[0])[:2], rtol=1e-14)
    assert exact[0, 2] == 0
    reported = clients_of(problem, 4).loss(x, who)
    np.testing.assert_array_equal(reported[:, 2], 0)
    error = reported.std(axis=0) / np.sqrt(replicas)
    assert (np.abs(reported.mean(axis=0) - exact[0])[:2] < 5 * error[:2]).all()


def test_the_server_has_the_exact_gradient() -> None:
    problem = problem_of()
    x = np.ones((2, 2))
    np.testing.assert_array_equal(clients_of(problem, 2).server_gradient(x), problem.gradient(x))


def test_fedavg_reaches_the_optimum_of_equal_clients() -> None:
    rng = np.random.default_rng(3)
    features, labels = rng.normal(size=(10, 2)), rng.integers(0, 2, 10)
    problem = LogisticProblem([features] * 3, [labels] * 3, ridge=0.5)
    states = simulate(
        FedAvg(0.5, 4),
        clients_of(problem),
        UniformSubset(3, 2),
        np.ones((2, 2)),
        participation_rng=rng,
        branch_rng=rng,
    )
    for _ in range(60):
        state, _ = next(states)
    np.testing.assert_allclose(state["x"], np.tile(problem.x_star, (2, 1)), atol=1e-12)


def test_bad_batch_size_is_named() -> None:
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1, got 0"):
        clients_of(problem_of(), 0)


def test_bad_momentum_is_named() -> None:
    with pytest.raises(ValueError, match=r"momentum must be in \[0, 1\), got 1\.0"):
        LogisticClients(problem_of(), np.random.default_rng(0), momentum=1.0)
