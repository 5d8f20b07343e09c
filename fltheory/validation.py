"""Checks of arguments; each error names the argument, its value and what it must be."""

from __future__ import annotations

import math
import operator
import os
import reprlib
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory.decimals import how_many
from fltheory.read_only import read_only

FloatArray = NDArray[np.float64]
ClientIndices = NDArray[np.intp]

LEAST_AVAILABILITY = 1e-100
"""The smallest probability of being present; the inverse of its square is still a float."""


_SHOWN_CHARACTERS = 200
_MOST_ITEMS = 100 * _SHOWN_CHARACTERS


def shown(value: Any) -> str:
    """Return a value as text for an error message, truncated if it is long.

    Examples
    --------
    >>> shown("half")
    "'half'"
    """
    if isinstance(value, str | list | tuple) and len(value) > _MOST_ITEMS:
        value = value[:_MOST_ITEMS]  # the full text of a long value takes seconds
    try:
        text = repr(value)
    except ValueError:  # more digits than Python converts to text
        text = "a whole number of thousands of digits"
    except RecursionError:
        text = reprlib.repr(value)
    text = " ".join(text.split())
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}..."


def _is_no_number(value: Any) -> bool:
    """Return whether a value is not a number, although conversion would make it one.

    Text, True and masked entries can all be converted to numbers.
    """
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "iuf" and (
            value.dtype != object or any(map(_is_no_number, value.flat))
        )
    return isinstance(value, bool | np.bool_ | str | bytes | bytearray | complex)


def _items(value: Any) -> list[Any]:
    """Return the items of nested lists and tuples, before NumPy converts them all to numbers."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list | tuple):
            waiting.extend(one)
        else:
            found.append(one)
    return found


def real_array(name: str, value: ArrayLike, *, shape: str, flags: bool = False) -> FloatArray:
    """Return a read-only float64 copy of ``value``; ``shape`` describes its required shape.

    With ``flags``, entries may also be booleans.

    Raises
    ------
    ValueError
        If ``value`` is not numeric, has masked entries, or contains NaN, an infinity, or a fraction
        that no float represents.
    """
    try:
        if np.ma.is_masked(value):
            raise TypeError("masked entries")
        given = np.asarray(value)
        are_flags = flags and given.dtype == bool
        if not are_flags and any(map(_is_no_number, [*_items(value), given])):
            raise TypeError("no numbers")
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"{name} must be a real array of shape {shape}, got {shown(value)}"
        ) from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {_first_nonfinite(array)} among its entries")
    if given.dtype == object:
        for item in given.flat:
            keeps_its_digits(name, item)
    return read_only(array)


def array_of(
    name: str, value: ArrayLike, *axes: int | str, flags: bool = False, for_all: bool = False
) -> FloatArray:
    """Return a real array of exactly the given shape.

    Parameters
    ----------
    name : str
    value : array
    *axes : int or str
        The size of each axis, or a name if any size except zero is allowed.
    flags : bool
        Whether entries may be booleans.
    for_all : bool
        Whether a single number may stand for every entry.

    Raises
    ------
    ValueError
        If the shape is different, or `real_array` refuses the value.

    Examples
    --------
    >>> array_of("x0", 3, 2, for_all=True).tolist()
    [3.0, 3.0]
    """
    shape = f"({', '.join(map(str, axes))}{',' * (len(axes) == 1)})"
    array = real_array(name, value, shape=shape, flags=flags)
    if for_all and array.ndim == 0:
        return np.broadcast_to(array, axes)  # type: ignore[arg-type]
    sizes = zip(array.shape, axes, strict=False)
    fits = (size == axis if isinstance(axis, int) else size > 0 for size, axis in sizes)
    if array.ndim != len(axes) or not all(fits):
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def keeps_its_digits(name: str, value: Any) -> None:
    """Raise ValueError for a fraction that differs from the shortest decimal of its float."""
    if isinstance(value, Fraction) and Fraction(repr(float(value))) != value:
        raise ValueError(
            f"{name} must be written in decimals, got {value!r}, which would become "
            f"{float(value)!r}: give that float instead"
        )


def _first_nonfinite(array: FloatArray) -> float:
    return float(array[~np.isfinite(array)].flat[0])


def real_number(name: str, value: float, must_be: str, accepts: Callable[[float], bool]) -> float:
    """Return ``float(value)`` if it is finite and accepted; otherwise raise ValueError."""
    try:
        number = math.nan if _is_no_scalar(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and accepts(number)):
        raise ValueError(f"{name} must be {must_be}, got {shown(value)}")
    return number


def _is_no_scalar(value: Any) -> bool:
    if isinstance(value, np.ndarray) and (value.ndim > 0 or np.ma.is_masked(value)):
        return True
    return _is_no_number(value)


def positive(name: str, value: float) -> float:
    """Return ``value`` as a float if it is finite and positive."""
    found = real_number(name, value, "a finite number above 0", lambda number: number > 0)
    # Smaller numbers have lost digits, and their inverses overflow.
    must_be = "a finite number of at least 2.3e-308"
    return real_number(name, found, must_be, lambda number: number >= sys.float_info.min)


def nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a float if it is finite and nonnegative."""
    return real_number(name, value, "a finite number of at least 0", lambda number: number >= 0)


def probability(name: str, value: float) -> float:
    """Return ``value`` as a float if it lies in [0, 1]."""
    return real_number(name, value, "a probability in [0, 1]", lambda number: 0 <= number <= 1)


MOST = 10**8
"""Largest count of clients, rounds or steps; more would not fit in memory."""


def whole_number(name: str, value: Any, *, at_least: int, at_most: int = MOST) -> int:
    """Return ``value`` as an int if it is an integer from ``at_least`` to ``at_most``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < at_least:
        raise ValueError(
            f"{name} must be a whole number of at least {at_least}, got {shown(value)}"
        )
    if number > at_most:
        raise ValueError(f"{name} must be a whole number of at most {at_most}, got {shown(value)}")
    return number


def seed_number(name: str, value: Any) -> int:
    """Return ``value`` as an int if it is a seed: a nonnegative integer of at most 128 bits."""
    return whole_number(name, value, at_least=0, at_most=2**128 - 1)


def availability(name: str, value: ArrayLike, *, shape: str = "(N,)") -> FloatArray:
    """Return probabilities above 0, one per client, as a read-only array of any shape.

    Raises
    ------
    ValueError
        If a number is not in (0, 1], or is so small that its inverse overflows. The message names
        the client.
    """
    array = real_array(name, value, shape=shape)
    bad = np.flatnonzero(~((array >= LEAST_AVAILABILITY) & (array <= 1)))
    if bad.size:
        number, client = array.flat[bad[0]], bad[0]
        if 0 < number < LEAST_AVAILABILITY:
            must_be = f"be at least {LEAST_AVAILABILITY:g}"
        else:
            must_be = "be in (0, 1]"
        raise ValueError(f"{name} must {must_be}, got {number:.6g} for client {client}")
    return array


def one_each(name: str, value: ArrayLike) -> FloatArray:
    """Return numbers, one per client, as a read-only array (N,).

    Raises
    ------
    ValueError
        If the shape is different, or there are no clients.
    """
    array = real_array(name, value, shape="(N,)")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have shape (N,) with N >= 1, got {array.shape}")
    return array


def good_for_each(name: str, values: Any, good: Any, must_be: str) -> None:
    """Raise ValueError unless ``good`` is true for every client, naming the first failure."""
    bad = np.flatnonzero(~good)
    if bad.size:
        raise ValueError(f"{name} must be {must_be}, got {values[bad[0]]:.6g} for client {bad[0]}")


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``, with the same type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {listed}, got {shown(value)}")


def text(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is a string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be a non-empty string, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # a lone surrogate, which cannot be written to a file
        raise ValueError(f"{name} must be valid Unicode text, got {shown(value)}") from error


def path(name: str, value: Any) -> Path:
    """Return the path of a file or folder; raise ValueError if ``value`` is not text or a path.

    Examples
    --------
    >>> path("out", "figures/bound.svg").suffix
    '.svg'
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise ValueError(f"{name} must be a path, as a string or a Path, got {shown(value)}")
    return Path(value)


def instance_of(name: str, value: Any, kinds: type | tuple[type, ...], must_be: str) -> None:
    """Raise ValueError, with ``must_be``, unless ``value`` is an instance of one of ``kinds``."""
    if not isinstance(value, kinds):
        raise ValueError(f"{name} must be {must_be}, got {shown(value)}")


def is_callable(name: str, value: Any, arguments: int | None = None) -> None:
    """Raise ValueError unless ``value`` can be called with this number of ``arguments``."""
    if not callable(value):
        raise ValueError(f"{name} must be callable, got {shown(value)}")
    if arguments is None:
        return
    try:
        taken = signature(value)
    except (TypeError, ValueError):  # some compiled functions have no signature
        return
    try:
        taken.bind(*range(arguments))
    except TypeError as error:
        count = how_many(arguments, "argument")
        raise ValueError(f"{name} must take {count}, got {shown(value)}: {error}") from error


def tuple_of(name: str, value: Any, kind: type) -> None:
    """Raise ValueError unless ``value`` is a tuple of instances of ``kind``."""
    if not isinstance(value, tuple):
        raise ValueError(f"{name} must be a tuple of {kind.__name__}, got {shown(value)}")
    for item in value:
        instance_of(name, item, kind, f"a tuple of {kind.__name__}")


def mapping_of(name: str, value: Any, keys: type, values: type) -> None:
    """Raise ValueError unless ``value`` maps instances of ``keys`` to instances of ``values``."""
    must_be = f"a mapping of {keys.__name__} to {values.__name__}"
    instance_of(name, value, Mapping, must_be)
    for key, item in value.items():
        if not isinstance(key, keys) or not isinstance(item, values):
            raise ValueError(f"{name} must be {must_be}, got {key!r}: {item!r} in it")
