"""The exact value of a number as written, and numbers in sentences."""

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
    """Return what a number stands for: a float its shortest decimal, others themselves.

    Raises
    ------
    ValueError
        For what is no finite number.

    Examples
    --------
    >>> as_fraction(0.1)
    Fraction(1, 10)
    """
    if isinstance(value, Fraction):
        return value
    if hasattr(value, "p") and hasattr(value, "q"):
        # SymPy's rational numbers, and FLINT's.
        return Fraction(int(value.p), int(value.q))
    try:
        if isinstance(value, float | np.floating):
            return _shortest_decimal(float(value))
        return Fraction(operator.index(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"value must be a finite number, got {value!r}") from error


@lru_cache(maxsize=4096)
def _shortest_decimal(value: float) -> Fraction:
    return Fraction(repr(value))  # which reads a text: slow, and settings' numbers recur


def complement(value: Any) -> Any:
    """Return one minus a number, or numbers: a float's decimal is taken from one, then rounded.

    One minus the float has the float's error, which is large beside it where the number is near
    one. Exact numbers are taken from one as they are.

    Examples
    --------
    >>> complement(0.999999999), 1 - 0.999999999
    (1e-09, 9.999999717180685e-10)
    """
    if isinstance(value, np.ndarray) and value.dtype != object:
        found = np.asarray(1.0 - value)
        # What a number up to one half is off by is no more than a rounding of the result.
        large = value > 0.5
        numbers, places = np.unique(value[large], return_inverse=True)
        found[large] = np.array([complement(one) for one in numbers.tolist()])[places]
        return found
    return float(1 - as_fraction(value)) if isinstance(value, float) else 1 - value


_MOST_DIGITS = 1000


def written_fraction(text: str) -> Fraction:
    """Return the number that a text says: a fraction or a decimal.

    Raises
    ------
    ValueError
        If it says none, or one of more than a thousand digits, which would fill the memory.

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
    """Return a fraction if it is short, and what it is about.

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
    """Return what no float is small enough for."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def how_many(count: int, noun: str) -> str:
    """Return a count with its noun, which has an s in the plural.

    Examples
    --------
    >>> how_many(1, "round"), how_many(0, "client")
    ('1 round', '0 clients')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def normalised(weights: Iterable[Any]) -> list[Fraction]:
    """Return weights as fractions that sum to one, as thirds do not if written as decimals.

    Examples
    --------
    >>> normalised([1 / 3, 1 / 3, 1 / 3])
    [Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)]
    """
    exact = [as_fraction(weight) for weight in weights]
    total = sum(exact, Fraction(0))
    return [weight / total for weight in exact]
