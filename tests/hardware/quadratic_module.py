"""Quadratic client losses as a torch module: a sample holds a Hessian, an optimum and a weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fltheory.hardware import LocalTraining, ServerData, TorchClients
from fltheory.problems import QuadraticProblem


class Quadratic(nn.Module):
    """``w/2 (x - a)' A (x - a)`` of each sample (A, a, w), written one after another."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.zeros(dim, dtype=torch.float64))

    def forward(self, samples: Tensor) -> Tensor:
        dim = self.x.numel()
        hessians = samples[:, : dim * dim].unflatten(1, (dim, dim))
        offsets = self.x - samples[:, dim * dim : -1]
        return 0.5 * samples[:, -1] * torch.einsum("ni,nij,nj->n", offsets, hessians, offsets)


def torch_clients(problem: QuadraticProblem, **options: Any) -> TorchClients:
    """Return clients with one sample each, and a server that has all of them, weighted."""
    n, dim = problem.n_clients, problem.dim
    hessians = np.broadcast_to(problem.hessians, (n, dim, dim)).reshape(n, -1)
    clients = np.concatenate([hessians, problem.optima, np.ones((n, 1))], axis=1)
    server = np.concatenate([clients[:, :-1], n * problem.alpha[:, None]], axis=1)
    samples = torch.tensor(np.concatenate([clients, server]))
    return TorchClients(
        Quadratic(dim),
        samples,
        torch.zeros(2 * n),
        [np.array([client]) for client in range(n)],
        loss=lambda outputs, targets: outputs,
        training=options.pop("training", LocalTraining()),
        server=ServerData(np.arange(n, 2 * n)),
        **options,
    )
