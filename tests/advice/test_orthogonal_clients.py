"""Models as weights: what the table's algorithms do with orthogonal optima, on another backend."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.advice.orthogonal_clients import OrthogonalClients
from fltheory.algorithms.table import ALGORITHMS
from fltheory.engines.clients.analytic_clients import GaussianNoise, QuadraticClients, Silence
from fltheory.problems import QuadraticProblem

N, ROUNDS = 4, 12
CURVATURES = np.array([1.0, 0.5, 0.8, 0.3])
ALPHA = np.array([0.4, 0.3, 0.2, 0.1])
WHO = np.random.default_rng(3).random((ROUNDS, 1, N)) < 0.6
CIRCUMSTANCES = {
    "client_lr": 0.1,
    "assist_lr": 0.2,
    "local_steps": 2,
    "target_weights": ALPHA,
    "aggregation_weights": (1 / N,) * N,
    "availability": (0.6,) * N,
    "correlation": 0.0,
}


def orthogonal(noise: float = 0.0, seed: int = 0) -> OrthogonalClients:
    targets = ALPHA * CURVATURES
    return OrthogonalClients(
        CURVATURES,
        targets / targets.sum(),
        np.ones(N),
        curvature=float(targets.sum()),
        radius=1.0,
        noise=noise,
        rng=np.random.default_rng(seed),
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_weights_are_those_of_quadratic_clients_with_orthogonal_optima(name: str) -> None:
    algorithm = ALGORITHMS[name].tried(N, CIRCUMSTANCES)
    optima = np.eye(N + 1)[:N]
    hessians = CURVATURES[:, None, None] * np.eye(N + 1)
    problem = QuadraticProblem(hessians, optima, target_weights=ALPHA)
    quadratic, ours = QuadraticClients(problem, Silence()), orthogonal()
    states = [
        algorithm.init(np.eye(N + 1)[N:], N),
        algorithm.init(ours.at_start(1), N),
    ]
    for index, who in enumerate(WHO):
        branch = algorithm.branches[index % len(algorithm.branches)][0]
        states = [
            algorithm.round(state, clients, who, branch)
            for state, clients in zip(states, (quadratic, ours), strict=True)
        ]
        x = states[1]["x"]
        np.testing.assert_allclose(ours.weights(x)[0], states[0]["x"][0, :N], atol=1e-12)
        np.testing.assert_allclose(ours.start(x), states[0]["x"][:, N], atol=1e-12)
        assert (ours.weights(x).sum() + ours.start(x))[0] == pytest.approx(1)


def test_noise_is_that_of_quadratic_clients() -> None:
    algorithm = ALGORITHMS["fedavg"].tried(N, CIRCUMSTANCES)
    replicas = 4000
    problem = QuadraticProblem(
        CURVATURES[:, None, None] * np.eye(1), np.zeros((N, 1)), sigma=1.0, target_weights=ALPHA
    )
    quadratic = QuadraticClients(problem, GaussianNoise(np.random.default_rng(5)))
    ours = orthogonal(1.0)
    theirs_state = algorithm.init(np.zeros((replicas, 1)), N)
    state = algorithm.init(ours.at_start(replicas // 8), N)
    for who in WHO:
        theirs_state = algorithm.round(
            theirs_state, quadratic, np.repeat(who, replicas, axis=0), "clients"
        )
        state = algorithm.round(state, ours, np.repeat(who, replicas // 8, axis=0), "clients")
    expected = float((theirs_state["x"] ** 2).mean())
    # Both are means of 4,000 squares of Gaussians: 5 standard deviations of their difference.
    assert ours.noise(state["x"]).mean() == pytest.approx(expected, rel=5 * 2 / np.sqrt(replicas))
