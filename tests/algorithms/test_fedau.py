"""FedAU: weights by hand, the pseudo-code's update, and the exact law of its weights."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest

from fltheory.algorithms import FedAU, FedAvg, Unbiased, WeightedFedAvg
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.engines.fedau_weights.weight_error import weight_error
from fltheory.participation import Bernoulli
from fltheory.problems import QuadraticProblem

PROBLEM = QuadraticProblem([[1.0]], [[-2.0], [4.0]])


def states(algorithm, presence: list[list[int]], like=np.asarray):
    clients = SteppedClients(PROBLEM, Silence())
    state = algorithm.init(np.array([[3.0]]), 2)
    yield state
    for row in presence:
        state = algorithm.round(state, clients, np.array([row], dtype=bool), CLIENTS)
        yield state


@pytest.mark.parametrize(
    ("cutoff", "presence", "expected"),
    [
        # one interval of 1, then 2 rounds, then 3: means 1, 1.5, 2
        (math.inf, [1, 0, 1, 0, 0, 1], [1, 1, 1, 1.5, 1.5, 1.5, 2]),
        # nobody for four rounds: no interval has ended, the weight stays 1; then 5
        (math.inf, [0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 1, 5, 3]),
        # cut after 2: 2, then 2 and 2, then 1
        (2, [0, 0, 0, 0, 1], [1, 1, 2, 2, 2, 5 / 3]),
        # a round of presence at the cut itself ends one interval, not two
        (2, [0, 1, 0, 1], [1, 1, 2, 2, 2]),
        (3, [0, 1, 0, 0, 0, 0, 1], [1, 1, 2, 2, 2, 2.5, 2.5, 7 / 3]),
        # cut at once: always 1
        (1, [0, 0, 1, 0], [1, 1, 1, 1, 1]),
    ],
)
def test_weights_by_hand(cutoff: float, presence: list[int], expected: list[float]) -> None:
    algorithm = FedAU(0.1, 1, cutoff=cutoff)
    found = [s["omega"][0, 0] for s in states(algorithm, [[here, 1] for here in presence])]
    assert found == pytest.approx(expected, rel=1e-15)


def test_the_update_uses_the_weights_of_earlier_rounds() -> None:
    """Client 0 comes in rounds 1 and 2 (from 0): its weight is 1 in round 1, then 2.

    x0 = 3, gradients x + 2 and x - 4, eta/N = 2/2, gamma = 1/10, one step.
    """
    algorithm = FedAU(0.1, 1, server_lr=2.0)
    found = [s["x"][0, 0] for s in states(algorithm, [[0, 1], [1, 0], [1, 1]])]
    first = 3 - 0.1 * (3 - 4)
    second = first - 0.1 * (first + 2)
    third = second - 0.1 * (2 * (second + 2) + 1 * (second - 4))
    assert found == pytest.approx([3, first, second, third], rel=1e-14)


@pytest.mark.parametrize(
    ("algorithm", "factors"),
    [
        # omega of client 0: 1 in round 0; 1 after a presence; 3/2 after intervals 1, 2
        (FedAU(0.1, 1), [(1, 0), (0, 1), (1, 1), (3 / 2, 1)]),
        # cut at 1: omega is 1 for ever
        (FedAU(0.1, 1, cutoff=1), [(1, 0), (0, 1), (1, 1), (1, 1)]),
        (WeightedFedAvg((0.5, 0.5), 0.1, 1), [(1, 0), (0, 1), (1, 1), (1, 1)]),
        # over the two that are there, not over N
        (FedAvg(0.1, 1), [(2, 0), (0, 2), (1, 1), (1, 1)]),
        # p = (1/2, 4/5)
        (Unbiased([0.5, 0.5], [0.5, 0.8], 0.1, 1), [(2, 0), (0, 1.25), (2, 1.25), (2, 1.25)]),
    ],
    ids=["FedAU", "FedAU, K = 1", "average all", "average participating", "known statistics"],
)
def test_the_comparison_set_by_hand(algorithm, factors) -> None:
    """Presence 10, 01, 11, 11; x moves by -0.1/2 times factor and gradient, x + 2 and x - 4.

    Client 1 is there in the rounds 1, 2, 3 after an interval of 2, and of 1: its omega is 1 in
    round 1, as none has ended, 2 in round 2 and 3/2 in round 3.
    """
    expected = [3.0]
    for t, (first, second) in enumerate(factors):
        x = expected[-1]
        if isinstance(algorithm, FedAU) and algorithm.cutoff != 1:
            second *= {2: 2, 3: 3 / 2}.get(t, 1)
        expected.append(x - 0.05 * (first * (x + 2) + second * (x - 4)))
    found = [s["x"][0, 0] for s in states(algorithm, [[1, 0], [0, 1], [1, 1], [1, 1]])]
    assert found == pytest.approx(expected, rel=1e-14)


def test_an_empty_round_moves_nothing_but_time() -> None:
    algorithm = FedAU(0.1, 1, cutoff=3)
    before, after = states(algorithm, [[0, 0]])
    np.testing.assert_array_equal(after["x"], before["x"])
    assert after["lasted"].tolist() == [[1, 1]]
    assert after["intervals"].tolist() == [[0, 0]]


def test_sampled_weights_have_the_exact_error() -> None:
    """40,000 runs to t = 12; the squares lie in [0, 4], so Hoeffding at 1e-9 allows 0.064."""
    p, cutoff, replicas = 0.3, 5, 40_000
    algorithm = FedAU(0.1, 1, cutoff=cutoff)
    clients = SteppedClients(PROBLEM, Silence())
    state = algorithm.init(np.full((replicas, 1), 3.0), 2)
    process = Bernoulli([p, 1.0]).masks(np.random.default_rng(7), replicas)
    expected = weight_error(p, cutoff, 13).values
    allowed = 4 * math.sqrt(math.log(2 * 13 / 1e-9) / (2 * replicas))
    for t, who in enumerate(islice(process, 13)):
        error = ((p * state["omega"][:, 0] - 1) ** 2).mean()
        assert abs(error - expected[t]) <= allowed
        state = algorithm.round(state, clients, who, CLIENTS)
    assert allowed < 0.1 < expected[0]


def test_always_there_is_fedavg_over_all() -> None:
    run = monte_carlo(
        Setting(FedAU(0.1, 3), PROBLEM, Bernoulli([1, 1]), 20, [3.0]), replicas=2, seed=0
    )
    expected = (3.0 - 1.0) * (0.9**3) ** np.arange(21)
    np.testing.assert_allclose(run.squared_distance, expected**2, rtol=1e-12)


def test_no_exact_moments_with_weights_from_the_past() -> None:
    with pytest.raises(NotAffineError):
        exact(Setting(FedAU(0.1, 1), PROBLEM, Bernoulli([0.5, 1.0]), 5, [3.0]))


def test_torch_gives_the_same() -> None:
    torch = pytest.importorskip("torch")
    from tests.hardware.clients.torch_quadratic_clients import TorchQuadraticClients

    algorithm = FedAU(0.1, 2, cutoff=3, server_lr=1.5)
    presence = [[0, 1], [1, 0], [0, 0], [0, 1], [0, 0], [1, 1]]
    expected = list(states(algorithm, presence))[-1]
    clients = TorchQuadraticClients(PROBLEM, Silence())
    state = algorithm.init(torch.tensor([[3.0]], dtype=torch.float64), 2)
    for row in presence:
        state = algorithm.round(state, clients, torch.tensor([row], dtype=torch.bool), CLIENTS)
    for name, value in expected.items():
        np.testing.assert_allclose(state[name].numpy(), value, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"client_lr": 0.0}, "client_lr must be a finite number above 0"),
        ({"local_steps": 0}, "local_steps must be a whole number of at least 1"),
        ({"cutoff": 0}, "cutoff must be a whole number of at least 1"),
        ({"cutoff": 2.5}, "cutoff must be a whole number of at least 1"),
        ({"server_lr": -1.0}, "server_lr must be a finite number above 0"),
    ],
)
def test_bad_arguments(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FedAU(**{"client_lr": 0.1, "local_steps": 1, **arguments})
