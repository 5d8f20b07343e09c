"""SCAFFOLD: both options by hand and against the pseudo-code, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import random_problem
from replay import replay

from fltheory.algorithms import Scaffold
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines.clients.analytic_clients import GaussianNoise, Silence, SteppedClients

PRESENCE = [[1, 0], [0, 1], [0, 0], [1, 0]]


def test_option_two_by_hand() -> None:
    """Changes are -0.19 (g - c_i + c), new controls the mean gradient along the way.

    1: no correction; gradients 5 and 4.5. 2: c_1 = 0, c = 2.375; gradients -1.95 and -1.9925,
    change -0.19 * 0.425. 3: nobody. 4: c - c_0 = 1.389375 - 4.75 = -3.360625, gradients
    3.96925 and 3.96925 - 0.1 * 0.608625, change -0.19 * 0.608625.
    """
    found = replay(Scaffold(0.1, 2), PRESENCE)
    assert found["x"] == pytest.approx([3, 2.05, 1.96925, 1.96925, 1.85361125], rel=1e-14)
    expected = [[0, 0], [4.75, 0], [4.75, -1.97125], [4.75, -1.97125], [3.93881875, -1.97125]]
    np.testing.assert_allclose(found["c_i"], expected, rtol=1e-13)


def test_option_one_by_hand() -> None:
    """Controls are gradients at x: 5, then -1.95 with change -0.19 (-1.95 + 2.5)."""
    found = replay(Scaffold(0.1, 2, option=1), PRESENCE[:3])
    assert found["x"] == pytest.approx([3, 2.05, 1.9455, 1.9455], rel=1e-14)
    np.testing.assert_allclose(found["c_i"], [[0, 0], [5, 0], [5, -1.95], [5, -1.95]], rtol=1e-13)


def test_server_step_moves_the_model_alone() -> None:
    found = replay(Scaffold(0.1, 2, server_lr=2.0), [[1, 1]])
    assert found["x"][1] == pytest.approx(3 - 2 * 0.19 * (5 - 1) / 2, rel=1e-14)
    assert found["c_i"][1] == pytest.approx([0.95 * 5, -0.95], rel=1e-14)


def test_a_client_that_returns_has_its_control_as_left() -> None:
    """Client 0 alone: c - c_0 = 2.375 - 4.75, change -0.19 (4.05 - 2.375)."""
    algorithm = Scaffold(0.1, 2)
    at_once = replay(algorithm, [[1, 0], [1, 0]])["x"][-1]
    late = replay(algorithm, [[1, 0], *[[0, 0]] * 50, [1, 0]])["x"][-1]
    assert at_once == late == pytest.approx(2.05 - 0.19 * 1.675, rel=1e-14)


def algorithm_1(problem, x, presence, option):
    """Run the paper's pseudo-code, c stored and divided by N, and yield x, c and the c_i."""
    n, steps, lr = problem.n_clients, 3, 0.1
    c, c_i = np.zeros_like(x), np.zeros((n, x.size))

    def gradient(i, y):
        return problem.hessians[i] @ (y - problem.optima[i])

    for who in presence:
        moves, differences = [], []
        old = c_i.copy()
        for i in np.flatnonzero(who):
            y = x.copy()
            for _ in range(steps):
                y = y - lr * (gradient(i, y) - old[i] + c)
            c_i[i] = gradient(i, x) if option == 1 else old[i] - c + (x - y) / (steps * lr)
            moves.append(y - x)
            differences.append(c_i[i] - old[i])
        if moves:
            x = x + 0.7 / len(moves) * np.sum(moves, axis=0)
            c = c + np.sum(differences, axis=0) / n
        yield x, c, c_i


@pytest.mark.parametrize("option", [1, 2])
def test_the_pseudo_code_with_the_servers_control_stored(option) -> None:
    """From 0 to 5 participants; the stored control stays the mean of the clients'."""
    problem = random_problem(1, 5, 2, sigma=0.0)
    rng = np.random.default_rng(4)
    presence = rng.random((30, 5)) < 0.4
    assert {0, 1, 2, 3} <= set(presence.sum(axis=1).tolist())
    clients, start = SteppedClients(problem, Silence()), rng.standard_normal(2)
    algorithm = Scaffold(0.1, 3, option=option, server_lr=0.7)
    state = algorithm.init(start[None], 5)
    pseudo_code = algorithm_1(problem, start, presence, option)
    for who, (x, c, c_i) in zip(presence, pseudo_code, strict=True):
        state = algorithm.round(state, clients, who[None], CLIENTS)
        np.testing.assert_allclose(c, c_i.mean(axis=0), rtol=0, atol=1e-13)
        np.testing.assert_allclose(state["x"][0], x, rtol=0, atol=1e-12)
        np.testing.assert_allclose(state["c_i"][0], c_i, rtol=0, atol=1e-12)


def test_option_one_draws_a_further_gradient() -> None:
    """The control's noise is not that of the local steps: one step's change is not -0.1 c_i."""
    clients = SteppedClients(random_problem(1, 1, 2), GaussianNoise(np.random.default_rng(0)))
    everybody = np.ones((1, 1), dtype=bool)
    start = np.ones((1, 2))
    for option, same in ((1, False), (2, True)):
        algorithm = Scaffold(0.1, 1, option=option)
        state = algorithm.round(algorithm.init(start, 1), clients, everybody, CLIENTS)
        assert np.allclose(state["x"] - start, -0.1 * state["c_i"][:, 0]) is same


def test_full_participation_has_the_minimiser_as_fixed_point() -> None:
    """Unlike FedAvg with many local steps: the limit is x*, whatever the clients' Hessians."""
    problem = random_problem(2, 4, 2, sigma=0.0)
    clients = SteppedClients(problem, Silence())
    algorithm = Scaffold(0.1, 5)
    state = algorithm.init(np.ones((1, 2)), 4)
    for _ in range(400):
        state = algorithm.round(state, clients, np.ones((1, 4), dtype=bool), CLIENTS)
    np.testing.assert_allclose(state["x"][0], problem.x_star, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"option": 3}, "option must be one of 1, 2, got 3"),
        ({"option": True}, "option must be one of 1, 2, got True"),
        ({"option": "II"}, "option must be one of 1, 2, got 'II'"),
        ({"client_lr": 0.0}, "client_lr must be a finite number above 0"),
        ({"local_steps": 0}, "local_steps must be a whole number of at least 1"),
        ({"server_lr": -1.0}, "server_lr must be a finite number above 0"),
    ],
)
def test_bad_input_is_named(changed, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scaffold(**{"client_lr": 0.1, "local_steps": 1, **changed})
