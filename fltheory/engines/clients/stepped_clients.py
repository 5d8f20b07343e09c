"""Clients of any analytic problem, run one step of gradient descent after another."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from fltheory.algorithms.contract import Clients
from fltheory.engines.clients.noise import NoiseSource
from fltheory.engines.clients.quadratic_clients import QuadraticClients
from fltheory.participation.base import Masks
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray


class SteppedClients(Clients):
    """The Clients contract on any `Problem`, in NumPy, step by step.

    Parameters
    ----------
    problem : Problem
    noise : NoiseSource
    """

    def __init__(self, problem: Problem, noise: NoiseSource) -> None:
        self._problem = problem
        self._noise = noise
        # Of the problems quadratic ones alone have a level for each client.
        sigmas = getattr(problem, "client_sigmas", problem.sigma)
        self._sigmas = np.broadcast_to(sigmas, (problem.n_clients,))

    def with_noise(self, noise: NoiseSource) -> SteppedClients:
        """Return the same clients with other noise."""
        return SteppedClients(self._problem, noise)

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self._problem.n_clients

    def local_sgd(
        self,
        x: FloatArray,
        who: Masks,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return each client's change, (replicas, n_clients, dim), zero where absent."""
        change = np.zeros((*who.shape, x.shape[1]))
        change[who], _ = self._run(x, who, steps, lr, correction, proximal)
        return change

    def summed_local_gradients(
        self, x: FloatArray, who: Masks, weights: FloatArray, *, steps: int, lr: float
    ) -> FloatArray:
        """Return ``sum_i weights_i sum_k grad F_i(y_k^i)`` over the participants."""
        sums = np.zeros((*who.shape, x.shape[1]))
        _, sums[who] = self._run(x, who, steps, lr)
        return np.einsum("ri,ria->ra", weights, sums)

    def loss(self, x: FloatArray, who: Masks) -> FloatArray:
        """Return each client's loss at its replica's model, zero where absent."""
        return np.where(who, self._problem.client_losses(x), 0.0)

    def server_gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient of F with the server's noise."""
        gradient = self._problem.gradient(x)
        return gradient + self._noise_of(np.arange(x.shape[0]), x, self._problem.server_sigma)

    def _run(
        self,
        x: FloatArray,
        who: Masks,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> tuple[FloatArray, FloatArray]:
        """Return change and gradient sum of every (replica, participant) pair, in row order."""
        rows, clients = np.nonzero(who)
        start = x[rows]
        y = start.copy()
        gradient_sum = np.zeros_like(y)
        push = 0.0 if correction is None else correction[rows, clients]
        levels = self._sigmas[clients, None]
        for _ in range(steps):
            gradient = self._problem.client_gradients(y, clients)
            gradient_sum += gradient
            if proximal:
                gradient = gradient + proximal * (y - start)
            y -= lr * (gradient + push + self._noise_of(rows, x, levels))
        return y - start, gradient_sum

    def _noise_of(
        self, rows: np.ndarray, x: FloatArray, sigma: FloatArray | float
    ) -> FloatArray | float:
        if not np.any(sigma):
            return 0.0
        return sigma / math.sqrt(x.shape[1]) * self._noise.normal(rows, x.shape[1])


def analytic_clients(problem: Problem, noise: NoiseSource) -> QuadraticClients | SteppedClients:
    """Return a problem's clients: in closed form where there is one, else step by step."""
    if isinstance(problem, QuadraticProblem):
        return QuadraticClients(problem, noise)
    return SteppedClients(problem, noise)


class LossClient(Protocol):
    """A client whose loss and gradient are known exactly."""

    @property
    def n_samples(self) -> int:
        """How much data the client has; may be 0."""
        ...

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the exact gradient of the client's loss at ``x`` (d,), a new array."""
        ...

    def loss(self, x: FloatArray) -> float:
        """Return the client's loss at ``x``."""
        ...


def descended(
    client: LossClient,
    start: FloatArray,
    *,
    steps: int,
    lr: float,
    correction: FloatArray | None = None,
    proximal: float = 0.0,
) -> FloatArray:
    """Return where ``steps`` steps of gradient descent lead from ``start``, both (d,).

    Every gradient gets ``correction`` and ``proximal (y - start)`` added.
    """
    push = 0.0 if correction is None else correction
    y = start.copy()
    for _ in range(steps):
        y = y - lr * (client.gradient(y) + push + proximal * (y - start))
    return y
