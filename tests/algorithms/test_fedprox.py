"""FedProx: rounds by hand, what it is without its term, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import AdaFed, FedAvg, FedProx
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.problems import QuadraticProblem

WHO = np.array(
    [[True, False, True], [False, True, False], [True, True, True], [False, False, False]]
)


def after(algorithm: Any, x: np.ndarray, clients: Any, who: np.ndarray = WHO) -> np.ndarray:
    state = algorithm.init(x, clients.n_clients)
    return algorithm.round(state, clients, who, CLIENTS)["x"]


def test_rounds_by_hand() -> None:
    """From 2, K = 2, eta = 1/4, mu = 2, weights 1, 0, 3; optima -2, 9, 4.

    A first step changes y by -g/4 and a second by -(g + (1 + 2) (-g/4))/4 = -g/16, so that a
    client moves by -5 g/16: gradients 4 and -2 make -5/4 and 5/8. Weights of the first and the
    third are 1/4 and 3/4: -5/16 + 15/32 = 5/32, twice. The second alone has no weight.
    """
    clients = SteppedClients(QuadraticProblem([[1.0]], [[-2.0], [9.0], [4.0]]), Silence())
    algorithm = FedProx(0.25, 2, 2.0, client_weights=(1, 0, 3), server_lr=2.0)
    found = after(algorithm, np.full((4, 1), 2.0), clients)
    np.testing.assert_allclose(found, [[2 + 5 / 16], [2.0], [2 + 5 / 16], [2.0]], rtol=1e-14)


def test_a_strong_term_leaves_a_shorter_way() -> None:
    """K to infinity: y - x = -(H + mu)^{-1} g, here 4/(1 + 7) of 4 = -1/2 on the way from 2."""
    clients = SteppedClients(QuadraticProblem([[1.0]], [[-2.0]]), Silence())
    found = after(FedProx(0.1, 400, 7.0), np.full((1, 1), 2.0), clients, np.ones((1, 1), bool))
    assert found[0, 0] == pytest.approx(1.5, rel=1e-14)


def test_without_its_term_it_is_fedavg() -> None:
    problem = random_problem(3, 3, 2, sigma=0.0)
    clients, x = SteppedClients(problem, Silence()), np.random.default_rng(1).normal(size=(4, 2))
    plain = after(FedAvg(0.1, 3, server_lr=0.7), x, clients)
    np.testing.assert_allclose(after(FedProx(0.1, 3, 0, server_lr=0.7), x, clients), plain)


def test_weighted_by_data_it_is_adafed_with_everybody_available() -> None:
    """McMahan et al.'s n_k / m_t over those present, by another implementation."""
    problem, n = random_problem(3, 3, 2, sigma=0.0), np.array([10.0, 1.0, 5.0])
    clients, x = SteppedClients(problem, Silence()), np.random.default_rng(1).normal(size=(4, 2))
    expected = after(AdaFed(n / n.sum(), 1.0, 0.1, 3), x, clients)
    found = after(FedProx(0.1, 3, 0, client_weights=tuple(n)), x, clients)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"proximal": -1.0}, r"proximal must be a finite number of at least 0, got -1\.0"),
        ({"client_weights": (1.0, -1.0)}, r"client_weights must not be negative and not all zero"),
        ({"client_weights": (0.0, 0.0)}, r"client_weights must not be negative and not all zero"),
        ({"client_weights": 2.0}, r"client_weights must have shape \(N,\), got \(\)"),
        ({"client_lr": 0.0}, r"client_lr must be a finite number above 0, got 0\.0"),
        ({"local_steps": 0}, r"local_steps must be a whole number of at least 1, got 0"),
        ({"server_lr": 0.0}, r"server_lr must be a finite number above 0, got 0\.0"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FedProx(**{"client_lr": 0.1, "local_steps": 2, "proximal": 0.5, **changed})


def test_weights_are_one_a_client() -> None:
    with pytest.raises(
        ValueError, match="client_weights must have one entry for each of 2 clients, got 3"
    ):
        FedProx(0.1, 2, 0.5, client_weights=(1, 2, 3)).init(np.zeros((1, 1)), 2)
