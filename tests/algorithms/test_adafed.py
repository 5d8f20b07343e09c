"""AdaFed: rounds by hand, invariances, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms import AdaFed, FedAvg
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.problems import QuadraticProblem, nonconvex

ALPHA = [0.5, 0.25, 0.25]
PI = [1.0, 0.5, 0.1]


def test_rounds_by_hand() -> None:
    """At x = 2 gradients are 4, -98, -2; alpha/pi = 1/2, 1/2, 5/2; K = 1, eta = 0.1, eta_s = 2.

    Clients 0 and 2 weigh 1/6 and 5/6: 2 - 0.2 (4/6 - 10/6) = 2.2; client 1 alone weighs 1.
    """
    problem = QuadraticProblem([[1.0]], [[-2.0], [100.0], [4.0]])
    who = np.array([[True, False, True], [False, True, False], [False, False, False]])
    state = AdaFed(ALPHA, PI, 0.1, 1, server_lr=2.0).round(
        {"x": np.full((3, 1), 2.0)}, SteppedClients(problem, Silence()), who, CLIENTS
    )
    np.testing.assert_allclose(state["x"], [[2.2], [2.0 + 0.2 * 98], [2.0]], rtol=1e-14)


@given(st.integers(0, 1000), st.floats(0.1, 1.0))
def test_only_ratios_of_availability_matter(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    clients = SteppedClients(nonconvex(3, 2, L=1.0, sigma_G=1.0, seed=seed), Silence())
    x, who = rng.normal(size=(5, 2)), rng.random((5, 3)) < 0.6
    pi = rng.uniform(0.1, 1, 3)
    images = [
        AdaFed(ALPHA, scaled, 0.1, 2).round({"x": x}, clients, who, CLIENTS)["x"]
        for scaled in (pi, factor * pi)
    ]
    np.testing.assert_allclose(images[0], images[1], rtol=1e-12, atol=1e-14)


def test_alike_clients_make_it_fedavg() -> None:
    rng = np.random.default_rng(0)
    clients = SteppedClients(nonconvex(4, 2, L=1.0, sigma_G=1.0), Silence())
    x, who = rng.normal(size=(9, 2)), rng.random((9, 4)) < 0.5
    ours = AdaFed(np.full(4, 0.25), 0.3, 0.1, 2).round({"x": x}, clients, who, CLIENTS)
    theirs = FedAvg(0.1, 2).round({"x": x}, clients, who, CLIENTS)
    np.testing.assert_allclose(ours["x"], theirs["x"], rtol=1e-13)


@given(st.permutations(range(4)))
def test_the_order_of_clients_does_not_matter(order: list[int]) -> None:
    rng = np.random.default_rng(7)
    optima, pi, who = rng.normal(size=(4, 2)), rng.uniform(0.1, 1, 4), rng.random((6, 4)) < 0.5
    alpha, x = np.array([0.1, 0.2, 0.3, 0.4]), rng.normal(size=(6, 2))

    def image(order: list[int]) -> np.ndarray:
        clients = SteppedClients(QuadraticProblem([[1.0, 0], [0, 2.0]], optima[order]), Silence())
        algorithm = AdaFed(alpha[order], pi[order], 0.1, 3)
        return algorithm.round({"x": x}, clients, who[:, order], CLIENTS)["x"]

    np.testing.assert_allclose(image(list(order)), image([0, 1, 2, 3]), rtol=1e-12, atol=1e-14)


def test_contract() -> None:
    algorithm = AdaFed(ALPHA, PI, 0.1, 2)
    assert algorithm.branches == ((CLIENTS, 1.0),)
    assert set(algorithm.init(np.ones((2, 1)), 3)) == {"x"}
    with pytest.raises(
        ValueError, match="target_weights must have one entry for each of 2 clients, got 3"
    ):
        algorithm.init(np.ones((2, 1)), 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"availability": [0.5, 0.0]}, r"availability must be in \(0, 1\], got 0 for client 1"),
        ({"client_lr": -1.0}, r"client_lr must be a finite number above 0, got -1\.0"),
        ({"local_steps": 0}, r"local_steps must be a whole number of at least 1, got 0"),
        ({"server_lr": 0.0}, r"server_lr must be a finite number above 0, got 0\.0"),
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
        AdaFed(**(good | changed))
