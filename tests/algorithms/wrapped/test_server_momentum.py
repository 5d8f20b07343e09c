"""Server momentum: heavy ball by hand, and nothing at zero."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import CAFed, FedAvg, Safari, ServerMomentum
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.problems import QuadraticProblem

EVERYBODY = np.array([[True, True]])


def clients() -> SteppedClients:
    """Losses (x + 1)^2/2 and (x - 1)^2/2: a round of FedAvg with step 1/2 halves x."""
    return SteppedClients(QuadraticProblem([[1.0]], [[-1.0], [1.0]]), Silence())


def test_three_rounds_by_hand() -> None:
    """x = 16, momentum 1/2: v = -8, then -4 - 4 = -8, then -4 + 0; x = 8, 0, -4."""
    algorithm = ServerMomentum(FedAvg(0.5, 1), 0.5)
    state = algorithm.init(np.array([[16.0]]), 2)
    seen = []
    for _ in range(3):
        state = algorithm.round(state, clients(), EVERYBODY, CLIENTS)
        seen.append(float(state["x"][0, 0]))
    assert seen == [8.0, 0.0, -4.0]


def test_without_momentum_nothing_changes() -> None:
    algorithm = CAFed([0.5, 0.5], 0.25, 1)
    plain, wrapped = algorithm.init(np.ones((1, 1)), 2), ServerMomentum(algorithm, 0.0)
    state = wrapped.init(np.ones((1, 1)), 2)
    for _ in range(4):
        plain = algorithm.round(plain, clients(), EVERYBODY, CLIENTS)
        state = wrapped.round(state, clients(), EVERYBODY, CLIENTS)
        for name, array in plain.items():
            np.testing.assert_allclose(state[name], array, rtol=1e-14)


def test_branches_are_the_algorithms() -> None:
    inner = Safari(0.3, 0.1, 0.1, 1)
    assert ServerMomentum(inner, 0.5).branches == inner.branches


@pytest.mark.parametrize("momentum", [-0.1, 1.0, np.nan])
def test_bad_momentum_is_named(momentum: float) -> None:
    with pytest.raises(ValueError, match=r"momentum must be in \[0, 1\), got"):
        ServerMomentum(FedAvg(0.1, 1), momentum)
