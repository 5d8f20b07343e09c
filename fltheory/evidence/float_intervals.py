"""Intervals of floats that surely hold a value: many rounds at once, where balls are slow.

Every operation of IEEE arithmetic rounds to nearest, so that one float further out is a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import sympy as sp

from fltheory.evidence.enclosed_values import Evaluation, half_width, middle
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Intervals(ReadOnlyArrays):
    """Numbers between ``low`` and ``high``, (n,) or ().

    Where nothing is known, as after a division by what may be zero, they are infinite.
    """

    low: FloatArray
    high: FloatArray

    @classmethod
    def around(cls, centre: Any, radius: Any) -> Intervals:
        """Return the numbers within ``radius`` of ``centre``."""
        with np.errstate(all="ignore"):
            return _outward([centre - np.asarray(radius), centre + np.asarray(radius)])

    def __add__(self, other: Intervals) -> Intervals:
        with np.errstate(all="ignore"):
            return _outward([self.low + other.low, self.high + other.high])

    def __neg__(self) -> Intervals:
        return Intervals(-self.high, -self.low)

    def __mul__(self, other: Intervals) -> Intervals:
        with np.errstate(all="ignore"):
            return _outward([a * b for a in (self.low, self.high) for b in (other.low, other.high)])

    def inverse(self) -> Intervals:
        """Return one over the numbers."""
        with np.errstate(all="ignore"):
            apart = (self.low > 0) | (self.high < 0)
            sides = [np.where(apart, 1 / side, np.nan) for side in (self.low, self.high)]
            return _outward(sides)

    def power(self, exponent: int) -> Intervals:
        """Return a whole power."""
        base = self if exponent > 0 else self.inverse()
        return reduce(lambda power, _: power * base, range(abs(exponent) - 1), base)


def _outward(candidates: list[FloatArray]) -> Intervals:
    every = np.array(np.broadcast_arrays(*candidates))
    # An undefined operation (zero times infinity) leaves nothing known.
    low = np.where(np.isnan(every), -np.inf, every).min(axis=0)
    high = np.where(np.isnan(every), np.inf, every).max(axis=0)
    return Intervals(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


def intervals_of(
    expression: sp.Expr, fixed: Evaluation, varying: dict[sp.Symbol, Intervals]
) -> Intervals | None:
    """Return an expression's values where some symbols vary; None for roots and functions of them.

    Parameters
    ----------
    expression : sympy expression
    fixed : Evaluation
        Of whatever does not vary.
    varying : mapping of symbol to Intervals
    """
    if isinstance(expression, sp.Symbol) and expression in varying:
        return varying[expression]
    if not expression.free_symbols & set(varying):
        value = fixed.of(expression)
        return Intervals.around(middle(value), half_width(value))
    if isinstance(expression, sp.Pow) and expression.exp.is_Integer and expression.exp != 0:
        base = intervals_of(expression.base, fixed, varying)
        return None if base is None else base.power(int(expression.exp))
    if not isinstance(expression, sp.Add | sp.Mul):
        return None
    parts = [intervals_of(part, fixed, varying) for part in expression.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(expression, sp.Add):
        return reduce(lambda one, other: one + other, known)
    return reduce(lambda one, other: one * other, known)
