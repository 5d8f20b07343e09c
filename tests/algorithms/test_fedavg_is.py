"""FedAvg-IS: rounds by hand, unbiasedness, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from replay import replay

from fltheory.algorithms import FedAvgIS, WeightedFedAvg
from fltheory.engines import Setting, exact
from fltheory.participation import Bernoulli
from fltheory.problems import QuadraticProblem


def test_by_hand() -> None:
    """p = (1/2, 1/4): factors 1 and 2 on the changes -0.19 g.

    1: g_0 = 5. 2: g_1 = -1.95. 3: nobody. 4: g = (4.791, -1.209).
    """
    found = replay(FedAvgIS((0.5, 0.25), 0.1, 2), [[1, 0], [0, 1], [0, 0], [1, 1]])
    last = 2.791 - 0.91029 + 0.45942
    assert found["x"] == pytest.approx([3, 2.05, 2.791, 2.791, last], rel=1e-14)


def test_no_memory_of_absences() -> None:
    algorithm = FedAvgIS((0.5, 0.25), 0.1, 2)
    assert (
        replay(algorithm, [[1, 0]])["x"][-1] == replay(algorithm, [[0, 0]] * 9 + [[1, 0]])["x"][-1]
    )


def test_is_weighted_fedavg_with_these_weights() -> None:
    """And so unbiased: q_i p_i = 1/N."""
    problem = QuadraticProblem([[1.0]], [[-2.0], [4.0]], sigma=0.5)
    p = (0.5, 0.25)
    arguments = (problem, Bernoulli(p), 10, [3.0])
    found = exact(Setting(FedAvgIS(p, 0.1, 2, server_lr=0.7), *arguments))
    expected = exact(Setting(WeightedFedAvg((1.0, 2.0), 0.1, 2, server_lr=0.7), *arguments))
    np.testing.assert_allclose(found.squared_distance, expected.squared_distance, rtol=1e-12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"availability": (0.5, 0.0)},
            r"availability must be in \(0, 1\], got 0 for client 1",
        ),
        ({"availability": (1.5,)}, r"must be in \(0, 1\], got 1.5 for client 0"),
        ({"availability": ()}, r"availability must have shape \(N,\) with N >= 1"),
        ({"client_lr": 0.0}, "client_lr must be a finite number above 0"),
        ({"local_steps": 0}, "local_steps must be a whole number of at least 1"),
        ({"server_lr": -1.0}, "server_lr must be a finite number above 0"),
    ],
)
def test_bad_input_is_named(changed, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FedAvgIS(**{"availability": (0.5,), "client_lr": 0.1, "local_steps": 1, **changed})


def test_as_many_availabilities_as_clients() -> None:
    with pytest.raises(
        ValueError, match="availability must have one entry for each of 3 clients, got 2"
    ):
        FedAvgIS((0.5, 0.5), 0.1, 1).init(np.zeros((1, 1)), 3)
