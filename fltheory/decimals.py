"""The exact values of numbers as they are written, and numbers as text."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np


def as_fraction(value: Any) -> Fraction:
    """Return a number as a fraction; a float is read as its shortest decimal.

    Raises
    ------
    ValueError
        If the value is not a finite number.

    Examples
    --------
    >>> as_fraction(0.1)
    Fraction(1, 10)
    """
    if isinstance(value, Fraction):
        return value
    if hasattr(value, "p") and hasattr(value, "q"):
        # Rational numbers of SymPy and FLINT.
        return Fraction(int(value.p), int(value.q))
    try:
        if isinstance(value, float | np.floating):
            return _shortest_decimal(float(value))
        return Fraction(operator.index(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"value must be a finite number, got {value!r}") from error


@lru_cache(maxsize=4096)
def _shortest_decimal(value: float) -> Fraction:
    return Fraction(repr(value))  # parsing is slow, and settings' numbers recur


def complement(value: Any) -> Any:
    """Return one minus a number or numbers; for a float, one minus its decimal, then rounded.

    Subtracting the float itself would keep the float's rounding error, which is relatively large if
    the number is near one. Exact numbers are subtracted unchanged.

    Examples
    --------
    >>> complement(0.999999999), 1 - 0.999999999
    (1e-09, 9.999999717180685e-10)
    """
    if isinstance(value, np.ndarray) and value.dtype != object:
        found = np.asarray(1.0 - value)
        # For a number up to one half, the error is at most one rounding error of the result.
        large = value > 0.5
        numbers, places = np.unique(value[large], return_inverse=True)
        found[large] = np.array([complement(one) for one in numbers.tolist()])[places]
        return found
    return float(1 - as_fraction(value)) if isinstance(value, float) else 1 - value


_MOST_DIGITS = 1000


def written_fraction(text: str) -> Fraction:
    """Return the number written in a text as a fraction or a decimal.

    Raises
    ------
    ValueError
        If the text is not a number, or is a number with more than a thousand digits, which would
        fill the memory.

    Examples
    --------
    >>> written_fraction("1/3"), written_fraction("1e-2")
    (Fraction(1, 3), Fraction(1, 100))
    """
    exponent = text.lower().partition("e")[2].strip().lstrip("+-")
    is_long = len(text) > _MOST_DIGITS or (exponent.isdecimal() and int(exponent) > _MOST_DIGITS)
    try:
        if not is_long:
            return Fraction(text)
    except (ValueError, ZeroDivisionError):
        pass
    digits = f" of at most {_MOST_DIGITS} digits" if is_long else ""
    raise ValueError(f"text must be a fraction or a decimal{digits}, got {text[:60]!r}")


def fraction_text(value: Fraction) -> str:
    """Return a fraction as text with its approximate decimal value, or only the latter if long.

    Examples
    --------
    >>> fraction_text(Fraction(1, 40))
    '1/40 = 0.025'
    >>> fraction_text(Fraction(1, 3 * 10**400))
    '3.33333e-401'
    """
    if value.denominator == 1:
        return str(value)
    exact = f"{value} = " if value.denominator < 10**6 else ""
    about = float(value) if abs(value) >= sys.float_info.min else _decimal(value)
    return f"{exact}{about:.6g}"


def _decimal(value: Fraction) -> Decimal:
    """Return as a decimal a fraction that is too small for a float."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def how_many(count: int, noun: str) -> str:
    """Return a count with its noun, adding an s in the plural.

    Examples
    --------
    >>> how_many(1, "round"), how_many(0, "client")
    ('1 round', '0 clients')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def normalised(weights: Iterable[Any]) -> list[Fraction]:
    """Return weights as fractions that sum to exactly one, unlike thirds written as decimals.

    Examples
    --------
    >>> normalised([1 / 3, 1 / 3, 1 / 3])
    [Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)]
    """
    exact = [as_fraction(weight) for weight in weights]
    total = sum(exact, Fraction(0))
    return [weight / total for weight in exact]
