"""MIFA: both starts by hand, the table under schedules, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from replay import replay

from fltheory.algorithms import FedAvg, Harmonic, Mifa, Scheduled
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.problems import QuadraticProblem


def test_from_an_empty_table_by_hand() -> None:
    """G = 1.9 g. An absent client's entry stays; the step is 0.1 times the sum over N = 2.

    1: g_0 = 5, so G = (9.5, 0). 2: g_1 = -1.475, so G_1 = -2.8025. 3: nobody, the same step
    again. 4: client 0 is back, g_0 = 3.85525, so G_0 = 7.324975.
    """
    found = replay(Mifa(0.1, 2, start="zero"), [[1, 0], [0, 1], [0, 0], [1, 0]])
    assert found["x"] == pytest.approx([3, 2.525, 2.190125, 1.85525, 1.62912625], rel=1e-14)
    assert found["updates"][2] == pytest.approx([9.5, -2.8025], rel=1e-14)
    assert found["updates"][4] == pytest.approx([7.324975, -2.8025], rel=1e-14)


def test_nobody_at_all_moves_nothing() -> None:
    assert replay(Mifa(0.1, 2, start="zero"), [[0, 0], [0, 0]])["x"] == [3, 3, 3]


def test_waiting_by_hand() -> None:
    """The last appears in round 3: G = 1.9 (5, -1), so that the step is 0.05 * 7.6 = 0.38."""
    found = replay(Mifa(0.1, 2), [[1, 0], [0, 0], [0, 1], [0, 0]])
    assert found["x"] == pytest.approx([3, 3, 3, 2.62, 2.24], rel=1e-14)
    assert found["appeared"] == [[0, 0], [1, 0], [1, 0], [1, 1], [1, 1]]


def test_each_replica_waits_for_itself() -> None:
    clients = SteppedClients(QuadraticProblem([[1.0]], [[-2.0], [4.0]]), Silence())
    algorithm = Mifa(0.1, 2, server_lr=2.0)
    state = algorithm.init(np.full((2, 1), 3.0), 2)
    state = algorithm.round(state, clients, np.array([[True, True], [True, False]]), CLIENTS)
    np.testing.assert_allclose(state["x"], [[3 - 2 * 0.38], [3.0]], rtol=1e-14)


def test_old_entries_are_scaled_by_the_present_step_size() -> None:
    """Steps 1/10 and 1/20, one local step: 3 - 0.05 * 5 = 2.75, then - 0.025 (5 - 1.25)."""
    schedule = Scheduled(Mifa(1.0, 1, start="zero"), Harmonic(0.1))
    clients = SteppedClients(QuadraticProblem([[1.0]], [[-2.0], [4.0]]), Silence())
    state = schedule.at(1).init(np.array([[3.0]]), 2)
    for index, row in enumerate([[1, 0], [0, 1]], start=1):
        who = np.array([row], dtype=bool)
        state = schedule.at(index).round(state, clients, who, CLIENTS)
    assert state["x"][0, 0] == pytest.approx(2.75 - 0.025 * 3.75, rel=1e-14)


@pytest.mark.parametrize("start", ["wait", "zero"])
def test_everybody_always_there_is_fedavg(start) -> None:
    presence = [[1, 1]] * 5
    expected = replay(FedAvg(0.1, 3), presence)["x"]
    assert replay(Mifa(0.1, 3, start=start), presence)["x"] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"start": "warm"}, "start must be one of 'wait', 'zero', got 'warm'"),
        ({"client_lr": 0.0}, "client_lr must be a finite number above 0"),
        ({"local_steps": 0}, "local_steps must be a whole number of at least 1"),
        ({"server_lr": -1.0}, "server_lr must be a finite number above 0"),
    ],
)
def test_bad_input_is_named(changed, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mifa(**{"client_lr": 0.1, "local_steps": 1, **changed})
