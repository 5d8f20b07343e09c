"""The torch backend runs the same algorithm objects as NumPy, and follows them.

Noise-free, torch's autograd steps are compared with NumPy's closed form; with noise, with
NumPy's own steps on the same draws.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from fltheory.algorithms import (
    AveragedIterate,
    ClusterFedVarp,
    FedAR,
    FedAvg,
    FedAvgIS,
    FedNova,
    FedProx,
    FedVarp,
    Harmonic,
    Mifa,
    Safari,
    Scaffold,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.engines.clients.analytic_clients import (
    GaussianNoise,
    QuadraticClients,
    Silence,
    SteppedClients,
)
from fltheory.engines.simulation import simulate
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from tests.hardware.clients.torch_quadratic_clients import TorchQuadraticClients  # noqa: E402
from tests.hardware.torch_runs import run_on_torch  # noqa: E402

REPLICAS, ROUNDS, SEED = 7, 25, 3


def problem(*, shared: bool, noisy: bool) -> QuadraticProblem:
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(6, 4, 4))
    hessians = 0.3 * np.eye(4) + 0.2 * np.einsum("iab,icb->iac", roots, roots)
    return QuadraticProblem(
        hessians[0] if shared else hessians,
        3 + rng.normal(size=(6, 4)),
        sigma=0.7 if noisy else 0.0,
        server_sigma=0.4 if noisy else 0.0,
        target_weights=[0.1, 0.1, 0.1, 0.2, 0.2, 0.3],
    )


ALGORITHMS = [
    FedAvg(0.05, 1),
    FedAvg(0.02, 7, server_lr=1.5),
    Safari(0.6, 0.03, 0.1, 7),
    Safari(0.5, 0.05, 0.2, 1),
    WeightedFedAvg((0.1, 0.5, 0.4, 0.0, 0.3, 0.2), 0.05, 3, server_lr=1.5),
    Mifa(0.05, 3, start="zero"),
    FedProx(0.05, 3, 0.8, client_weights=(1.0, 2.0, 0.0, 3.0, 1.0, 1.0)),
    FedNova(0.05, (3, 1, 2, 3, 1, 1)),
    FedVarp(0.05, 3, server_lr=0.5),
    ClusterFedVarp((0, 1, 2, 0, 1, 0), 0.05, 3),
    Scaffold(0.05, 3, option=1),
    Scaffold(0.05, 3, option=2, server_lr=1.5),
    FedAvgIS((0.6, 0.1, 0.6, 0.6, 0.6, 0.6), 0.05, 3),
    FedAR(0.05, 3, weight=CappedLinear(0.2, 1.5), cutoff=4.0),
    Scheduled(Mifa(1.0, 2, start="zero"), Harmonic(0.2, offset=3.0)),
    Scheduled(Safari(0.6, 1.0, 0.1, 2), Harmonic(0.2, offset=3.0)),
    AveragedIterate(Scheduled(FedAvg(1.0, 2), Harmonic(0.2, offset=3.0))),
]


def on_numpy(clients_of, setting_problem, algorithm, noise_source):
    streams = np.random.SeedSequence(SEED).spawn(3)
    participation_rng, branch_rng, noise_rng = (np.random.default_rng(s) for s in streams)
    states = simulate(
        algorithm,
        clients_of(setting_problem, noise_source(noise_rng)),
        UniformSubset(6, 3, excluded=(1,)),
        np.tile(np.ones(4), (REPLICAS, 1)),
        participation_rng=participation_rng,
        branch_rng=branch_rng,
    )
    return np.stack([state["x"] for state, _ in islice(states, ROUNDS + 1)])


def on_torch(setting_problem, algorithm):
    who = UniformSubset(6, 3, excluded=(1,))
    return run_on_torch(
        algorithm, setting_problem, who, ROUNDS, np.ones(4), replicas=REPLICAS, seed=SEED
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own Hessians"])
def test_follows_the_closed_form_without_noise(algorithm, shared):
    quiet = problem(shared=shared, noisy=False)
    expected = on_numpy(QuadraticClients, quiet, algorithm, GaussianNoise)
    np.testing.assert_allclose(on_torch(quiet, algorithm), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own Hessians"])
def test_follows_the_same_noisy_steps(algorithm, shared):
    noisy = problem(shared=shared, noisy=True)
    expected = on_numpy(SteppedClients, noisy, algorithm, GaussianNoise)
    quiet = on_numpy(SteppedClients, problem(shared=shared, noisy=False), algorithm, GaussianNoise)
    np.testing.assert_allclose(on_torch(noisy, algorithm), expected, rtol=0, atol=1e-10)
    assert np.abs(expected - quiet).max() > 1e-3


def numpy_arrays(value):
    return value.numpy() if hasattr(value, "numpy") else value


class NumpyBackend:
    to_array = staticmethod(np.asarray)

    def __init__(self, clients):
        self.clients = clients


class TorchBackend(NumpyBackend):
    to_array = staticmethod(torch.tensor)


@pytest.fixture(params=["closed form", "stepped", "torch"])
def backend(request):
    quiet = problem(shared=False, noisy=False)
    if request.param == "torch":
        return TorchBackend(TorchQuadraticClients(quiet, Silence()))
    kind = QuadraticClients if request.param == "closed form" else SteppedClients
    return NumpyBackend(kind(quiet, Silence()))


def inputs():
    rng = np.random.default_rng(5)
    who = rng.random((5, 6)) < 0.5
    return rng.normal(size=(5, 4)), who, rng.normal(size=(5, 6, 4)), rng.random((5, 6))


def test_common_laws_of_local_sgd(backend):
    x, who, correction, weights = inputs()
    arrays = [backend.to_array(value) for value in (x, who, correction, weights)]
    options = {"steps": 4, "lr": 0.1}
    change = backend.clients.local_sgd(*arrays[:2], correction=arrays[2], **options)
    summed = backend.clients.summed_local_sgd(
        *arrays[:2], arrays[3], correction=arrays[2], **options
    )
    change, summed = numpy_arrays(change), numpy_arrays(summed)
    assert not change[~who].any()
    np.testing.assert_allclose(summed, np.einsum("ri,ria->ra", weights, change), atol=1e-12)
    expected = np.zeros_like(change)
    quiet = problem(shared=False, noisy=False)
    for r, i in zip(*np.nonzero(who), strict=True):
        y = x[r].copy()
        for _ in range(4):
            y -= 0.1 * (quiet.hessians[i] @ (y - quiet.optima[i]) + correction[r, i])
        expected[r, i] = y - x[r]
    np.testing.assert_allclose(change, expected, atol=1e-12)


def test_common_laws_of_losses_and_server_gradient(backend):
    x, who, _, _ = inputs()
    quiet = problem(shared=False, noisy=False)
    offsets = x[:, None] - quiet.optima
    losses = 0.5 * np.einsum("ria,iab,rib->ri", offsets, quiet.hessians, offsets)
    found = backend.clients.loss(backend.to_array(x), backend.to_array(who))
    np.testing.assert_allclose(numpy_arrays(found), np.where(who, losses, 0), atol=1e-12)
    gradient = np.einsum("i,iab,rib->ra", quiet.alpha, quiet.hessians, offsets)
    found = backend.clients.server_gradient(backend.to_array(x))
    np.testing.assert_allclose(numpy_arrays(found), gradient, atol=1e-12)
    assert backend.clients.n_clients == 6
