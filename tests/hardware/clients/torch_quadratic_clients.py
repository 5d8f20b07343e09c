"""Quadratic clients that really run their local SGD steps, with gradients from autograd."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from fltheory.algorithms.contract import Clients
from fltheory.engines.clients.analytic_clients import NoiseSource, ReplicaIndices
from fltheory.problems import QuadraticProblem


class TorchQuadraticClients(Clients):
    """The Clients contract on a `QuadraticProblem`, in torch float64.

    Nothing here knows the closed form of a round: losses are written down, gradients come
    from autograd, and the K steps are taken one after another. Noise comes as standard
    normals from a `NoiseSource`, in the order in which `SteppedClients` asks for it, so that
    both can be fed the same draws.

    Parameters
    ----------
    problem : QuadraticProblem
    noise : NoiseSource
    device : str
        Where the tensors live.
    """

    def __init__(self, problem: QuadraticProblem, noise: NoiseSource, device: str = "cpu") -> None:
        self._problem = problem
        self._noise = noise
        self._device = device
        hessians = np.broadcast_to(problem.hessians, (problem.n_clients, problem.dim, problem.dim))
        self._hessians = self._tensor(hessians)
        self._optima = self._tensor(problem.optima)
        self._alpha = self._tensor(problem.alpha)

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self._problem.n_clients

    def local_sgd(
        self,
        x: Tensor,
        who: Tensor,
        *,
        steps: int,
        lr: float,
        correction: Tensor | None = None,
        proximal: float = 0,
    ) -> Tensor:
        """Return each client's change, (replicas, n_clients, dim), zero where absent."""
        rows, clients = torch.nonzero(who, as_tuple=True)
        start = x[rows]
        y = start.clone()
        levels = self._problem.client_sigmas[clients.cpu().numpy(), None]
        for _ in range(steps):
            gradient = self._client_gradients(y, clients)
            if correction is not None:
                gradient = gradient + correction[rows, clients]
            if proximal:
                gradient = gradient + proximal * (y - start)
            y = y - lr * (gradient + self._normals(rows, levels))
        change = torch.zeros((*who.shape, x.shape[1]), dtype=x.dtype, device=x.device)
        change[rows, clients] = y - start
        return change

    def loss(self, x: Tensor, who: Tensor) -> Tensor:
        """Return each client's loss at its replica's model, zero where absent."""
        rows, clients = torch.nonzero(who, as_tuple=True)
        losses = torch.zeros(who.shape, dtype=x.dtype, device=x.device)
        losses[rows, clients] = self._client_losses(x[rows], clients)
        return losses

    def server_gradient(self, x: Tensor) -> Tensor:
        """Return the gradient of F with the server's noise."""
        replicas = torch.arange(x.shape[0], device=x.device)
        points = x.repeat_interleave(self.n_clients, dim=0)
        clients = torch.arange(self.n_clients, device=x.device).repeat(x.shape[0])
        gradients = self._client_gradients(points, clients).reshape(x.shape[0], -1, x.shape[1])
        gradient = torch.einsum("i,ria->ra", self._alpha, gradients)
        return gradient + self._normals(replicas, np.array(self._problem.server_sigma))

    def _client_losses(self, y: Tensor, clients: Tensor) -> Tensor:
        offset = y - self._optima[clients]
        return 0.5 * torch.einsum("ta,tab,tb->t", offset, self._hessians[clients], offset)

    def _client_gradients(self, y: Tensor, clients: Tensor) -> Tensor:
        point = y.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(self._client_losses(point, clients).sum(), point)
        return gradient

    def _normals(self, rows: Tensor, sigma: np.ndarray) -> Tensor | float:
        if not sigma.any():
            return 0.0
        replica_of_row: ReplicaIndices = rows.cpu().numpy()
        draws = self._noise.normal(replica_of_row, self._problem.dim)
        return self._tensor(sigma / math.sqrt(self._problem.dim) * draws)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.tensor(np.asarray(array), dtype=torch.float64, device=self._device)
