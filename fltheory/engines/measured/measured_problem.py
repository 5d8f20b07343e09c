"""A multinomial problem whose noise and dissimilarity have been measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fltheory.problems import MultinomialProblem
from fltheory.validation import ClientIndices, FloatArray


@dataclass(frozen=True, eq=False)
class MeasuredProblem:
    """A `MultinomialProblem` as theorems ask for one, with constants that come from outside.

    Attributes
    ----------
    data : MultinomialProblem
    L : float
        A smoothness of every client: at least that of the data.
    sigma, server_sigma, dissimilarity : float
        Measured; the last is sigma_G.
    """

    data: MultinomialProblem
    L: float
    sigma: float
    server_sigma: float
    dissimilarity: float

    @property
    def sigma_G(self) -> float:
        """Gradient dissimilarity."""
        return self.dissimilarity

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self.data.n_clients

    @property
    def dim(self) -> int:
        """d, the dimension of the model."""
        return self.data.dim

    @property
    def alpha(self) -> FloatArray:
        """(N,) target weights."""
        return self.data.alpha

    @property
    def mu(self) -> float:
        """The smallest curvature of any client."""
        return self.data.mu

    @property
    def x_star(self) -> FloatArray:
        """(d,) global minimiser of F."""
        return self.data.x_star

    @property
    def F_star(self) -> float:
        """The minimum of F."""
        return self.data.F_star

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points (..., d)."""
        return self.data.loss(x)

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F(x) - F*`` at points (..., d)."""
        return np.asarray(self.loss(x) - self.F_star)

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points (k, d)."""
        return self.data.gradient(x)

    def client_gradients(self, x: FloatArray, clients: ClientIndices) -> FloatArray:
        """``grad F_i(x_t)`` with ``i = clients[t]``, for points (T, d)."""
        return self.data.client_sums(x).gradients[np.arange(len(x)), clients]

    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, (..., N), at points (..., d)."""
        return self.data.client_losses(x)
