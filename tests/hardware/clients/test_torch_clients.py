"""Clients on any torch module: the quadratic problem gives NumPy's trajectory for every algorithm.

Beyond that, local SGD is compared with torch.optim on the same batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest

from fltheory import algorithms
from fltheory.algorithms import (
    AdaFed,
    AveragedIterate,
    CAFed,
    ClusterFedVarp,
    F3ast,
    FedAR,
    FedAU,
    FedAvg,
    FedAvgIS,
    FedAWE,
    FedNova,
    FedProx,
    FedVarp,
    Harmonic,
    LocalSgd,
    Mifa,
    Projected,
    ProxSkip,
    Safari,
    Scaffold,
    Scheduled,
    ServerMomentum,
    Unbiased,
    WarmStarted,
    WeightedFedAvg,
)
from fltheory.engines.clients.analytic_clients import QuadraticClients, Silence
from fltheory.engines.simulation import simulate
from fltheory.participation import MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.problems.ball import Ball

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from torch import nn  # noqa: E402

from fltheory.hardware import LocalTraining, ServerData, TorchClients  # noqa: E402
from tests.hardware.quadratic_module import torch_clients  # noqa: E402

REPLICAS, ROUNDS, SEED, DIM = 5, 25, 3, 4
ALPHA = [0.1, 0.1, 0.1, 0.2, 0.2, 0.3]
PI, NU = [0.9, 0.8, 0.5, 0.3, 0.2, 0.6], [0.9, 0.0, 0.8, 0.5, -0.1, 0.3]
ALGORITHMS = [
    FedAvg(0.02, 7, server_lr=1.5),
    Safari(0.6, 0.03, 0.1, 7),
    WeightedFedAvg((0.1, 0.5, 0.4, 0.0, 0.3, 0.2), 0.05, 3, server_lr=1.5),
    Mifa(0.05, 3),
    FedAWE(0.05, 3, server_lr=0.8),
    ProxSkip(0.05, 0.4),
    Mifa(0.05, 3, start="zero"),
    FedProx(0.05, 3, 0.8, server_lr=0.5),
    FedNova(0.05, (3, 1, 2, 3, 1, 1), client_weights=tuple(ALPHA)),
    FedVarp(0.05, 3, server_lr=0.5),
    ClusterFedVarp((0, 1, 2, 0, 1, 0), 0.05, 3),
    Scaffold(0.05, 3, option=1),
    Scaffold(0.05, 3, option=2, server_lr=1.5),
    FedAvgIS(tuple(PI), 0.05, 3),
    FedAR(0.05, 3, cutoff=4.0),
    FedAU(0.05, 3, cutoff=4),
    Unbiased(ALPHA, PI, 0.05, 3, server_lr=0.5),
    AdaFed(ALPHA, PI, 0.05, 3),
    F3ast(ALPHA, 2, 0.05, 3, smoothing=0.1),
    CAFed(ALPHA, 0.05, 3),
    ServerMomentum(FedAvg(0.05, 2), 0.9),
    Scheduled(Safari(0.6, 1.0, 0.1, 2), Harmonic(0.2, offset=3.0)),
    AveragedIterate(FedAvg(0.1, 2)),
    Projected(FedAvg(0.1, 2), Ball(np.zeros(4), 2.0)),
    LocalSgd(Harmonic(0.2, offset=3.0), 4, tuple(ALPHA)),
    WarmStarted(Scaffold(0.05, 3)),
]
NOT_ALGORITHMS = {
    *("CappedLinear", "Constant", "Harmonic"),
}


def name(algorithm: Any) -> str:
    return type(algorithm).__name__


def problem() -> QuadraticProblem:
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(6, DIM, DIM))
    hessians = 0.3 * np.eye(DIM) + 0.2 * np.einsum("iab,icb->iac", roots, roots)
    return QuadraticProblem(hessians, 3 + rng.normal(size=(6, DIM)), target_weights=ALPHA)


def trajectory(algorithm: Any, clients: Any, to_backend: Callable[..., Any]) -> np.ndarray:
    present, branch = (
        np.random.default_rng(child) for child in np.random.SeedSequence(SEED).spawn(2)
    )
    states = simulate(
        algorithm,
        clients,
        MarkovOnOff(PI, NU),
        to_backend(np.ones((REPLICAS, DIM))),
        participation_rng=present,
        branch_rng=branch,
        masks_to_backend=to_backend,
    )
    return np.stack([np.asarray(state["x"]) for state, _ in islice(states, ROUNDS + 1)])


def test_every_algorithm_is_among_them() -> None:
    assert {name(algorithm) for algorithm in ALGORITHMS} == set(algorithms.__all__) - NOT_ALGORITHMS


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name)
def test_quadratic_module_follows_numpy(algorithm: Any) -> None:
    expected = trajectory(algorithm, QuadraticClients(problem(), Silence()), np.asarray)
    found = trajectory(algorithm, torch_clients(problem()), torch.tensor)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("way", ["vmap", "one by one"])
@pytest.mark.parametrize("most", [None, 6])
def test_every_way_follows_numpy(way: str, most: int | None) -> None:
    algorithm = Scaffold(0.05, 3, option=1)
    clients = torch_clients(problem(), way=way)
    clients.expect(most)
    expected = trajectory(algorithm, QuadraticClients(problem(), Silence()), np.asarray)
    found = trajectory(algorithm, clients, torch.tensor)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_losses_and_gradients_are_those_of_the_problem() -> None:
    numbers = np.random.default_rng(0).normal(size=(3, DIM))
    x, who = torch.tensor(numbers), torch.ones(3, 6, dtype=torch.bool)
    who[1, 2:] = False
    clients = torch_clients(problem(), training=LocalTraining(weight_decay=0.5))
    expected = problem().client_losses(numbers) + 0.25 * np.square(numbers).sum(1, keepdims=True)
    np.testing.assert_allclose(clients.client_losses(x), expected, atol=1e-12)
    np.testing.assert_allclose(clients.loss(x, who), np.where(who, expected, 0.0), atol=1e-12)
    gradients = [
        problem().client_gradients(numbers, np.full(3, client)) + 0.5 * numbers
        for client in range(6)
    ]
    np.testing.assert_allclose(clients.client_gradients(x), np.stack(gradients, 1), atol=1e-12)
    server = problem().gradient(numbers) + 0.5 * numbers
    np.testing.assert_allclose(clients.server_gradient(x), server, atol=1e-12)


def images() -> tuple[Any, Any, list[np.ndarray]]:
    """Return 23 images of four clients with 7, 3, 10 and 3 of them."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.rand(23, 2, 3, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (23,), generator=generator)
    places = np.random.default_rng(5).permutation(23)
    return inputs, labels, np.split(places, [7, 10, 20])


def network() -> nn.Module:
    torch.manual_seed(7)
    layers = nn.Conv2d(2, 3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(12, 4)
    return nn.Sequential(*layers).double()


def linear() -> nn.Module:
    torch.manual_seed(7)
    return nn.Sequential(nn.Flatten(), nn.Linear(18, 4)).double()


def by_torch_optim(
    module: nn.Module, batches: list[Any], lr: float, weight_decay: float
) -> np.ndarray:
    inputs, labels, _ = images()
    optimiser = torch.optim.SGD(module.parameters(), lr=lr, weight_decay=weight_decay)
    for batch in batches:
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(inputs[batch]), labels[batch]).backward()
        optimiser.step()
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()]).numpy()


@pytest.mark.parametrize(
    ("make", "way"),
    [
        *((linear, way) for way in ("closed form", "vmap", "one by one")),
        *((network, way) for way in ("auto", "vmap")),
    ],
)
def test_local_sgd_is_that_of_torch_optim(make: Callable[[], nn.Module], way: str) -> None:
    inputs, labels, parts = images()
    training = LocalTraining(4, epochs=2, weight_decay=0.1)
    clients = TorchClients(make(), inputs, labels, parts, training=training, seed=2, way=way)
    x = clients.model.initial[None]
    who = torch.tensor([[True, False, True, True]])
    changes = clients.local_sgd(x, who, steps=6, lr=0.3)[0].numpy()
    again = TorchClients(make(), inputs, labels, parts, training=training, seed=2)
    present = torch.tensor([0, 2, 3])
    drawn = again.pools.drawn(
        present, 6, batch_size=4, sampling="shuffle", epochs=2, generator=again._generator
    )
    for row, client in enumerate(present):
        batches = [
            places[weights > 0]
            for places, weights in zip(drawn.samples[:, row], drawn.weights[:, row], strict=True)
            if weights.any()
        ]
        assert len(batches) == 2 * math.ceil(len(parts[client]) / 4)
        expected = by_torch_optim(make(), batches, 0.3, 0.1) - x[0].numpy()
        np.testing.assert_allclose(changes[client], expected, atol=1e-12)
    assert not changes[1].any()


def test_sum_and_unasked_clients() -> None:
    inputs, labels, parts = images()
    weights = torch.tensor([[0.5, 1.0, 0.25, 3.0], [1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
    who = torch.tensor([[True, False, True, True], [False, False, False, False]])
    found = {}
    for most in (None, 3):
        clients = TorchClients(linear(), inputs, labels, parts, training=LocalTraining(4), seed=2)
        clients.expect(most)
        x = clients.model.initial.expand(2, -1)
        state = clients.randomness
        changes = clients.local_sgd(x, who, steps=3, lr=0.1)
        clients.randomness = state
        found[most] = clients.summed_local_sgd(x, who, weights, steps=3, lr=0.1)
        expected = torch.einsum("ri,ria->ra", weights, changes)
        np.testing.assert_allclose(found[most], expected, atol=1e-14)
        assert not found[most][1].any()
        assert found[most][0].any()
    nobody = torch.zeros(2, 4, dtype=torch.bool)
    clients.expect(0)
    assert not clients.summed_local_sgd(x, nobody, weights, steps=3, lr=0.1).any()
    assert not clients.loss(x, nobody).any()


def test_server_steps_are_sgd_steps() -> None:
    inputs, labels, parts = images()
    server = ServerData(np.arange(9), batch_size=None, steps=3, lr=0.2)
    clients = TorchClients(linear(), inputs, labels, parts, server=server)
    x = clients.model.initial[None]
    found = x - 0.2 * clients.server_gradient(x)
    expected = by_torch_optim(linear(), [np.arange(9)] * 3, 0.2, 0.0)
    np.testing.assert_allclose(found[0], expected, atol=1e-12)


def test_reported_loss_on_a_batch_is_unbiased() -> None:
    inputs, labels, parts = images()
    training = LocalTraining(loss_batch_size=3)
    clients = TorchClients(linear(), inputs, labels, parts, training=training)
    x = clients.model.initial[None]
    who = torch.tensor([[False, False, True, False]])
    reports = [clients.loss(x, who)[0, 2].item() for _ in range(5)]
    whole = clients.client_losses(x)[0, 2].item()
    each = nn.functional.cross_entropy(
        linear()(inputs[parts[2]]), labels[parts[2]], reduction="none"
    )
    assert whole == pytest.approx(each.mean().item(), abs=1e-12)
    assert len(set(reports)) == 5
    assert each.min().item() <= min(reports) <= max(reports) <= each.max().item()


def test_errors_say_what_is_wrong() -> None:
    inputs, labels, parts = images()
    with pytest.raises(ValueError, match="server must be given"):
        TorchClients(linear(), inputs, labels, parts).server_gradient(torch.zeros(1, 76))
    with pytest.raises(ValueError, match="equally many"):
        TorchClients(linear(), inputs, labels[:-1], parts)
