"""Unbiased: rounds by hand, its mean, and bad input."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms import FedAvg, Unbiased
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines import Setting, exact
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.participation import MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex, quadratic

ALPHA = [0.5, 0.25, 0.25]
PI = [1.0, 0.5, 0.1]


def quiet_clients() -> SteppedClients:
    """Losses (x + 2)^2/2, (x - 100)^2/2 and (x - 4)^2/2."""
    problem = QuadraticProblem([[1.0]], [[-2.0], [100.0], [4.0]], target_weights=ALPHA)
    return SteppedClients(problem, Silence())


def test_rounds_by_hand() -> None:
    """At x = 2 gradients are 4, -98, -2 and q = 1/2, 1/2, 5/2; K = 1, eta = 0.1, eta_s = 2.

    Clients 0 and 2: 2 - 0.2 (0.5 * 4 + 2.5 * (-2)) = 2.6; client 1: 2 + 0.2 * 49 = 11.8.
    """
    who = np.array([[True, False, True], [False, True, False], [False, False, False]])
    state = Unbiased(ALPHA, PI, 0.1, 1, server_lr=2.0).round(
        {"x": np.full((3, 1), 2.0)}, quiet_clients(), who, CLIENTS
    )
    np.testing.assert_allclose(state["x"], [[2.6], [11.8], [2.0]], rtol=1e-14)


def test_the_mean_step_is_that_of_all_clients_weighted_by_alpha() -> None:
    """Averaged over the stationary law the step is eta sum_k alpha_k grad F_k: unbiased."""
    pi = [0.9, 0.3, 0.6]
    chains = MarkovOnOff(pi, 0.5)
    probability, masks = zip(*chains.outcomes(), strict=True)
    x = np.full((len(masks), 1), 2.0)
    image = Unbiased(ALPHA, pi, 0.1, 1).round({"x": x}, quiet_clients(), np.array(masks), CLIENTS)
    expected = 2.0 - 0.1 * (0.5 * 4 + 0.25 * -98 + 0.25 * -2)
    np.testing.assert_allclose(np.array(probability) @ image["x"], [expected], rtol=1e-14)


@given(st.integers(0, 1000), st.permutations(range(4)))
def test_the_order_of_clients_does_not_matter(seed: int, order: list[int]) -> None:
    rng = np.random.default_rng(seed)
    optima, pi = rng.normal(size=(4, 2)), rng.uniform(0.1, 1, 4)
    alpha, who = rng.dirichlet(np.ones(4)), rng.random((3, 4)) < 0.5
    x = rng.normal(size=(3, 2))

    def image(order: list[int]) -> np.ndarray:
        clients = SteppedClients(QuadraticProblem([[1.0, 0], [0, 2.0]], optima[order]), Silence())
        algorithm = Unbiased(alpha[order] / alpha.sum(), pi[order], 0.1, 3)
        return algorithm.round({"x": x}, clients, who[:, order], CLIENTS)["x"]

    np.testing.assert_allclose(image(list(order)), image([0, 1, 2, 3]), rtol=1e-12, atol=1e-14)


def test_contract() -> None:
    algorithm = Unbiased(ALPHA, 0.5, 0.1, 2)
    x = np.ones((2, 1))
    assert algorithm.branches == ((CLIENTS, 1.0),)
    assert set(algorithm.init(x, 3)) == {"x"}
    np.testing.assert_array_equal(algorithm.availability, [0.5, 0.5, 0.5])
    with pytest.raises(FrozenInstanceError):
        algorithm.client_lr = 1.0
    with pytest.raises(
        ValueError, match="target_weights must have one entry for each of 4 clients, got 3"
    ):
        algorithm.init(x, 4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target_weights": [0.5, 0.6]}, r"target_weights must sum to 1, got a sum of 1\.1"),
        ({"target_weights": [1.5, -0.5]}, r"target_weights must be positive, got -0\.5"),
        ({"availability": [0.5, 0.0]}, r"availability must be in \(0, 1\], got 0 for client 1"),
        ({"availability": [1.5, 0.2]}, r"availability must be in \(0, 1\], got 1\.5 for client 0"),
        ({"availability": [0.5]}, r"availability must have shape \(2,\), got \(1,\)"),
        ({"client_lr": 0.0}, r"client_lr must be a finite number above 0, got 0\.0"),
        ({"local_steps": 0}, r"local_steps must be a whole number of at least 1, got 0"),
        ({"server_lr": np.inf}, r"server_lr must be a finite number above 0, got inf"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    good = {
        "target_weights": [0.5, 0.5],
        "availability": [0.5, 0.5],
        "client_lr": 0.1,
        "local_steps": 2,
    }
    with pytest.raises(ValueError, match=message):
        Unbiased(**(good | changed))


def test_equal_availability_is_a_scaled_step_on_everybody() -> None:
    """With pi = 1 all are there; halving alpha/pi is halving the server's step."""
    clients = SteppedClients(nonconvex(3, 2, L=1.0, sigma_G=1.0), Silence())
    x, who = np.array([[1.0, -1.0]]), np.ones((1, 3), dtype=bool)
    one = Unbiased(ALPHA, 0.5, 0.1, 2, server_lr=0.5).round({"x": x}, clients, who, CLIENTS)
    two = Unbiased(ALPHA, 1.0, 0.1, 2, server_lr=1.0).round({"x": x}, clients, who, CLIENTS)
    np.testing.assert_allclose(one["x"], two["x"], rtol=1e-14)


def test_on_uniform_subsets_it_is_fedavg_in_the_exact_engine() -> None:
    """With alpha = 1/N and pi = m/N the weights are 1/m."""
    problem = quadratic(4, 2, 1.0, 0.2, 1.0, sigma=0.5)
    arguments = (problem, UniformSubset(4, 2), 6, [1.0, -1.0])
    ours = exact(Setting(Unbiased(np.full(4, 0.25), 0.5, 0.1, 3), *arguments))
    theirs = exact(Setting(FedAvg(0.1, 3), *arguments))
    np.testing.assert_allclose(ours.squared_distance, theirs.squared_distance, rtol=1e-12)
