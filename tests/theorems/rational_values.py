"""A second evaluation of SymPy expressions, in fractions, by which tests judge proofs.

It shares nothing with the package's own, `fltheory.evidence.enclosed_values`.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from fractions import Fraction
from functools import reduce
from typing import Any

import sympy as sp

Values = Mapping[Any, Fraction]


class IrrationalError(ValueError):
    """The expression's value is not a fraction."""


def rational_value(expression: sp.Basic, values: Values) -> Fraction:
    """Return the value of an expression of sums, products and whole powers.

    Raises
    ------
    IrrationalError
        If a root or a function is left in it.
    ZeroDivisionError
        If it divides by zero.
    """
    if isinstance(expression, sp.Symbol):
        return values[expression]
    if isinstance(expression, sp.Rational):
        return Fraction(int(expression.p), int(expression.q))
    if isinstance(expression, sp.Add | sp.Mul):
        combine = operator.add if isinstance(expression, sp.Add) else operator.mul
        return reduce(combine, [rational_value(part, values) for part in expression.args])
    if isinstance(expression, sp.Pow):
        exponent = rational_value(expression.exp, values)
        if exponent.denominator == 1:
            return rational_value(expression.base, values) ** exponent.numerator
    raise IrrationalError(f"{expression} is not a rational expression")


def satisfied(condition: sp.core.relational.Relational, values: Values) -> bool:
    """Decide ``left <= right`` and the like exactly.

    A side with a square root is compared through its square, both sides being nonnegative.
    A division by zero leaves the condition undefined, hence not satisfied; comparisons with
    infinity are with every fraction's upper limit.
    """
    left, right = condition.lhs, condition.rhs
    if right == sp.oo:
        return isinstance(condition, sp.Lt | sp.Le)
    try:
        return _compared(condition, rational_value(left, values), rational_value(right, values))
    except ZeroDivisionError:
        return False
    except IrrationalError:
        squares = (rational_value(sp.expand(side**2), values) for side in (left, right))
        return _compared(condition, *squares)


def _compared(condition: sp.core.relational.Relational, left: Fraction, right: Fraction) -> bool:
    if isinstance(condition, sp.Eq):
        return left == right
    if isinstance(condition, sp.Ge | sp.Gt):
        left, right = right, left
    strict = isinstance(condition, sp.Lt | sp.Gt)
    return left < right if strict else left <= right
