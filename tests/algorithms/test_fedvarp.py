"""FedVARP and ClusterFedVARP: rounds by hand, the memory's mean, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import random_problem
from replay import replay

from fltheory.algorithms import ClusterFedVarp, FedVarp
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients


def test_fedvarp_by_hand() -> None:
    """Delta = 0.95 g; steps of 0.2 v.

    1: Delta_0 = 4.75 = v. 2: Delta_1 = -1.8525, v = -1.8525 + 4.75/2 = 0.5225. 3: nobody.
    4: Delta = (3.748225, -1.951775), and with everybody v is their mean, 0.898225.
    """
    found = replay(FedVarp(0.1, 2), [[1, 0], [0, 1], [0, 0], [1, 1]])
    assert found["x"] == pytest.approx([3, 2.05, 1.9455, 1.9455, 1.765855], rel=1e-14)
    assert found["y"][1] == pytest.approx([4.75, 0], rel=1e-14)
    assert found["y"][3] == pytest.approx([4.75, -1.8525], rel=1e-14)
    assert found["y"][4] == pytest.approx([3.748225, -1.951775], rel=1e-14)


def test_a_client_that_returns_is_compared_with_what_it_left() -> None:
    """2.05 - 0.2 (0.95 * 4.05 - 4.75 + 4.75/2): after an absence as after none."""
    algorithm = FedVarp(0.1, 2)
    at_once = replay(algorithm, [[1, 0], [1, 0]])["x"][-1]
    late = replay(algorithm, [[1, 0], *[[0, 0]] * 50, [1, 0]])["x"][-1]
    assert at_once == late == pytest.approx(2.05 - 0.2 * (3.8475 - 2.375), rel=1e-14)


def test_clusters_by_hand() -> None:
    """Clusters {0, 1} and {2}, optima -2, 4, 10, one local step of 0.1.

    1: Delta = (5, ., -7), v = -1. 2: Delta = (5.1, -0.9), both over y_0 = 5: surprise
    (0.1 - 5.9)/2 = -2.9, memories' mean (5 + 5 - 7)/3 = 1, v = -1.9, y_0 = 2.1. 3: nobody.
    4: Delta_1 = -0.71, v = -2.81 + (2.1 + 2.1 - 7)/3.
    """
    presence = [[1, 0, 1], [1, 1, 0], [0, 0, 0], [0, 1, 0]]
    found = replay(ClusterFedVarp((0, 0, 1), 0.1, 1), presence, (-2.0, 4.0, 10.0))
    last = 3.29 - 0.1 * (-2.81 - 2.8 / 3)
    assert found["x"] == pytest.approx([3, 3.1, 3.29, 3.29, last], rel=1e-14)
    expected = [[0, 0], [5, -7], [2.1, -7], [2.1, -7], [-0.71, -7]]
    np.testing.assert_allclose(found["y"], expected, rtol=1e-13)


def test_a_cluster_never_seen_contributes_nothing() -> None:
    """2: Delta_0 = 4.5 over y_0 = 5, v = -0.5 + (5 + 0)/2 = 2."""
    found = replay(ClusterFedVarp((0, 1), 0.1, 1), [[1, 0], [1, 0]])
    assert found["x"] == pytest.approx([3, 2.5, 2.3], rel=1e-14)


def random_runs(algorithm, rounds: int = 12):
    """Yield (state before, participants, state after) on five clients in the plane."""
    rng = np.random.default_rng(3)
    clients = SteppedClients(random_problem(1, 5, 2, sigma=0.0), Silence())
    state = algorithm.init(rng.standard_normal((40, 2)), 5)
    for _ in range(rounds):
        who = rng.random((40, 5)) < 0.4
        after = algorithm.round(state, clients, who, CLIENTS)
        yield state, who, after
        state = after


def test_the_step_is_the_memory_mean_and_n_over_m_times_its_change() -> None:
    """As mean(y+) - mean(y) = (M/N) (mean surprise)."""
    for before, who, after in random_runs(FedVarp(0.1, 3, server_lr=0.5)):
        old, new = before["y"].mean(axis=1), after["y"].mean(axis=1)
        present = who.sum(axis=1, keepdims=True)
        step = (present > 0) * old + 5 / np.maximum(present, 1) * (new - old)
        np.testing.assert_allclose(
            after["x"], before["x"] - 0.5 * 0.3 * step, rtol=1e-12, atol=1e-13
        )


def test_a_cluster_for_every_client_is_fedvarp() -> None:
    runs = zip(
        random_runs(FedVarp(0.1, 3)),
        random_runs(ClusterFedVarp((3, 1, 0, 4, 2), 0.1, 3)),
        strict=True,
    )
    for (_, _, plain), (_, _, clustered) in runs:
        np.testing.assert_allclose(plain["x"], clustered["x"], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            plain["y"], clustered["y"][:, [3, 1, 0, 4, 2]], rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (
            (0, 2),
            "clusters must be numbered from 0, each with at least one client, got none in "
            "cluster 1",
        ),
        ((), "got none in cluster 0"),
        (3, "clusters must be one whole number for each client, got 3"),
        ((0, -1), r"clusters\[1\] must be a whole number of at least 0, got -1"),
        ((0.5, 1), r"clusters\[0\] must be a whole number of at least 0, got 0.5"),
    ],
)
def test_bad_clusters(clusters, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClusterFedVarp(clusters, 0.1, 1)


@pytest.mark.parametrize("clusters", [(0, 0), (0, 1, 1, 0)])
def test_clusters_must_cover_the_clients(clusters) -> None:
    message = f"clusters must have one entry for each of 3 clients, got {len(clusters)}"
    with pytest.raises(ValueError, match=message):
        ClusterFedVarp(clusters, 0.1, 1).init(np.zeros((1, 1)), 3)


@pytest.mark.parametrize("make", [FedVarp, lambda *a, **k: ClusterFedVarp((0,), *a, **k)])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"client_lr": 0.0}, "client_lr must be a finite number above 0"),
        ({"local_steps": 0}, "local_steps must be a whole number of at least 1"),
        ({"server_lr": -1.0}, "server_lr must be a finite number above 0"),
    ],
)
def test_bad_input_is_named(make, changed, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**{"client_lr": 0.1, "local_steps": 1, **changed})
