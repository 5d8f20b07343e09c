"""Checks of arguments: each error names the argument, what it was and what it must be."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory.read_only import read_only

FloatArray = NDArray[np.float64]
ClientIndices = NDArray[np.intp]


def real_array(name: str, value: ArrayLike, *, shape: str) -> FloatArray:
    """Return a read-only float64 copy of ``value``; ``shape`` says what it must look like.

    Raises
    ------
    ValueError
        If ``value`` is not numeric, or holds NaN, an infinity, or a fraction that no float
        stands for.
    """
    try:
        if np.iscomplexobj(value):
            raise TypeError("complex")
        given = np.asarray(value)
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a real array of shape {shape}, got {value!r}") from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {_first_nonfinite(array)} among its entries")
    if given.dtype == object:
        for item in given.flat:
            keeps_its_digits(name, item)
    return read_only(array)


def keeps_its_digits(name: str, value: Any) -> None:
    """Raise ValueError for a fraction that is not the decimal that its float is written as."""
    if isinstance(value, Fraction) and Fraction(repr(float(value))) != value:
        raise ValueError(
            f"{name} must be written in decimals, got {value!r}, which would become "
            f"{float(value)!r}: give that float instead"
        )


def _first_nonfinite(array: FloatArray) -> float:
    return float(array[~np.isfinite(array)].flat[0])


def real_number(name: str, value: float, must_be: str, accepts: Callable[[float], bool]) -> float:
    """Return ``float(value)`` if it is finite and accepted; else say what it must be."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and accepts(number)):
        raise ValueError(f"{name} must be {must_be}, got {value!r}")
    return number


def positive(name: str, value: float) -> float:
    """Return ``value`` as a float if it is finite and above zero."""
    return real_number(name, value, "a finite number above 0", lambda number: number > 0)


def nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a float if it is finite and not below zero."""
    return real_number(name, value, "a finite number of at least 0", lambda number: number >= 0)


def probability(name: str, value: float) -> float:
    """Return ``value`` as a float if it lies in [0, 1]."""
    return real_number(name, value, "a probability in [0, 1]", lambda number: 0 <= number <= 1)


def whole_number(name: str, value: Any, *, at_least: int) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``at_least``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {value!r}")
    return number


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise ValueError unless ``value`` is among ``choices``, of the same type too."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")


def text(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is a string that says something."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be a string that is not empty, got {value!r}")


def instance_of(name: str, value: Any, kinds: type | tuple[type, ...], must_be: str) -> None:
    """Raise ValueError unless ``value`` is an instance of one of ``kinds``; say what it must be."""
    if not isinstance(value, kinds):
        raise ValueError(f"{name} must be {must_be}, got {value!r}")


def is_callable(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` can be called."""
    if not callable(value):
        raise ValueError(f"{name} must be callable, got {value!r}")


def tuple_of(name: str, value: Any, kind: type) -> None:
    """Raise ValueError unless ``value`` is a tuple of instances of ``kind``."""
    if not isinstance(value, tuple):
        raise ValueError(f"{name} must be a tuple of {kind.__name__}, got {value!r}")
    for item in value:
        instance_of(name, item, kind, f"a tuple of {kind.__name__}")


def mapping_of(name: str, value: Any, keys: type, values: type) -> None:
    """Raise ValueError unless ``value`` maps instances of ``keys`` to instances of ``values``."""
    must_be = f"a mapping of {keys.__name__} to {values.__name__}"
    instance_of(name, value, Mapping, must_be)
    for key, item in value.items():
        if not isinstance(key, keys) or not isinstance(item, values):
            raise ValueError(f"{name} must be {must_be}, got {key!r}: {item!r} in it")
