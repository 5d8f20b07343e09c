"""Checks of arguments: each error names the argument, what it was and what it must be."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
ClientIndices = NDArray[np.intp]


def real_array(name: str, value: ArrayLike, *, shape: str) -> FloatArray:
    """Return a read-only float64 copy of ``value``; ``shape`` says what it must look like.

    Raises
    ------
    ValueError
        If ``value`` is not numeric, or holds NaN or an infinity.
    """
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a real array of shape {shape}, got {value!r}") from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {_first_nonfinite(array)} among its entries")
    array.flags.writeable = False
    return array


def _first_nonfinite(array: FloatArray) -> float:
    return float(array[~np.isfinite(array)].flat[0])


def real_number(name: str, value: float, must_be: str, accepts: bool) -> float:
    """Return ``float(value)`` if it is finite and ``accepts``; else say what it must be."""
    number = float(value)
    if not (math.isfinite(number) and accepts):
        raise ValueError(f"{name} must be {must_be}, got {value!r}")
    return number


def positive(name: str, value: float) -> float:
    """Return ``value`` as a float if it is finite and above zero."""
    return real_number(name, value, "a finite number above 0", value > 0)


def nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a float if it is finite and not below zero."""
    return real_number(name, value, "a finite number of at least 0", value >= 0)


def probability(name: str, value: float) -> float:
    """Return ``value`` as a float if it lies in [0, 1]."""
    return real_number(name, value, "a probability in [0, 1]", 0 <= value <= 1)


def whole_number(name: str, value: Any, *, at_least: int) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``at_least``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {value!r}")
    return number
