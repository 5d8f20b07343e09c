"""FedAvg: the pseudo-code by hand, laws, and bad input."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_problem

from fltheory.algorithms import FedAvg
from fltheory.algorithms.contract import CLIENTS
from fltheory.algorithms.shared.averaging import participant_average
from fltheory.engines import Setting, exact
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex


def test_a_round_by_hand() -> None:
    """Participants 0 and 2 of three, K = 1: x - server_lr lr (g_0 + g_2) / 2."""
    problem = QuadraticProblem([[1.0]], [[-2.0], [100.0], [4.0]])
    clients = SteppedClients(problem, Silence())
    who = np.array([[True, False, True], [False, False, True]])
    state = FedAvg(0.5, 1, server_lr=2.0).round(
        {"x": np.array([[3.0], [3.0]])}, clients, who, CLIENTS
    )
    np.testing.assert_allclose(state["x"], [[3.0 - (5.0 - 1.0) / 2], [3.0 + 1.0]], rtol=1e-15)


@given(st.integers(0, 1000), st.integers(1, 5), st.floats(0.01, 0.5), st.floats(0.2, 2.0))
def test_update_is_the_server_step_along_the_mean_change(
    seed: int, steps: int, lr: float, server_lr: float
) -> None:
    problem = nonconvex(5, 2, L=1.0, sigma_G=1.0, seed=seed)
    clients = SteppedClients(problem, Silence())
    rng = np.random.default_rng(seed)
    x, who = rng.standard_normal((7, 2)), rng.random((7, 5)) < 0.5
    image = FedAvg(lr, steps, server_lr=server_lr).round({"x": x}, clients, who, CLIENTS)["x"]
    changes = clients.local_sgd(x, who, steps=steps, lr=lr)
    for replica in range(7):
        present = changes[replica, who[replica]]
        mean = present.mean(axis=0) if len(present) else np.zeros(2)
        np.testing.assert_allclose(
            image[replica], x[replica] + server_lr * mean, rtol=1e-12, atol=1e-14
        )


def test_nobody_present_changes_nothing() -> None:
    problem = nonconvex(3, 2, L=1.0, sigma_G=1.0)
    x = np.array([[1.0, 2.0]])
    image = FedAvg(0.1, 2).round(
        {"x": x}, SteppedClients(problem, Silence()), np.zeros((1, 3), dtype=bool), CLIENTS
    )
    np.testing.assert_array_equal(image["x"], x)


@given(
    curvature=st.floats(0.1, 2.0),
    step=st.floats(0.05, 0.95),
    steps=st.integers(1, 20),
    sigma=st.floats(0.0, 2.0),
)
def test_one_client_is_local_sgd(curvature: float, step: float, steps: int, sigma: float) -> None:
    """R rounds of K steps are RK steps: ``E s^2 = a^{2RK} s_0^2 + lr^2 sigma^2 sum a^{2j}``."""
    lr = step / curvature
    problem = QuadraticProblem([[curvature]], [[2.0]], sigma=sigma)
    run = exact(Setting(FedAvg(lr, steps), problem, UniformSubset(1, 1), 4, [5.0]))
    total = steps * np.arange(5)
    decay = (1 - step) ** 2
    noise = (lr * sigma) ** 2 * (1 - decay**total) / (1 - decay)
    np.testing.assert_allclose(
        run.squared_distance, 9.0 * decay**total + noise, rtol=1e-10, atol=1e-13
    )


def test_server_step_of_one_is_the_default() -> None:
    problem = random_problem(0, 4, 2)
    arguments = (problem, UniformSubset(4, 2), 5, [1.0, 1.0])
    left, right = (
        exact(Setting(FedAvg(0.1, 2), *arguments)),
        exact(Setting(FedAvg(0.1, 2, server_lr=1.0), *arguments)),
    )
    np.testing.assert_array_equal(left.squared_distance, right.squared_distance)


def test_local_averages_ignore_target_weights() -> None:
    """Weights are uniform over participants; alpha = (3/4, 1/4) moves x* only."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], target_weights=[0.75, 0.25])
    run = exact(Setting(FedAvg(0.5, 1), problem, UniformSubset(2, 2), 50, [0.0]))
    np.testing.assert_allclose(run.squared_distance, 0.25, rtol=1e-12)


def test_participant_average() -> None:
    who = np.array([[True, True, False], [False, False, False], [False, True, False]])
    weights = participant_average(who, np.zeros((3, 1), dtype=np.float32))
    assert weights.dtype == np.float32
    np.testing.assert_array_equal(weights, [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def test_contract() -> None:
    algorithm = FedAvg(0.1, 2)
    x = np.ones((2, 3))
    assert algorithm.branches == ((CLIENTS, 1.0),)
    assert set(algorithm.init(x, 4)) == {"x"}
    np.testing.assert_array_equal(algorithm.init(x, 4)["x"], x)
    with pytest.raises(FrozenInstanceError):
        algorithm.client_lr = 1.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"client_lr": 0.0}, r"client_lr must be a finite number above 0, got 0\.0"),
        ({"client_lr": -0.1}, r"client_lr must be a finite number above 0, got -0\.1"),
        ({"client_lr": np.nan}, r"client_lr must be a finite number above 0, got nan"),
        ({"local_steps": 0}, r"local_steps must be a whole number of at least 1, got 0"),
        ({"local_steps": 2.0}, r"local_steps must be a whole number of at least 1, got 2\.0"),
        ({"server_lr": 0.0}, r"server_lr must be a finite number above 0, got 0\.0"),
        ({"server_lr": np.inf}, r"server_lr must be a finite number above 0, got inf"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FedAvg(**({"client_lr": 0.1, "local_steps": 2} | changed))
