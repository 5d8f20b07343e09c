"""SAFARI: its two branches, its limits q = 1 and q = 0, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_problem

from fltheory.algorithms import FedAvg, Safari
from fltheory.algorithms.contract import CLIENTS, SERVER
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.engines.trajectory import Trajectory
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")


def test_both_branches_by_hand() -> None:
    """Optima -2, 100 and 4: x* = 34. Clients 0 and 2 move by lr/2 (5 - 1); the server by x - x*."""
    problem = QuadraticProblem([[1.0]], [[-2.0], [100.0], [4.0]])
    clients, who = SteppedClients(problem, Silence()), np.array([[True, False, True]])
    algorithm, state = Safari(0.5, 0.5, 0.25, 1), {"x": np.array([[3.0]])}
    np.testing.assert_allclose(algorithm.round(state, clients, who, CLIENTS)["x"], [[2.0]])
    np.testing.assert_allclose(
        algorithm.round(state, clients, who, SERVER)["x"], [[3.0 + 0.25 * 31.0]], rtol=1e-14
    )


def test_branches_have_probabilities_q_and_the_rest() -> None:
    assert dict(Safari(0.75, 0.1, 0.1, 1).branches) == {CLIENTS: 0.75, SERVER: 0.25}


@given(st.integers(0, 1000), st.integers(1, 4), st.floats(0.01, 0.8), st.integers(1, 5))
def test_q_of_one_is_fedavg(seed: int, size: int, lr: float, steps: int) -> None:
    problem = random_problem(seed, 4, 2)
    arguments = (problem, UniformSubset(4, size), 6, [2.0, -1.0])
    left = exact(Setting(Safari(1.0, lr, 0.3, steps), *arguments))
    right = exact(Setting(FedAvg(lr, steps), *arguments))
    for name in FIELDS:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-13)


def test_q_of_one_samples_as_fedavg() -> None:
    """The same participants and the same noise: bit for bit."""
    problem = random_problem(0, 4, 2)
    arguments = (problem, UniformSubset(4, 2), 6, [2.0, -1.0])
    left = monte_carlo(Setting(Safari(1.0, 0.2, 0.3, 2), *arguments), replicas=50, seed=3)
    right = monte_carlo(Setting(FedAvg(0.2, 2), *arguments), replicas=50, seed=3)
    np.testing.assert_array_equal(left.squared_distance, right.squared_distance)


@given(st.floats(0.05, 1.5), st.floats(0.0, 2.0))
def test_q_of_zero_is_sgd_on_the_server(step: float, server_sigma: float) -> None:
    """``E s^2`` of a plain SGD on F, whatever the clients: the mean curvature here is 1."""
    problem = QuadraticProblem(
        [[[0.5]], [[1.5]]], [[3.0], [-1.0]], sigma=9.0, server_sigma=server_sigma
    )
    run = exact(Setting(Safari(0.0, 0.1, step, 3), problem, UniformSubset(2, 1), 5, [2.0]))
    decay = (1 - step) ** 2
    powers = decay ** np.arange(5)
    expected = [4.0 * decay**r + (step * server_sigma) ** 2 * powers[:r].sum() for r in range(6)]
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-10, atol=1e-12)


def one_round(q: float, problem: QuadraticProblem) -> Trajectory:
    return exact(Setting(Safari(q, 0.2, 0.3, 2), problem, UniformSubset(4, 2), 1, [2.0, -1.0]))


@given(st.integers(0, 1000), st.floats(0.0, 1.0))
def test_one_round_is_a_mixture_of_its_branches(seed: int, q: float) -> None:
    problem = random_problem(seed, 4, 2)
    mixed, clients, server = (one_round(share, problem) for share in (q, 1.0, 0.0))
    for name in FIELDS:
        np.testing.assert_allclose(
            mixed[name], q * clients[name] + (1 - q) * server[name], rtol=1e-12
        )


def test_assistance_removes_the_bias_of_exclusion() -> None:
    """With client 2 never present FedAvg settles at the others' optimum, 0 and not x* = 1.

    For SAFARI with q = 1/2 and one step of 1/2 each way the mean map is ``s -> s/2 - 1/4``
    in s = x - x*: it settles at -1/2.
    """
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0], [3.0]])
    participation = UniformSubset(3, 2, excluded=(2,))
    alone = exact(Setting(FedAvg(0.5, 1), problem, participation, 200, [5.0]))
    assisted = exact(Setting(Safari(0.5, 0.5, 0.5, 1), problem, participation, 200, [5.0]))
    np.testing.assert_allclose(alone.squared_distance[-1], 1.0, rtol=1e-12)
    second = (0.5 * 0.25 - 2 * 0.5 * 0.5 * 0.5 * -0.5) / 0.75
    np.testing.assert_allclose(assisted.squared_distance[-1], second, rtol=1e-12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"q": -0.1}, r"q must be a probability in \[0, 1\], got -0\.1"),
        ({"q": 1.1}, r"q must be a probability in \[0, 1\], got 1\.1"),
        ({"q": np.nan}, r"q must be a probability in \[0, 1\], got nan"),
        ({"client_lr": 0.0}, r"client_lr must be a finite number above 0, got 0\.0"),
        ({"assist_lr": -1.0}, r"assist_lr must be a finite number above 0, got -1\.0"),
        ({"assist_lr": np.inf}, r"assist_lr must be a finite number above 0, got inf"),
        ({"local_steps": 0}, r"local_steps must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    good = {"q": 0.5, "client_lr": 0.1, "assist_lr": 0.1, "local_steps": 2}
    with pytest.raises(ValueError, match=message):
        Safari(**(good | changed))
