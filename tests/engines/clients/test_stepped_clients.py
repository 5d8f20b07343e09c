"""Local SGD step by step, against arithmetic by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.problems import QuadraticProblem, RippledProblem, nonconvex
from tests.engines.impulses import UnitImpulses

RIPPLED = nonconvex(3, 2, L=2.0, sigma_G=1.0, sigma=1.5, server_sigma=0.6, x_star=[1.0, -1.0])


def rippled_gradient(problem: RippledProblem, y: np.ndarray, client: int) -> np.ndarray:
    offset = y - problem.x_star
    wave = np.sin(problem.frequency * offset)
    return (
        problem.curvature * offset
        + problem.amplitude * problem.frequency * wave
        + problem.tilts[client]
    )


def test_local_sgd_with_a_correction() -> None:
    """``y <- y - lr (grad F_i(y) + v_i)`` for K = 3, from different models."""
    x = np.array([[0.5, 2.0], [3.0, -1.0]])
    who = np.array([[True, False, True], [False, True, False]])
    correction = np.arange(12.0).reshape(2, 3, 2) / 10
    clients = SteppedClients(RIPPLED, Silence())
    change = clients.local_sgd(x, who, steps=3, lr=0.1, correction=correction)
    for replica in range(2):
        for client in range(3):
            y = x[replica].copy()
            for _ in range(3):
                push = correction[replica, client]
                y = y - 0.1 * (rippled_gradient(RIPPLED, y, client) + push)
            expected = (y - x[replica]) * who[replica, client]
            np.testing.assert_allclose(change[replica, client], expected, rtol=1e-12, atol=1e-15)


def test_a_proximal_term_pulls_to_where_the_steps_began() -> None:
    """``y <- y - lr (grad F_i(y) + 2 (y - x))`` for K = 3."""
    x, who = np.array([[0.5, 2.0]]), np.array([[False, True, False]])
    clients = SteppedClients(RIPPLED, Silence())
    y = x[0].copy()
    for _ in range(3):
        y = y - 0.1 * (rippled_gradient(RIPPLED, y, 1) + 2 * (y - x[0]))
    change = clients.local_sgd(x, who, steps=3, lr=0.1, proximal=2.0)
    np.testing.assert_allclose(change[0, 1], y - x[0], rtol=1e-12)
    summed = clients.summed_local_sgd(x, who, np.full((1, 3), 0.5), steps=3, lr=0.1, proximal=2.0)
    np.testing.assert_allclose(summed[0], (y - x[0]) / 2, rtol=1e-12)


def test_sums_follow_the_weights_of_the_present() -> None:
    """Absent clients count for nothing, whatever their weight."""
    x = np.array([[0.5, 2.0]])
    who, weights = np.array([[True, False, True]]), np.array([[0.5, 7.0, 0.25]])
    clients = SteppedClients(RIPPLED, Silence())
    total = clients.summed_local_sgd(x, who, weights, steps=2, lr=0.1)
    sums = clients.summed_local_gradients(x, who, weights, steps=2, lr=0.1)
    expected_total, expected_sums = np.zeros(2), np.zeros(2)
    for client, weight in ((0, 0.5), (2, 0.25)):
        y = x[0].copy()
        for _ in range(2):
            gradient = rippled_gradient(RIPPLED, y, client)
            expected_sums += weight * gradient
            y = y - 0.1 * gradient
        expected_total += weight * (y - x[0])
    np.testing.assert_allclose(total[0], expected_total, rtol=1e-12)
    np.testing.assert_allclose(sums[0], expected_sums, rtol=1e-12)


@pytest.mark.parametrize(("sigma", "dim"), [(1.5, 1), (1.5, 4)])
def test_noise_per_step_has_the_stated_size(sigma: float, dim: int) -> None:
    """One step: covariance ``lr^2 sigma^2 / d`` times the identity, of trace lr^2 sigma^2."""
    problem = QuadraticProblem(np.eye(dim), np.zeros((1, dim)), sigma=sigma)
    who = np.ones((dim, 1), dtype=bool)
    clients = SteppedClients(problem, UnitImpulses(np.arange(dim)))
    kicks = clients.local_sgd(np.zeros((dim, dim)), who, steps=1, lr=0.5)[:, 0]
    np.testing.assert_allclose(kicks.T @ kicks, 0.25 * sigma**2 / dim * np.eye(dim), atol=1e-15)


def test_a_kick_in_the_first_step_is_damped_by_the_second() -> None:
    """``y_2 = (1 - lr h)(-lr xi_1) - lr xi_2`` from the optimum; the gradient sum sees xi_1."""
    problem = QuadraticProblem([[0.5]], [[0.0]], sigma=1.0)
    who = np.ones((2, 1), dtype=bool)
    arguments = {"steps": 2, "lr": 0.4}
    changes = SteppedClients(problem, UnitImpulses(np.arange(2))).local_sgd(
        np.zeros((2, 1)), who, **arguments
    )
    sums = SteppedClients(problem, UnitImpulses(np.arange(2))).summed_local_gradients(
        np.zeros((2, 1)), who, np.ones((2, 1)), **arguments
    )
    np.testing.assert_allclose(changes.ravel(), [-0.4 * 0.8, -0.4], rtol=1e-15)
    np.testing.assert_allclose(sums.ravel(), [-0.4 * 0.5, 0.0], rtol=1e-15)


def test_servers_gradient_and_its_noise() -> None:
    x = np.array([[0.5, 2.0]])
    still = SteppedClients(RIPPLED, Silence()).server_gradient(x)
    by_hand = np.mean([rippled_gradient(RIPPLED, x[0], client) for client in range(3)], axis=0)
    np.testing.assert_allclose(still[0], by_hand, rtol=1e-12)
    kicks = SteppedClients(RIPPLED, UnitImpulses(np.arange(2))).server_gradient(np.repeat(x, 2, 0))
    np.testing.assert_allclose(
        (kicks - still).T @ (kicks - still), 0.6**2 / 2 * np.eye(2), atol=1e-14
    )
