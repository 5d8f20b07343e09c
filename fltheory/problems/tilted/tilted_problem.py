"""Client losses that differ by linear terms only, so that every constant is known."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.problems.base import GradientSplit, checked_target_weights, weights_or_uniform
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray


class TiltedProblem(ReadOnlyArrays, ABC):
    """``F_i(x) = F(x) + t_i'(x - x*)``, with F smallest at x* and zero there.

    The tilts ``t_i`` cancel under the target weights. ``grad F_i - grad F = t_i`` everywhere, so
    ``sigma_G = max_i ||t_i||``. A subclass is a frozen dataclass of what is below and of the
    numbers that shape F, and defines F by `loss` and `gradient`.

    Attributes
    ----------
    tilts : array, (N, d)
        ``t_i``.
    x_star : array, (d,)
        The global minimiser of F.
    sigma, server_sigma : float
        Gaussian gradient noise of the clients and of the server, ``E||noise||^2 = sigma**2``.
    target_weights : array, (N,), or None
        None for uniform ones.
    """

    tilts: FloatArray
    x_star: FloatArray
    sigma: float
    server_sigma: float
    target_weights: FloatArray | None

    def _set(
        self,
        tilts: ArrayLike,
        x_star: ArrayLike,
        sigma: float,
        server_sigma: float,
        target_weights: ArrayLike | None,
        **shape: float,
    ) -> None:
        """Set the fields once they are checked; the numbers that shape F must be positive."""
        tilts = validation.real_array("tilts", tilts, shape="(n_clients, dim)")
        if tilts.ndim != 2 or tilts.size == 0:
            raise ValueError(f"tilts must have shape (n_clients, dim), got {tilts.shape}")
        point = validation.real_array("x_star", x_star, shape=f"({tilts.shape[1]},)")
        if point.shape != tilts.shape[1:]:
            raise ValueError(f"x_star must have shape {tilts.shape[1:]}, got {point.shape}")
        fields = {
            "tilts": tilts,
            **{name: validation.positive(name, value) for name, value in shape.items()},
            "x_star": point,
            "sigma": validation.nonnegative("sigma", sigma),
            "server_sigma": validation.nonnegative("server_sigma", server_sigma),
            "target_weights": checked_target_weights(target_weights, tilts.shape[0]),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        imbalance = float(np.abs(self.alpha @ tilts).max())
        if imbalance > 1e-12 * max(1.0, float(np.abs(tilts).max())):
            raise ValueError(
                "tilts must cancel under the target weights, "
                f"got a weighted sum of up to {imbalance:.3g}"
            )

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self.tilts.shape[0]

    @property
    def dim(self) -> int:
        """d, the dimension of the model."""
        return self.tilts.shape[1]

    @cached_property
    def alpha(self) -> FloatArray:
        """(N,) target weights, uniform where none were given."""
        return weights_or_uniform(self.target_weights, self.n_clients)

    @property
    @abstractmethod
    def L(self) -> float:
        """Smoothness of every client: the supremum of the curvature."""

    @property
    @abstractmethod
    def mu(self) -> float:
        """The infimum of the curvature."""

    @property
    def F_star(self) -> float:
        """The global minimum of F, zero by construction."""
        return 0.0

    @cached_property
    def sigma_G(self) -> float:
        """Gradient dissimilarity, the same at every point: the longest tilt."""
        return float(np.linalg.norm(self.tilts, axis=1).max())

    @property
    def bowl(self) -> tuple[float, float]:
        """(a, rest) such that ``||grad F(x) - a (x - x*)|| <= rest`` everywhere; infinite here."""
        return 0.0, math.inf

    @property
    def gradient_split(self) -> GradientSplit:
        """The bowl's affine gradient, the tilts, and a bound on the rest."""
        curvature, rest = self.bowl
        hessian = curvature * np.eye(self.dim)
        shape = (self.n_clients, self.dim, self.dim)
        return GradientSplit(np.broadcast_to(hessian, shape), self.tilts, hessian, rest)

    @abstractmethod
    def loss(self, x: FloatArray) -> FloatArray:
        """F at points ``x`` of shape (..., d)."""

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F(x) - F*`` at points of shape (..., d)."""
        return self.loss(x)

    @abstractmethod
    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points of shape (..., d)."""

    def client_gradients(self, x: FloatArray, clients: ClientIndices) -> FloatArray:
        """``grad F_i(x_t)`` with ``i = clients[t]``, for points (T, d) and clients (T,)."""
        return self.gradient(x) + self.tilts[clients]

    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, shape (..., N), at common points of shape (..., d)."""
        return self.loss(x)[..., None] + (x - self.x_star) @ self.tilts.T
