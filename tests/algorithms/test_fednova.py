"""FedNova: rounds by hand, what equal steps make of it, its fixed point, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import FedAvg, FedNova, FedProx
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
    """From 2, eta = 1/2, gradients 4, -7 and -2, steps 2, 1 and 1, weights 1, 0 and 3.

    Changes are -3 (the way of 4 shrinks by 1 - 1/4), 7/2 and 1; a step of each -3/2, 7/2, 1. Of
    the first and third p = 1/4, 3/4 and tau_eff = 5/4: 5/4 (-3/8 + 3/4) = 15/32, doubled by the
    server. The second has no weight, whoever is with it.
    """
    clients = SteppedClients(QuadraticProblem([[1.0]], [[-2.0], [9.0], [4.0]]), Silence())
    algorithm = FedNova(0.5, (2, 1, 1), client_weights=(1, 0, 3), server_lr=2.0)
    found = after(algorithm, np.full((4, 1), 2.0), clients)
    np.testing.assert_allclose(found, [[2 + 15 / 16], [2.0], [2 + 15 / 16], [2.0]], rtol=1e-14)


def test_who_is_alone_moves_the_model_by_its_whole_change() -> None:
    """p = 1 and tau_eff = tau_i: what FedAvg does too."""
    clients = SteppedClients(random_problem(4, 3, 2, sigma=0.0), Silence())
    x, alone = np.ones((3, 2)), np.eye(3, dtype=bool)
    found = after(FedNova(0.1, (3, 1, 4)), x, clients, alone)
    for client, steps in enumerate((3, 1, 4)):
        expected = after(FedAvg(0.1, steps), x, clients, alone)[client]
        np.testing.assert_allclose(found[client], expected, rtol=1e-14)


@pytest.mark.parametrize("weights", [None, (2.0, 0.0, 5.0)])
@pytest.mark.parametrize("steps", [3, (3, 3, 3)])
def test_equal_steps_make_it_weighted_fedavg(weights: Any, steps: Any) -> None:
    clients = SteppedClients(random_problem(4, 3, 2, sigma=0.0), Silence())
    x = np.random.default_rng(1).normal(size=(4, 2))
    found = after(FedNova(0.1, steps, client_weights=weights), x, clients)
    expected = after(FedProx(0.1, 3, 0, client_weights=weights), x, clients)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_small_steps_end_at_the_optimum_where_fedavg_does_not() -> None:
    """With steps 5, 1 and 2 the paper's objective inconsistency: FedAvg ends at sum tau_i F_i."""
    problem = QuadraticProblem([[1.0]], [[0.0], [3.0], [6.0]])
    clients, everybody = SteppedClients(problem, Silence()), np.ones((1, 3), dtype=bool)
    x = np.zeros((1, 1))
    for _ in range(3000):
        x = after(FedNova(1e-3, (5, 1, 2)), x, clients, everybody)
    assert x[0, 0] == pytest.approx(3.0, abs=0.02)
    assert abs((0 * 5 + 3 * 1 + 6 * 2) / 8 - 3.0) > 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"local_steps": (2, 0)}, r"local_steps must be a whole number of at least 1, got 0"),
        ({"local_steps": ()}, r"local_steps must be a whole number of at least 1, got \(\)"),
        ({"local_steps": 1.5}, r"local_steps must be a whole number of at least 1, got 1\.5"),
        ({"client_weights": (1.0, -1.0)}, r"client_weights must not be negative and not all zero"),
        ({"client_lr": 0.0}, r"client_lr must be a finite number above 0, got 0\.0"),
        ({"server_lr": 0.0}, r"server_lr must be a finite number above 0, got 0\.0"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FedNova(**{"client_lr": 0.1, "local_steps": (2, 3), **changed})


@pytest.mark.parametrize("steps", [(1, 2, 3), (2,)])
def test_steps_and_weights_are_one_a_client(steps: tuple[int, ...]) -> None:
    with pytest.raises(
        ValueError, match="local_steps must have one entry for each of 2 clients, got"
    ):
        FedNova(0.1, steps).init(np.zeros((1, 1)), 2)
    with pytest.raises(
        ValueError, match="client_weights must have one entry for each of 2 clients, got"
    ):
        FedNova(0.1, 2, client_weights=(1.0,) * 3).init(np.zeros((1, 1)), 2)
