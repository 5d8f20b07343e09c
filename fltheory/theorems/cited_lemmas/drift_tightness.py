"""How tight the drift lemma's constants 5 and 30 are, exactly.

The lemma bounds ``E||y_k - x||^2`` for k <= K local steps of size eta = s/(LK) by
``5 K eta^2 sigma^2 + 30 K^2 eta^2 (sigma_G^2 + ||grad F(x)||^2)``.

Least constants, derived
------------------------
*Quadratics.* Along an eigenvector of curvature a, ``y_K - x`` has the mean
``-eta g (1 + r + .. + r^(K-1))``, ``r = 1 - eta a``, and the noise's share of its variance is
``eta^2 (1 + r^2 + .. + r^(2(K-1)))``. Both are largest for the largest |r|: at a = -L where
clients need not be convex, and as a -> 0 where they are. ``g = grad F_i(x)`` has
``||g||^2 <= 2 (sigma_G^2 + ||grad F||^2)``, with equality where ``grad F_i - grad F = grad F``.

*All smooth clients.* Without noise, ``||y_{k+1} - x|| <= (1 + eta L) ||y_k - x|| + eta ||g||``;
with noise and g = 0, ``E||y_{k+1} - x||^2 <= (1 + eta L)^2 E||y_k - x||^2 + eta^2 sigma^2``. Both
are equalities at a = -L. So neither constant can be smaller for any class in between; that the two
together are enough is exact on quadratics, and `excess_for_all_smooth` bounds what is missing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.exact_or_float import is_exact

PRINTED_NOISE, PRINTED_GRADIENT = 5.0, 30.0
PRINTED_STEP = 1 / 8

_RATIOS = np.geomspace(1e-3, 1e3, 241)
_BISECTIONS = 80


def noise_constant(local_steps: int, step: Any, *, convex: bool = False) -> Any:
    """Return the least constant in place of 5.

    Parameters
    ----------
    local_steps : int
        K.
    step : float
        s = eta K L.
    convex : bool
        Over convex quadratics only.

    Raises
    ------
    ValueError
        For fewer than one step or a step size that is not positive.

    Examples
    --------
    >>> round(noise_constant(100, 0.125), 4), noise_constant(100, 0.125, convex=True)
    (1.1346, 1.0)
    """
    if is_exact(step) and not convex:
        square = (1 + step / local_steps) ** 2
        return (square**local_steps - 1) / (local_steps * (square - 1))
    growth = _log_growth(local_steps, step)
    if convex:
        return 1.0
    return math.expm1(2 * local_steps * growth) / (local_steps * math.expm1(2 * growth))


def gradient_constant(local_steps: int, step: Any, *, convex: bool = False) -> Any:
    """Return the least constant in place of 30; arguments as for `noise_constant`.

    Examples
    --------
    >>> round(gradient_constant(100, 0.125), 4), gradient_constant(100, 0.125, convex=True)
    (2.2662, 2.0)
    """
    if is_exact(step) and not convex:
        return 2 * (((1 + step / local_steps) ** local_steps - 1) / step) ** 2
    growth = _log_growth(local_steps, step)
    if convex:
        return 2.0
    return 2 * (math.expm1(local_steps * growth) / step) ** 2


def _log_growth(local_steps: int, step: float) -> float:
    steps = validation.whole_number("local_steps", local_steps, at_least=1)
    return math.log1p(validation.positive("step", step) / steps)


def largest_ratio(local_steps: int, step: float, *, convex: bool = False) -> float:
    """Return the supremum of drift/bound over quadratics with the printed 5 and 30.

    A quotient of sums is at most the largest quotient of their terms, and either term can be
    made to vanish beside the other.
    """
    return max(
        noise_constant(local_steps, step, convex=convex) / PRINTED_NOISE,
        gradient_constant(local_steps, step, convex=convex) / PRINTED_GRADIENT,
    )


def largest_step(local_steps: int) -> float:
    """Return the largest s = eta K L up to which 5 and 30 hold on quadratics, by bisection.

    Infinite for one step, after which the drift is ``eta^2 (sigma^2 + ||grad F_i(x)||^2)``.
    """
    if validation.whole_number("local_steps", local_steps, at_least=1) == 1:
        return math.inf
    low, high = PRINTED_STEP, 1.0
    while largest_ratio(local_steps, high) <= 1:
        high *= 2
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if largest_ratio(local_steps, middle) <= 1 else (low, middle)
    return low


def excess_for_all_smooth(local_steps: int, step: float) -> float:
    """Bound by what factor both least constants together may be too small for smooth clients.

    With ``M = ||E y_k - x||``, ``e^2 = E||y_k - x||^2`` and g = ||grad F_i(x)||, every L-smooth
    client and every noise of conditional mean zero and variance at most sigma^2 has

        ``M' <= M + eta g + eta L e``,
        ``e'^2 <= (sqrt(e^2 + 2 eta M g + eta^2 g^2) + eta L e)^2 + eta^2 sigma^2``.

    The factor is the largest ``e_K^2`` over the least constants' bound, over ratios of g and
    sigma from 1e-3 to 1e3. It is 1 on quadratics.
    """
    noise = noise_constant(local_steps, step)
    gradient = gradient_constant(local_steps, step)
    lr = step / local_steps  # L = 1
    g = _RATIOS / math.sqrt(local_steps)  # sigma = 1
    mean, square = np.zeros_like(g), np.zeros_like(g)
    for _ in range(local_steps):
        drift = lr * np.sqrt(square)
        square = (np.sqrt(square + 2 * lr * mean * g + (lr * g) ** 2) + drift) ** 2 + lr**2
        mean = mean + lr * g + drift
    least = lr**2 * (noise * local_steps + gradient / 2 * (local_steps * g) ** 2)
    return float((square / least).max())
