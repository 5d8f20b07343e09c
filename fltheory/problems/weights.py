"""Target weights: the importance alpha that defines F = sum_i alpha_i F_i."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.validation import FloatArray


def checked_target_weights(weights: ArrayLike | None, n_clients: int) -> FloatArray | None:
    """Return ``weights`` as a read-only array, or None where none were given.

    Raises
    ------
    ValueError
        Unless there is one positive weight per client and they sum to one (to 1e-12).
    """
    if weights is None:
        return None
    array = validation.real_array("target_weights", weights, shape=f"({n_clients},)")
    if array.shape != (n_clients,):
        raise ValueError(f"target_weights must have shape ({n_clients},), got {array.shape}")
    if array.min() <= 0:
        raise ValueError(f"target_weights must be positive, got {array.min():.6g} among them")
    if abs(array.sum() - 1) > 1e-12:
        raise ValueError(f"target_weights must sum to 1, got a sum of {array.sum():.15g}")
    return array


def weights_or_uniform(weights: FloatArray | None, n_clients: int) -> FloatArray:
    """Return ``weights``, or 1/N for each of N clients where there are none."""
    return np.full(n_clients, 1.0 / n_clients) if weights is None else weights


def weighted_mean(points: FloatArray, weights: FloatArray) -> FloatArray:
    """``sum_i weights_i points_i``, exact where all points are equal.

    The sum runs over differences from the first point, so that equal points leave no
    rounding behind.
    """
    return np.asarray(points[0] + weights @ (points - points[0]), dtype=np.float64)
