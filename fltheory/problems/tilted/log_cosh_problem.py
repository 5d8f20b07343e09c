"""Client losses with bounded gradients: a bowl that turns into a cone, tilted for each client.

Definitions
-----------
``F_i(x) = a w^2 sum_j log cosh((x_j - x*_j)/w) + t_i'(x - x*)`` with tilts ``t_i`` that cancel
under the target weights, so that ``F`` is the untilted loss, convex with minimiser ``x*`` and
``F* = 0``. Its gradient has entries ``a w tanh((x_j - x*_j)/w)``: ``||grad F|| < a w sqrt(d)``. The
curvature along a coordinate, ``a / cosh^2``, has supremum ``L = a`` and infimum 0, and
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
class LogCoshProblem(TiltedProblem):
    """Smooth convex clients whose mean has a bounded gradient.

    Parameters
    ----------
    tilts : array, (N, d)
        ``t_i``, whose target-weighted sum must vanish.
    curvature, width : float
        ``a`` and ``w``, both positive: the curvature at x*, and how far the bowl reaches.
    x_star : array, (d,)
        The minimiser of F.
    sigma, server_sigma : float
        Gaussian gradient noise of the clients and of the server, ``E||noise||^2 = sigma**2``.
    target_weights : array, (N,), optional

    Raises
    ------
    ValueError
        For wrong shapes, NaN, constants out of range, or tilts that do not cancel.

    Examples
    --------
    >>> problem = LogCoshProblem([[1.0], [-1.0]], curvature=2.0, width=3.0, x_star=[0.0])
    >>> problem.L, problem.largest_gradient, problem.sigma_G
    (2.0, 6.0, 1.0)
    """

    tilts: FloatArray
    _: KW_ONLY
    curvature: float
    width: float
    x_star: FloatArray
    sigma: float = 0.0
    server_sigma: float = 0.0
    target_weights: FloatArray | None = None

    def __init__(
        self,
        tilts: ArrayLike,
        *,
        curvature: float,
        width: float,
        x_star: ArrayLike,
        sigma: float = 0.0,
        server_sigma: float = 0.0,
        target_weights: ArrayLike | None = None,
    ) -> None:
        self._set(
            tilts, x_star, sigma, server_sigma, target_weights, curvature=curvature, width=width
        )

    @property
    def L(self) -> float:
        """Smoothness of every client: the curvature at x*."""
        return self.curvature

    @property
    def mu(self) -> float:
        """The infimum of the curvature: zero, far from x*."""
        return 0.0

    @property
    def largest_gradient(self) -> float:
        """The supremum of ``||grad F||``, not attained."""
        return self.curvature * self.width * math.sqrt(self.dim)

    @property
    def bowl(self) -> tuple[float, float]:
        """No affine part: the gradient is bounded."""
        return 0.0, self.largest_gradient

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points ``x`` of shape (..., d)."""
        away = np.abs(x - self.x_star) / self.width
        # Neither overflows; close to zero z^2/2 is the more exact of the two.
        far = away + np.log1p(np.exp(-2 * away)) - math.log(2)
        heights = np.where(away < 1e-4, 0.5 * away**2, far)
        return np.asarray((self.curvature * self.width**2 * heights).sum(axis=-1))

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points of shape (..., d)."""
        return np.asarray(self.curvature * self.width * np.tanh((x - self.x_star) / self.width))
