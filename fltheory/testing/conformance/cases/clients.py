"""The clients that an implementation under test is given."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fltheory.engines.clients.stepped_clients import LossClient
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
