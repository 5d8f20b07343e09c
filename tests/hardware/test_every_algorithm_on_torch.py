"""Every algorithm object, unchanged, takes the same noisy steps on torch as on NumPy."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from fltheory.engines.clients.analytic_clients import GaussianNoise, SteppedClients
from fltheory.engines.simulation import simulate
from tests.comparison import ALGORITHMS, PROBLEM, PROCESSES, X0

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from tests.hardware.torch_runs import run_on_torch  # noqa: E402

REPLICAS, ROUNDS, SEED = 4, 8, 11


def on_numpy(name: str, who: str) -> np.ndarray:
    streams = np.random.SeedSequence(SEED).spawn(3)
    participation_rng, branch_rng, noise_rng = (np.random.default_rng(s) for s in streams)
    states = simulate(
        ALGORITHMS[name],
        SteppedClients(PROBLEM, GaussianNoise(noise_rng)),
        PROCESSES[who],
        np.tile(X0, (REPLICAS, 1)),
        participation_rng=participation_rng,
        branch_rng=branch_rng,
    )
    return np.stack([state["x"] for state, _ in islice(states, ROUNDS + 1)])


@pytest.mark.parametrize("who", PROCESSES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_same_draws_same_models(name: str, who: str) -> None:
    """Float64, to 1e-10: autograd's steps against written-out gradients, on the same normals."""
    models = run_on_torch(
        ALGORITHMS[name], PROBLEM, PROCESSES[who], ROUNDS, X0, replicas=REPLICAS, seed=SEED
    )
    expected = on_numpy(name, who)
    np.testing.assert_allclose(models, expected, rtol=0, atol=1e-10)
    waits_for_ever = (name, who) == ("MIFA, waiting", "uniform, one excluded")
    assert bool(np.abs(np.diff(expected, axis=0)).max() > 1e-3) is not waits_for_ever
