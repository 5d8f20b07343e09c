"""Clients with orthogonal optima, so that a model's coordinates are the weights of the optima.

If curvature is the same in all directions, all coordinates of the optima follow the same linear
rounds. So if clients have optima ``e_1, ..., e_G``, a model that starts at 0 is at any time the row
of weights with which *any* optima would enter it (`weights`). One more coordinate starts at 1 and
is drawn to 0 by all clients; it is the weight of the `start`. The last coordinates contain only
gradient noise, of variance one each (`noise`). The weights and the start sum to one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fltheory.participation.base import Masks
from fltheory.validation import FloatArray

# With few, chance would decide which algorithm looks less noisy.
NOISES = 32


class OrthogonalClients:
    """An implementation of `Clients` in NumPy for groups of clients with orthogonal optima.

    Parameters
    ----------
    curvatures : array, (G,)
    targets : array, (G,) or longer
        The weight of each group in F, with sum one. Groups beyond the first G consist of clients
        who never take part but are represented in the server's data.
    spread : array, of the same shape
        ``||c||^2`` of a group's mean optimum, relative to a client's: 1/n for n independent
        clients.
    curvature : float
        Curvature of F, for the server's gradient.
    radius, noise : float
        Distance of the clients' optima from their centre, and sigma of a gradient, used for losses.
    emphasis : array, (G,)
        Factor on each group's loss in training.
    rng : numpy.random.Generator
        Generator for gradient noise.
    """

    def __init__(
        self,
        curvatures: ArrayLike,
        targets: FloatArray,
        spread: FloatArray,
        *,
        curvature: float,
        radius: float,
        noise: float,
        emphasis: ArrayLike = 1.0,
        rng: np.random.Generator,
    ) -> None:
        self._losses = np.asarray(curvatures, dtype=np.float64)
        self._emphasis = np.broadcast_to(np.asarray(emphasis), self._losses.shape)
        self._curvatures = self._emphasis * self._losses
        self._targets = targets
        self._spread = spread
        self._curvature = curvature
        self._radius = radius
        self._noise = noise
        self._rng = rng

    @property
    def n_clients(self) -> int:
        """G, the number of groups that take part."""
        return self._curvatures.size

    def at_start(self, replicas: int) -> FloatArray:
        """Return initial models, with start 1 and weights 0, (replicas, dim)."""
        x = np.zeros((replicas, self._targets.size + 1 + NOISES))
        x[:, self._targets.size] = 1
        return x

    def weights(self, x: FloatArray) -> FloatArray:
        """Return the weights of the optima in the models, (replicas, groups)."""
        return x[:, : self._targets.size]

    def start(self, x: FloatArray) -> FloatArray:
        """Return the weight of the initial model in the models, (replicas,)."""
        return np.asarray(x[:, self._targets.size])

    def noise(self, x: FloatArray) -> FloatArray:
        """Return the part of gradient noise in ``||x - x*||^2``, for sigma one, (replicas,)."""
        return self.noises(x).mean(axis=1)

    def noises(self, x: FloatArray) -> FloatArray:
        """Return the draws (replicas, draws) whose mean is `noise`."""
        return np.asarray(x[:, -NOISES:] ** 2)

    def moves(self, steps: int, lr: float) -> FloatArray:
        """Return the fraction of the way to its optimum that ``steps`` steps move each client."""
        return np.asarray(1 - (1 - lr * self._curvatures) ** steps)

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
        pulled = self._curvatures + proximal
        moves = (1 - (1 - lr * pulled) ** steps) / pulled
        changes = np.repeat(x[:, None, :], self.n_clients, axis=1)
        each = np.arange(self.n_clients)
        changes[:, each, each] -= 1
        changes *= -self._curvatures[:, None]
        if correction is not None:
            changes -= correction
        changes *= moves[:, None]
        changes[:, :, -NOISES:] += self._deviations(steps, lr, proximal)[:, None] * (
            self._rng.standard_normal((x.shape[0], self.n_clients, NOISES))
        )
        changes *= who[:, :, None]
        return changes

    def summed_local_sgd(
        self,
        x: FloatArray,
        who: Masks,
        weights: FloatArray,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return the weighted sum of the participants' changes, (replicas, dim)."""
        there = np.where(who, weights, 0.0)
        if correction is not None:
            changes = self.local_sgd(
                x, who, steps=steps, lr=lr, correction=correction, proximal=proximal
            )
            return np.asarray((there[:, None, :] @ changes)[:, 0])
        pulled = self._curvatures + proximal
        pulls = there * (self._curvatures * (1 - (1 - lr * pulled) ** steps) / pulled)
        total = -pulls.sum(axis=1, keepdims=True) * x
        total[:, : self.n_clients] += pulls
        variance = ((there * self._deviations(steps, lr, proximal)) ** 2).sum(axis=1, keepdims=True)
        total[:, -NOISES:] += np.sqrt(variance) * self._rng.standard_normal((x.shape[0], NOISES))
        return total

    def loss(self, x: FloatArray, who: Masks) -> FloatArray:
        """Return each client's loss, zero where absent."""
        weights = self.weights(x)
        own = self._spread[: self.n_clients]
        apart = (weights**2) @ self._spread
        squares = self._radius**2 * (apart[:, None] - 2 * own * weights[:, : self.n_clients] + 1)
        squares += (self.start(x) ** 2 + self._noise**2 * self.noise(x))[:, None]
        return np.where(who, self._losses / 2 * squares, 0.0)

    def server_gradient(self, x: FloatArray) -> FloatArray:
        """Return a stochastic gradient of F, as noisy as a client's."""
        gradient = self._curvature * x
        gradient[:, : self._targets.size] -= self._curvature * self._targets
        gradient[:, -NOISES:] += self._rng.standard_normal((x.shape[0], NOISES))
        return gradient

    def _deviations(self, steps: int, lr: float, proximal: float) -> FloatArray:
        kept = (1 - lr * (self._curvatures + proximal)) ** 2
        return lr * self._emphasis * np.sqrt(sum(kept**step for step in range(steps)))
