"""A one-dimensional strongly convex loss that is steeper on one side, and its Taylor series."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.decimals import as_fraction
from fltheory.problems.tilted import TiltedProblem
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class SkewedProblem(TiltedProblem):
    """Clients whose common loss has a nonzero third derivative, like Tang and Peng's (17).

    ``f'(x) = a x + c w (log cosh(x/w + s) - log cosh s)``, with x measured from the minimiser, so
    that ``f'' = a + c tanh(x/w + s)`` is between ``a - c`` and ``a + c``. The clients' tilts
    cancel.

    Parameters
    ----------
    tilts : array, (N, 1)
        Linear terms, whose target-weighted sum must vanish; zeros make N equal clients.
    curvature, skew, width : float
        a, c and w, all positive, with c less than a.
    shift : float
        s. The fourth derivative at the minimiser is zero if s is zero.
    x_star : array, (1,)
    sigma, server_sigma : float
        Noise levels of the clients' and the server's gradients.
    lean : float
        Shape of the noise that the theorem assumes: its two values are ``sigma lean`` and
        ``-sigma/lean``, with mean zero and variance ``sigma^2``. The package's runs draw Gaussian
        noise of the same variance.
    target_weights : array, (N,), optional

    Raises
    ------
    ValueError
        If a shape is wrong, a number is NaN, a constant is out of range, or tilts do not cancel.

    Examples
    --------
    >>> paper = SkewedProblem([[0.0], [0.0]], curvature=1.0, skew=0.5, width=1.0)
    >>> paper.mu, paper.L, [str(slope) for slope in paper.slopes(4)]
    (0.5, 1.5, ['1', '1/4', '0', '-1/24'])
    """

    tilts: FloatArray
    _: KW_ONLY
    curvature: float
    skew: float
    width: float
    shift: float
    x_star: FloatArray
    sigma: float
    server_sigma: float
    lean: float
    target_weights: FloatArray | None

    def __init__(
        self,
        tilts: ArrayLike,
        *,
        curvature: float,
        skew: float,
        width: float,
        shift: float = 0.0,
        x_star: ArrayLike = (0.0,),
        sigma: float = 0.0,
        server_sigma: float = 0.0,
        lean: float = 1.0,
        target_weights: ArrayLike | None = None,
    ) -> None:
        self._set(
            tilts,
            x_star,
            sigma,
            server_sigma,
            target_weights,
            curvature=curvature,
            skew=skew,
            width=width,
            lean=lean,
        )
        if self.dim != 1:
            raise ValueError(f"tilts must have shape (n_clients, 1), got {self.tilts.shape}")
        if self.skew >= self.curvature:
            raise ValueError(
                f"skew must be less than the curvature {self.curvature:g}, got {self.skew:g}"
            )
        object.__setattr__(
            self, "shift", validation.real_number("shift", shift, "a finite number", lambda _: True)
        )

    @property
    def L(self) -> float:
        """Smoothness of every client: the supremum of the curvature."""
        return self.curvature + self.skew

    @property
    def mu(self) -> float:
        """The infimum of the curvature."""
        return self.curvature - self.skew

    @property
    def largest_noise(self) -> float:
        """The largest absolute value of a gradient's noise, as distributed in the theorem."""
        return self.sigma * max(self.lean, 1 / self.lean)

    def slopes(self, count: int) -> tuple[Fraction, ...]:
        """Return ``f''/1!, f'''/2!, ..`` at the minimiser, from ``tanh' = 1 - tanh^2``."""
        scale, width = as_fraction(self.skew), as_fraction(self.width)
        tanh = [Fraction(math.tanh(self.shift))]
        for k in range(count - 1):
            square = sum((tanh[i] * tanh[k - i] for i in range(k + 1)), Fraction(0))
            tanh.append(((k == 0) - square) / (k + 1))
        found = [scale * one / (k + 1) / width**k for k, one in enumerate(tanh)]
        return (found[0] + as_fraction(self.curvature), *found[1:])

    def noise_moments(self, count: int) -> tuple[Fraction, ...]:
        """Return ``E e, E e^2, ..``, the moments of the noise e of a client's gradient."""
        sigma, lean = as_fraction(self.sigma), as_fraction(self.lean)
        up = 1 / (1 + lean**2)
        values = sigma * lean, -sigma / lean
        return tuple(up * values[0] ** k + (1 - up) * values[1] ** k for k in range(1, count + 1))

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points of shape (..., 1)."""
        away = x - self.x_star
        bent = _log_cosh(away / self.width + self.shift) - _log_cosh(self.shift)
        return np.asarray(self.curvature * away + self.skew * self.width * bent)

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points of shape (..., 1)."""
        away = (x - self.x_star)[..., 0]
        place = away / self.width + self.shift
        bent = _integral_of_log_cosh(place) - _integral_of_log_cosh(np.asarray(self.shift))
        bent = self.width * bent - away * _log_cosh(self.shift)
        return np.asarray(self.curvature * away**2 / 2 + self.skew * self.width * bent)


def _log_cosh(x: FloatArray | float) -> FloatArray:
    size = np.abs(x)
    return np.asarray(size + np.log1p(np.exp(-2 * size)) - math.log(2))


def _integral_of_log_cosh(x: FloatArray) -> FloatArray:
    """Return the integral of log cosh from 0 to x, an odd function, using the dilogarithm."""
    from scipy.special import spence

    size = np.abs(x)
    dilogarithm = spence(1 + np.exp(-2 * size)) + math.pi**2 / 12
    return np.asarray(np.sign(x) * (size**2 / 2 - size * math.log(2) + dilogarithm / 2))
