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

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike

from fltheory.problems.tilted.tilted_problem import TiltedProblem
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class RippledProblem(TiltedProblem):
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

    Examples
    --------
    >>> rippled = RippledProblem(
    ...     [[1.0], [-1.0]], curvature=0.1, amplitude=0.25, frequency=2.0, x_star=[0.0]
    ... )
    >>> rippled.L, rippled.sigma_G
    (1.1, 1.0)
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
        self._set(
            tilts,
            x_star,
            sigma,
            server_sigma,
            target_weights,
            curvature=curvature,
            amplitude=amplitude,
            frequency=frequency,
        )

    @property
    def L(self) -> float:
        """Smoothness of every client: the supremum of the curvature."""
        return self.curvature + self.amplitude * self.frequency**2

    @property
    def mu(self) -> float:
        """The infimum of the curvature: negative where the clients are nonconvex."""
        return self.curvature - self.amplitude * self.frequency**2

    @property
    def bowl(self) -> tuple[float, float]:
        """a, and the ripples' steepest gradient: ``b w`` along each coordinate."""
        return self.curvature, self.amplitude * self.frequency * math.sqrt(self.dim)

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points ``x`` of shape (..., d)."""
        offset = x - self.x_star
        ripples = 1.0 - np.cos(self.frequency * offset)
        return np.asarray(
            (0.5 * self.curvature * offset**2 + self.amplitude * ripples).sum(axis=-1)
        )

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points of shape (..., d)."""
        offset = x - self.x_star
        slope = self.amplitude * self.frequency
        return np.asarray(self.curvature * offset + slope * np.sin(self.frequency * offset))
