"""Client losses that differ only by linear terms, so that every constant is known."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.problems.base import GradientSplit, checked_target_weights, weights_or_uniform
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray


class TiltedProblem(ReadOnlyArrays, ABC):
    """Losses ``F_i(x) = F(x) + t_i'(x - x*)``, where F has its minimum 0 at x*.

    The tilts ``t_i`` cancel under the target weights. ``grad F_i - grad F = t_i`` everywhere, so
    ``sigma_G = max_i ||t_i||``. A subclass is a frozen dataclass that has the attributes below and
    the numbers that shape F; its `loss` and `gradient` define F.

    Attributes
    ----------
    tilts : array, (N, d)
        ``t_i``.
    x_star : array, (d,)
        The global minimiser of F.
    sigma, server_sigma : float
        Gaussian gradient noise of the clients and of the server, ``E||noise||^2 = sigma**2``.
    target_weights : array, (N,), or None
        None for uniform weights.
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
        """Check and set the fields; the numbers that shape F must be positive."""
        tilts = validation.array_of("tilts", tilts, "n_clients", "dim")
        point = validation.array_of("x_star", x_star, tilts.shape[1])
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
        """(N,) target weights, uniform if none were given."""
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
        """(a, rest) with ``||grad F(x) - a (x - x*)|| <= rest`` everywhere; rest is infinite."""
        return 0.0, math.inf

    @property
    def gradient_split(self) -> GradientSplit:
        """The affine gradient of the bowl, the tilts, and a bound on the rest."""
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


@dataclass(frozen=True, eq=False)
class LogCoshProblem(TiltedProblem):
    """Smooth convex clients whose mean has a bounded gradient.

    ``F_i(x) = a w^2 sum_j log cosh((x_j - x*_j)/w) + t_i'(x - x*)`` with tilts ``t_i`` that cancel
    under the target weights, so that ``F`` is the untilted loss, convex with minimiser ``x*`` and
    ``F* = 0``. Its gradient has entries ``a w tanh((x_j - x*_j)/w)``, so ``||grad F|| < a w
    sqrt(d)``. The curvature along a coordinate, ``a / cosh^2``, has supremum ``L = a`` and infimum
    0, and ``grad F_i - grad F = t_i`` everywhere, so ``sigma_G = max_i ||t_i||``.

    Parameters
    ----------
    tilts : array, (N, d)
        ``t_i``, whose target-weighted sum must vanish.
    curvature, width : float
        ``a`` and ``w``, the curvature at x* and the width of the bowl, both positive.
    x_star : array, (d,)
        The minimiser of F.
    sigma, server_sigma : float
        Gaussian gradient noise of the clients and of the server, ``E||noise||^2 = sigma**2``.
    target_weights : array, (N,), optional

    Raises
    ------
    ValueError
        If a shape is wrong, a number is NaN, a constant is out of range, or tilts do not cancel.

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
        """(0, rest), because the gradient of F is bounded."""
        return 0.0, self.largest_gradient

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points ``x`` of shape (..., d)."""
        away = np.abs(x - self.x_star) / self.width
        # Neither formula overflows, and close to zero z^2/2 is more accurate.
        far = away + np.log1p(np.exp(-2 * away)) - math.log(2)
        heights = np.where(away < 1e-4, 0.5 * away**2, far)
        return np.asarray((self.curvature * self.width**2 * heights).sum(axis=-1))

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points of shape (..., d)."""
        return np.asarray(self.curvature * self.width * np.tanh((x - self.x_star) / self.width))


@dataclass(frozen=True, eq=False)
class RippledProblem(TiltedProblem):
    """Smooth nonconvex clients with a known global minimum.

    ``F_i(x) = a/2 ||x - x*||^2 + b sum_j (1 - cos(w (x_j - x*_j))) + t_i'(x - x*)`` with tilts
    ``t_i`` that cancel under the target weights, so that ``F`` is the untilted loss. Both of
    its terms are smallest at ``x*``, which is its global minimiser, with ``F* = 0``. The
    curvature along a coordinate, ``a + b w^2 cos(.)``, has supremum ``L = a + b w^2``, and
    ``grad F_i - grad F = t_i`` everywhere, so ``sigma_G = max_i ||t_i||``.

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
        If a shape is wrong, a number is NaN, a constant is out of range, or tilts do not cancel.

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
        """The infimum of the curvature: negative if the clients are nonconvex."""
        return self.curvature - self.amplitude * self.frequency**2

    @property
    def bowl(self) -> tuple[float, float]:
        """(a, rest); the ripples' gradient is at most ``b w`` in each coordinate."""
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
