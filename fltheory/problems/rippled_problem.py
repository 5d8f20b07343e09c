"""Nonconvex client losses with exact constants: a bowl with ripples, tilted for each client.

Definitions
-----------
``F_i(x) = a/2 ||x - x*||^2 + b sum_j (1 - cos(w (x_j - x*_j))) + t_i'(x - x*)`` with tilts
``t_i`` that cancel under the target weights, so that ``F`` is the untilted loss. Both of
its terms are smallest at ``x*``, which is its global minimiser, with ``F* = 0``. The
curvature along a coordinate, ``a + b w^2 cos(.)``, has supremum ``L = a + b w^2``, and
``grad F_i - grad F = t_i`` everywhere, so ``sigma_G = max_i ||t_i||``.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.problems.weights import checked_target_weights
from fltheory.validation import ClientIndices, FloatArray


@dataclass(frozen=True, eq=False)
class RippledProblem:
    """Smooth nonconvex clients with a known global minimum.

    Parameters
    ----------
    tilts : array, (N, d)
        ``t_i``, whose target-weighted sum must vanish.
    curvature, amplitude, frequency : float
        ``a``, ``b`` and ``w``, all positive; nonconvex when ``b w**2 > a``.
    x_star : array, (d,)
        The global minimiser of F.
    sigma, server_sigma : float
        Gaussian gradient noise of the clients and of the server, ``E||noise||^2 = sigma**2``.
    target_weights : array, (N,), optional

    Raises
    ------
    ValueError
        For wrong shapes, NaN, constants out of range, or tilts that do not cancel.
    """

    tilts: FloatArray
    _: KW_ONLY
    curvature: float
    amplitude: float
    frequency: float
    x_star: FloatArray
    sigma: float = 0.0
    server_sigma: float = 0.0
    target_weights: FloatArray | None = None

    def __init__(
        self,
        tilts: ArrayLike,
        *,
        curvature: float,
        amplitude: float,
        frequency: float,
        x_star: ArrayLike,
        sigma: float = 0.0,
        server_sigma: float = 0.0,
        target_weights: ArrayLike | None = None,
    ) -> None:
        tilts = validation.real_array("tilts", tilts, shape="(n_clients, dim)")
        if tilts.ndim != 2 or tilts.size == 0:
            raise ValueError(f"tilts must have shape (n_clients, dim), got {tilts.shape}")
        point = validation.real_array("x_star", x_star, shape=f"({tilts.shape[1]},)")
        if point.shape != tilts.shape[1:]:
            raise ValueError(f"x_star must have shape {tilts.shape[1:]}, got {point.shape}")
        fields = {
            "tilts": tilts,
            "curvature": validation.positive("curvature", curvature),
            "amplitude": validation.positive("amplitude", amplitude),
            "frequency": validation.positive("frequency", frequency),
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
        if self.target_weights is None:
            return np.full(self.n_clients, 1.0 / self.n_clients)
        return self.target_weights

    @property
    def L(self) -> float:
        """Smoothness of every client: the supremum of the curvature."""
        return self.curvature + self.amplitude * self.frequency**2

    @property
    def mu(self) -> float:
        """The infimum of the curvature: negative where the clients are nonconvex."""
        return self.curvature - self.amplitude * self.frequency**2

    @property
    def F_star(self) -> float:
        """The global minimum of F, zero by construction."""
        return 0.0

    @cached_property
    def sigma_G(self) -> float:
        """Gradient dissimilarity, the same at every point: the longest tilt."""
        return float(np.linalg.norm(self.tilts, axis=1).max())

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points ``x`` of shape (..., d)."""
        offset = x - self.x_star
        ripples = 1.0 - np.cos(self.frequency * offset)
        return np.asarray(
            (0.5 * self.curvature * offset**2 + self.amplitude * ripples).sum(axis=-1)
        )

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F(x) - F*`` at points of shape (..., d)."""
        return self.loss(x)

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points of shape (..., d)."""
        offset = x - self.x_star
        slope = self.amplitude * self.frequency
        return np.asarray(self.curvature * offset + slope * np.sin(self.frequency * offset))

    def client_gradients(self, x: FloatArray, clients: ClientIndices) -> FloatArray:
        """``grad F_i(x_t)`` with ``i = clients[t]``, for points (T, d) and clients (T,)."""
        return self.gradient(x) + self.tilts[clients]

    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, shape (..., N), at common points of shape (..., d)."""
        return self.loss(x)[..., None] + (x - self.x_star) @ self.tilts.T
