"""Suprema over a Euclidean ball.

``max ||A y + b||`` over ``||y|| <= rho`` is a trust-region problem: with ``M = A'A`` and
``g = A'b``, a maximiser satisfies ``(lam I - M) y = g`` for some ``lam >= lambda_max(M)``
with ``lam (||y|| - rho) = 0`` (Conn, Gould and Toint, Trust-Region Methods, ch. 7), and
strong duality makes its value ``min_lam  lam rho^2 + g'(lam I - M)^{-1} g + ||b||^2``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_NO_PULL = 1e-100  # a tolerance on the unit sphere, relative to a largest curvature of one


@dataclass(frozen=True, eq=False)
class Ball(ReadOnlyArrays):
    """The points within ``radius`` of ``centre``.

    Parameters
    ----------
    centre : array, (d,)
    radius : float

    Raises
    ------
    ValueError
        If the centre is not a finite vector, or the radius is not positive.

    Examples
    --------
    >>> Ball([0.0, 0.0], radius=2.0).radius
    2.0
    """

    centre: FloatArray
    radius: float

    def __init__(self, centre: ArrayLike, radius: float) -> None:
        point = validation.array_of("centre", centre, "dim")
        validation.keeps_its_digits("radius", radius)
        object.__setattr__(self, "centre", point)
        object.__setattr__(self, "radius", validation.positive("radius", radius))


def largest_affine_norm(slope: FloatArray, offset: FloatArray, radius: float) -> float:
    """Return ``max ||slope y + offset||`` over ``||y|| <= radius``.

    Parameters
    ----------
    slope : array, (k, d)
    offset : array, (k,)
    radius : float

    Examples
    --------
    >>> largest_affine_norm(np.diag([1.0, 3.0]), np.array([0.0, 1.0]), 2.0)
    7.0
    """
    _, singular, rotation = np.linalg.svd(slope, full_matrices=True)
    scale = float(singular.max(initial=0.0))
    if scale == 0.0:
        return float(np.linalg.norm(offset))
    curvature = np.zeros(slope.shape[1])
    curvature[: singular.size] = (singular / scale) ** 2
    pull = rotation @ (slope.T @ offset) / (scale * scale * radius)
    step = _boundary_maximiser(curvature, pull)
    return float(np.linalg.norm(slope @ (rotation.T @ (step * radius)) + offset))


def quadratic_maximiser(hessian: FloatArray, gradient: FloatArray, radius: float) -> FloatArray:
    """Return a y, (d,), that maximises ``y' hessian y/2 + gradient'y`` over ``||y|| <= radius``.

    Curvatures may have either sign. The maximiser satisfies ``(lam I - hessian) y = gradient`` for
    a ``lam >= 0`` that is at least the largest eigenvalue, with ``lam = 0`` inside the ball.

    Parameters
    ----------
    hessian : array, (d, d), symmetric
    gradient : array, (d,)
    radius : float

    Examples
    --------
    >>> quadratic_maximiser(np.diag([-1.0, 2.0]), np.array([0.5, 1.0]), 10.0).round(3).tolist()
    [0.161, 9.999]
    """
    values, vectors = np.linalg.eigh(hessian)
    pull = vectors.T @ gradient
    if values[-1] < 0 and np.linalg.norm(pull / values) <= radius:
        return np.asarray(vectors @ (pull / -values))
    low = max(values[-1], 0.0)
    top = values >= low - 1e-12 * max(abs(values[0]), low)
    rest = np.divide(pull, low - values, out=np.zeros_like(pull), where=~top)
    if np.linalg.norm(pull[top]) <= 1e-12 * np.linalg.norm(pull) and top.any():
        missing = radius**2 - float(rest @ rest)
        if missing >= 0:
            rest[-1] = np.sqrt(missing)
            return np.asarray(vectors @ rest)
    size = float(np.linalg.norm(pull))

    below = low - values

    def excess(gap: float) -> float:
        return float(np.linalg.norm(pull / (gap + below))) - radius

    from scipy.optimize import brentq  # the import takes a third of a second

    gap = brentq(excess, 1e-15 * size / radius, 2 * size / radius + 2 * abs(low))
    return np.asarray(vectors @ (pull / (gap + below)))


def _boundary_maximiser(curvature: FloatArray, pull: FloatArray) -> FloatArray:
    """Maximise ``y' diag(curvature) y + 2 pull'y`` on the unit sphere; ``max(curvature) = 1``."""
    top = curvature >= 1.0 - 4 * np.finfo(np.float64).eps
    pull = np.where(np.abs(pull) < _NO_PULL, 0.0, pull)
    rest = pull[~top] / (1.0 - curvature[~top])
    if not pull[top].any() and np.linalg.norm(rest) <= 1.0:
        return _hard_case(top, rest)

    def step(log_gap: float) -> FloatArray:
        return np.asarray(pull / (np.exp(log_gap) + np.where(top, 0.0, 1.0 - curvature)))

    def excess(log_gap: float) -> float:
        return float(np.linalg.norm(step(log_gap))) - 1.0

    upper = float(np.log(2 * np.linalg.norm(pull)))
    lower, reach = upper, 1.0
    while excess(lower) < 0:
        lower, reach = lower - reach, 2 * reach
    from scipy.optimize import brentq

    found = step(brentq(excess, lower, upper, xtol=1e-15))
    return np.asarray(found / np.linalg.norm(found))


def _hard_case(top: NDArray[np.bool_], rest: FloatArray) -> FloatArray:
    """Move to the sphere along the direction of largest curvature, in which the pull is zero."""
    step = np.zeros(top.size)
    step[~top] = rest
    step[np.flatnonzero(top)[0]] = np.sqrt(max(0.0, 1.0 - float(rest @ rest)))
    return step
