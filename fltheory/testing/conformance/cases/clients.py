"""The clients that an implementation under test is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fltheory.algorithms.contract import Clients
from fltheory.engines.clients.stepped_clients import LossClient, descended
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class QuadraticClient(ReadOnlyArrays):
    """``F(x) = 1/2 (x - c)' H (x - c) + slope'x``, told exactly.

    With H = 0 the gradient is the same everywhere, and a round shows each client's weight.

    Attributes
    ----------
    hessian : array, (d, d)
    optimum : array, (d,)
        c.
    n_samples : int
    slope : array, (d,), or 0
    """

    hessian: FloatArray
    optimum: FloatArray
    n_samples: int = 1
    slope: FloatArray | float = 0.0

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return ``H (x - c) + slope``."""
        return np.asarray(self.hessian @ (np.asarray(x) - self.optimum) + self.slope)

    def loss(self, x: FloatArray) -> float:
        """Return F(x)."""
        x = np.asarray(x)
        offset = x - self.optimum
        return float(0.5 * offset @ self.hessian @ offset + (self.slope * x).sum())


@dataclass(frozen=True, eq=False)
class CountedClient:
    """A client that keeps count of what it was asked, as information; the answers are its own."""

    client: LossClient
    gradients: list[FloatArray] = field(default_factory=list)

    @property
    def n_samples(self) -> int:
        """How much data the client has."""
        return self.client.n_samples

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the client's gradient."""
        self.gradients.append(np.array(x, dtype=np.float64))
        return self.client.gradient(x)

    def loss(self, x: FloatArray) -> float:
        """Return the client's loss."""
        return self.client.loss(x)


class SteppedOnClients(Clients):
    """The Clients contract of the package's algorithms on a sequence of clients, one replica.

    Parameters
    ----------
    clients : sequence of LossClient
    """

    def __init__(self, clients: Sequence[LossClient]) -> None:
        self._clients = clients

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return len(self._clients)

    def local_sgd(
        self,
        x: FloatArray,
        who: np.ndarray,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return each client's change, (1, N, d), zero where absent."""
        changes = np.zeros((*who.shape, x.shape[1]))
        for k in np.flatnonzero(who[0]).tolist():
            push = None if correction is None else correction[0, k]
            y = descended(
                self._clients[k], x[0], steps=steps, lr=lr, correction=push, proximal=proximal
            )
            changes[0, k] = y - x[0]
        return changes

    def loss(self, x: FloatArray, who: np.ndarray) -> FloatArray:
        """Return each present client's loss, (1, N), zero where absent."""
        losses = np.zeros(who.shape)
        for k in np.flatnonzero(who[0]).tolist():
            losses[0, k] = self._clients[k].loss(x[0])
        return losses

    def server_gradient(self, x: FloatArray) -> FloatArray:
        """Raise ValueError: none of these algorithms has data at the server."""
        raise ValueError("clients must be asked for nothing of the server's own data")
