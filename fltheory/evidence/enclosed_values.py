"""Evaluation of SymPy expressions in fractions, or in balls for irrational values.

A value is a fraction (`fmpq`), a ball (`arb`) that is proved to contain it, or an infinite float.
An expression that divides by zero or takes the root of a negative number is undefined and gets no
substitute value.

If a symbol varies from round to round, all rounds are evaluated at once in intervals of floats that
contain the values, because balls are slow.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import sympy as sp
from flint import arb, fmpq
from sympy.core.relational import Relational

from fltheory.engines.affine.numbers import ExactNumber, as_float
from fltheory.engines.enclosure.exact_setting import NoExactTwinError, widening_power, widening_root
from fltheory.evidence.verdict import AT_THE_LIMIT
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

Value: TypeAlias = Any
"""An fmpq, an arb, or an infinite float."""


class UndefinedError(ArithmeticError):
    """An expression has no value."""


def exact_value(name: str, value: Any) -> Value:
    """Return a symbol's value from a statement, if it is exact.

    Raises
    ------
    NoExactTwinError
        If the value is a finite float, or has been rounded in any other way.

    Notes
    -----
    NaN stands for an undefined value and is refused only if an expression needs it.
    """
    if isinstance(value, ExactNumber):
        return value.value
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return fmpq(int(value))
    if isinstance(value, Fraction):
        return fmpq(value.numerator, value.denominator)
    if isinstance(value, sp.Rational):
        return fmpq(int(value.p), int(value.q))
    # Rounding cannot make numbers of moderate size infinite or undefined.
    if value in (sp.oo, math.inf):
        return math.inf
    if isinstance(value, float) and math.isnan(value):
        return math.nan
    if isinstance(value, sp.Expr) and not value.atoms(sp.Float):
        return Evaluation({}).of(value)
    raise NoExactTwinError(f"{name} {_why_inexact(value)}")


def _why_inexact(value: object) -> str:
    if not isinstance(value, float | np.floating | sp.Expr):
        return f"must be a number, got {value!r}"
    return (
        f"was rounded to a float, {float(value):.6g}, for example by float() or math.sqrt(); "
        "NumPy's norm and sqrt keep exact numbers exact"
    )


class Evaluation:
    """Evaluation of expressions at given values of their symbols.

    Parameters
    ----------
    values : mapping of symbol to Value
    """

    def __init__(self, values: Mapping[Any, Value]) -> None:
        self._known: dict[Any, Value] = dict(values)

    def at(self, values: Mapping[Any, Value]) -> Evaluation:
        """Return an evaluation in which further symbols are known."""
        fixed = {e: v for e, v in self._known.items() if not e.free_symbols & set(values)}
        return Evaluation({**fixed, **values})

    def of(self, expression: sp.Basic) -> Value:
        """Return an expression's value.

        Raises
        ------
        UndefinedError
            If it divides by zero, subtracts infinities, or takes the root of a negative number.
        NoExactTwinError
            If a function is not supported.
        """
        if expression not in self._known:
            self._known[expression] = self._evaluated(expression)
        value = self._known[expression]
        if isinstance(value, float) and math.isnan(value):
            raise UndefinedError(f"{expression} is undefined")
        return value

    def _evaluated(self, expression: sp.Basic) -> Value:
        if isinstance(expression, sp.Rational):
            return fmpq(int(expression.p), int(expression.q))
        if expression in _CONSTANTS:
            return _CONSTANTS[expression]()
        rule = next((r for kind, r in _RULES.items() if isinstance(expression, kind)), None)
        if rule is None:
            raise NoExactTwinError(f"{expression} must have a value, got none that is exact")
        return rule([self.of(part) for part in expression.args])


def _added(values: Sequence[Value]) -> Value:
    infinite = {value for value in values if isinstance(value, float)}
    if len(infinite) > 1:
        raise UndefinedError("a difference of infinities")
    return infinite.pop() if infinite else reduce(operator.add, values)


def _multiplied(values: Sequence[Value]) -> Value:
    if not any(isinstance(value, float) for value in values):
        return reduce(operator.mul, values)
    signs = [_sign(value) for value in values]
    if None in signs:
        return arb("nan")
    if 0 in signs:
        raise UndefinedError("zero times infinity")
    return math.inf * math.prod(sign for sign in signs if sign is not None)


def _sign(value: Value) -> int | None:
    """Return the sign -1, 0 or 1, or None for a ball that does not determine it."""
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0 if value == 0 else None


def _power(values: Sequence[Value]) -> Value:
    base, exponent = values
    if isinstance(exponent, float):
        raise UndefinedError("an infinite power")
    if isinstance(base, float):
        return _power_of_infinity(base, exponent)
    if base == 0:
        if _sign(exponent) == 1:
            return fmpq(0)
        raise UndefinedError("a division by zero")
    if isinstance(exponent, fmpq) and exponent.q == 1:
        return widening_power(base, int(exponent.p))
    if base < 0:
        raise UndefinedError("a root of a negative number")
    if exponent in (fmpq(1, 2), fmpq(-1, 2)):
        return widening_root(base) if exponent > 0 else 1 / widening_root(base)
    return arb(base) ** exponent


def _power_of_infinity(base: float, exponent: Value) -> Value:
    sign = _sign(exponent)
    if sign == 1 and base > 0:
        return base
    if sign == -1:
        return fmpq(0)
    raise UndefinedError("a power of infinity")


def _logarithm(values: Sequence[Value]) -> Value:
    (value,) = values
    if isinstance(value, float) and value > 0:
        return value
    if value <= 0:
        raise UndefinedError("a logarithm of a number that is not positive")
    return fmpq(0) if value == 1 else arb(value).log()


def _exponential(values: Sequence[Value]) -> Value:
    (value,) = values
    if isinstance(value, float):
        return value if value > 0 else fmpq(0)
    return fmpq(1) if value == 0 else arb(value).exp()


def larger(left: Value, right: Value) -> Value:
    """Return the larger of two values."""
    if isinstance(left, fmpq) and isinstance(right, fmpq):
        return max(left, right)
    if isinstance(left, float) or isinstance(right, float):
        return left if _comparable(left) >= _comparable(right) else right
    return arb(left).max(arb(right))


def _comparable(value: Value) -> Value:
    """Return a value in a form that FLINT can compare with others."""
    return arb(value) if isinstance(value, float) else value


def smaller(left: Value, right: Value) -> Value:
    """Return the smaller of two values."""
    return -larger(-left, -right)


def _largest(values: Sequence[Value]) -> Value:
    return reduce(larger, values)


def _smallest(values: Sequence[Value]) -> Value:
    return reduce(smaller, values)


_CONSTANTS: Mapping[sp.Basic, Callable[[], Value]] = {
    sp.oo: lambda: math.inf,
    -sp.oo: lambda: -math.inf,
    sp.pi: arb.pi,
    sp.E: lambda: arb(1).exp(),
}
_RULES: Mapping[Any, Callable[[Sequence[Value]], Value]] = {
    sp.Add: _added,
    sp.Mul: _multiplied,
    sp.Pow: _power,
    sp.log: _logarithm,
    sp.exp: _exponential,
    sp.Max: _largest,
    sp.Min: _smallest,
}


def relation_holds(condition: Relational, left: Value, right: Value) -> bool | None:
    """Decide ``left <= right`` or a similar relation, or return None if balls overlap."""
    left, right = _comparable(left), _comparable(right)
    for kinds, relation, contrary in _RELATIONS:
        if isinstance(condition, kinds):
            if relation(left, right):
                return True
            return False if contrary(left, right) else None
    raise NoExactTwinError(f"condition must be a comparison, got {condition}")


_RELATIONS: tuple[tuple[Any, Callable[..., bool], Callable[..., bool]], ...] = (
    (sp.Eq, operator.eq, operator.ne),
    (sp.Lt, operator.lt, operator.ge),
    (sp.Le, operator.le, operator.gt),
    (sp.Gt, operator.gt, operator.le),
    (sp.Ge, operator.ge, operator.lt),
)


def margin(condition: Relational, left: Value, right: Value) -> float:
    """Return a condition's approximate margin; at the limit it is zero, or negative if strict."""
    if isinstance(condition, sp.Eq):
        return -abs(difference(left, right))
    if isinstance(condition, sp.Ge | sp.Gt):
        left, right = right, left
    gap = difference(right, left)
    if isinstance(condition, sp.Lt | sp.Gt) and gap == 0:
        return -math.inf if math.isinf(middle(left)) else -AT_THE_LIMIT
    return gap


def difference(left: Value, right: Value) -> float:
    """Return approximately ``left - right``, or zero for equal infinities."""
    if isinstance(left, float) or isinstance(right, float):
        return 0.0 if left == right else middle(left) - middle(right)
    return middle(left - right)


def middle(value: Value) -> float:
    """Return a float close to the value."""
    return value if isinstance(value, float) else as_float(value)


def half_width(value: Value) -> float:
    """Return a bound on the distance of the value from its `middle`, rounded up."""
    if isinstance(value, float):
        return 0.0
    centre = middle(value)
    if not math.isfinite(centre):
        return math.inf
    farthest = abs(arb(value) - arb(centre)).upper()
    return math.nextafter(float(farthest) * (1 + 2.0**-50), math.inf) if farthest > 0 else 0.0


def ball(centre: float, radius: float) -> Value:
    """Return the ball with a given centre and radius."""
    return centre if math.isinf(centre) else arb(centre, radius)


def ends(value: arb) -> tuple[float, float]:
    """Return floats below and above a ball, which are infinite if the ball is not finite."""
    if not value.is_finite():
        return -math.inf, math.inf
    centre, radius = middle(value), half_width(value)
    return math.nextafter(centre - radius, -math.inf), math.nextafter(centre + radius, math.inf)


@dataclass(frozen=True, eq=False)
class Intervals(ReadOnlyArrays):
    """Numbers between ``low`` and ``high``, (n,) or ().

    IEEE operations round to nearest, so the next float outwards is a bound. Values that are
    unknown, for example after division by a possible zero, have infinite intervals.
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
        """Return an integer power."""
        base = self if exponent > 0 else self.inverse()
        return reduce(lambda power, _: power * base, range(abs(exponent) - 1), base)


def _outward(candidates: list[FloatArray]) -> Intervals:
    every = np.array(np.broadcast_arrays(*candidates))
    # After an undefined operation (zero times infinity), nothing is known about the value.
    low = np.where(np.isnan(every), -np.inf, every).min(axis=0)
    high = np.where(np.isnan(every), np.inf, every).max(axis=0)
    return Intervals(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


def intervals_of(
    expression: sp.Expr, fixed: Evaluation, varying: dict[sp.Symbol, Intervals]
) -> Intervals | None:
    """Return an expression's values for varying symbols, or None for roots and functions of these.

    Parameters
    ----------
    expression : sympy expression
    fixed : Evaluation
        Evaluation of the symbols that do not vary.
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
