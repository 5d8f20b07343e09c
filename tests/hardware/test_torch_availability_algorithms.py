"""Algorithms that weigh by availability run on torch as on NumPy, on the same draws."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from fltheory.algorithms import AdaFed, CAFed, F3ast, Unbiased
from fltheory.engines.clients.analytic_clients import GaussianNoise, SteppedClients
from fltheory.engines.simulation import simulate
from fltheory.participation import MarkovOnOff
from fltheory.problems import quadratic

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from tests.hardware.torch_runs import run_on_torch  # noqa: E402

REPLICAS, ROUNDS, SEED = 6, 40, 5
ALPHA = [0.1, 0.15, 0.2, 0.25, 0.3]
PI, NU = [0.9, 0.8, 0.5, 0.3, 0.2], [0.9, 0.0, 0.8, 0.5, -0.1]
ALGORITHMS = [
    Unbiased(ALPHA, PI, 0.05, 3, server_lr=0.5),
    AdaFed(ALPHA, PI, 0.05, 3),
    F3ast(ALPHA, 2, 0.05, 3, smoothing=0.1),
    F3ast(ALPHA, 2, 0.05, 3, smoothing=0.1, availability=PI),
    CAFed(ALPHA, 0.05, 3),
    CAFed(ALPHA, 0.05, 3, availability=PI, correlation=NU, known_minima=0.0, kappa_bar=0.5),
]


def on_numpy(algorithm: Any, problem: Any) -> np.ndarray:
    present, branch, noise = (
        np.random.default_rng(child) for child in np.random.SeedSequence(SEED).spawn(3)
    )
    states = simulate(
        algorithm,
        SteppedClients(problem, GaussianNoise(noise)),
        MarkovOnOff(PI, NU),
        np.ones((REPLICAS, 3)),
        participation_rng=present,
        branch_rng=branch,
    )
    return np.stack([state["x"] for state, _ in islice(states, ROUNDS + 1)])


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: type(algorithm).__name__)
def test_same_models_on_torch(algorithm: Any) -> None:
    problem = quadratic(5, 3, 1.0, 0.2, 2.0, sigma=0.5, seed=4)
    models = run_on_torch(
        algorithm, problem, MarkovOnOff(PI, NU), ROUNDS, np.ones(3), replicas=REPLICAS, seed=SEED
    )
    np.testing.assert_allclose(models, on_numpy(algorithm, problem), rtol=0, atol=1e-10)
