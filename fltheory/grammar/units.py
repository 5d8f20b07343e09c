"""Units of expressions in terms of the free units of length and loss.

Only two units are free in optimization: the unit of the model space, X, and that of the loss, F. A
formula whose terms have different units cannot hold for all choices of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import sympy as sp
from sympy.core.relational import Relational


@dataclass(frozen=True)
class Unit:
    """The unit ``X^length F^loss``.

    Examples
    --------
    >>> str(LOSS / LENGTH**2), str((LOSS / LENGTH**2) ** Fraction(-1, 2)), str(PURE)
    ('F/X^2', 'X/F^(1/2)', '1')
    """

    length: Fraction | int = 0
    loss: Fraction | int = 0

    def __mul__(self, other: Unit) -> Unit:
        return Unit(self.length + other.length, self.loss + other.loss)

    def __pow__(self, exponent: Fraction | int) -> Unit:
        return Unit(self.length * exponent, self.loss * exponent)

    def __truediv__(self, other: Unit) -> Unit:
        return self * other**-1

    def __str__(self) -> str:
        powers = (("F", Fraction(self.loss)), ("X", Fraction(self.length)))
        above = [_power(name, value) for name, value in powers if value > 0]
        below = [_power(name, -value) for name, value in powers if value < 0]
        under = "*".join(below)
        denominator = f"/({under})" if len(below) > 1 else f"/{under}" if below else ""
        return ("*".join(above) or "1") + denominator


def _power(name: str, exponent: Fraction) -> str:
    if exponent == 1:
        return name
    return f"{name}^{exponent}" if exponent.denominator == 1 else f"{name}^({exponent})"


PURE = Unit()
LENGTH = Unit(length=1)
LOSS = Unit(loss=1)
GRADIENT = LOSS / LENGTH
CURVATURE = LOSS / LENGTH**2
STEP = PURE / CURVATURE
"""Unit of a step size."""

Units: TypeAlias = Mapping[sp.Symbol, Unit]


@dataclass(frozen=True)
class UnitFlag:
    """A part of a formula with inconsistent units.

    Attributes
    ----------
    expression : sympy expression or relation
        A sum, comparison, power or function.
    parts : tuple of pairs
        Its parts with their units: different ones, or units of parts that must be pure numbers.
    """

    expression: sp.Basic
    parts: tuple[tuple[sp.Basic, Unit], ...]

    def __str__(self) -> str:
        parts = ", ".join(f"{part} has unit {unit}" for part, unit in self.parts)
        return f"in {self.expression}: {parts}"


def unit_of(expression: sp.Basic, units: Units) -> Unit | tuple[UnitFlag, ...] | None:
    """Return the unit of an expression or of both sides of a relation, or the inconsistent parts.

    Zero and infinity fit any unit; only for these is the result None.

    Raises
    ------
    ValueError
        If a symbol has no unit, or an expression is of an unknown kind.

    Examples
    --------
    >>> x, y = sp.symbols("x y", positive=True)
    >>> print(unit_of(x**2 / y, {x: LENGTH, y: LOSS}))
    X^2/F
    >>> print(*unit_of(x + y, {x: LENGTH, y: LOSS}))
    in x + y: x has unit X, y has unit F
    """
    flags: list[UnitFlag] = []
    unit = _unit(expression, units, flags)
    return tuple(flags) or unit


def _unit(expression: sp.Basic, units: Units, flags: list[UnitFlag]) -> Unit | None:
    """Return the unit, None if any fits or a flagged part leaves it undetermined."""
    if isinstance(expression, sp.Symbol):
        return _of_symbol(expression, units)
    if isinstance(expression, sp.Expr) and expression.is_number:
        return None if expression == 0 or expression.is_infinite else PURE
    if isinstance(expression, sp.Add | sp.Max | sp.Min | Relational | sp.Abs):
        return _common(expression, units, flags)
    if isinstance(expression, sp.Mul):
        return _product(_unit(part, units, flags) for part in expression.args)
    if isinstance(expression, sp.Pow) and expression.exp.is_Rational:
        base = _unit(expression.base, units, flags)
        return base and base ** Fraction(int(expression.exp.p), int(expression.exp.q))
    if isinstance(expression, sp.Pow | sp.exp | sp.log):
        return _pure(expression, units, flags)
    raise ValueError(
        "expression must be made of sums, products, powers, Min, Max, Abs, exp, log and "
        f"relations, got {expression!r}"
    )


def _of_symbol(symbol: sp.Symbol, units: Units) -> Unit:
    if symbol not in units:
        raise ValueError(f"units must have a unit for every symbol, {symbol} has none")
    return units[symbol]


def _common(expression: sp.Basic, units: Units, flags: list[UnitFlag]) -> Unit | None:
    found = tuple(_with_units(expression.args, units, flags))
    distinct = {unit for _, unit in found}
    if len(distinct) > 1:
        flags.append(UnitFlag(expression, found))
    return distinct.pop() if len(distinct) == 1 else None


def _product(parts: Iterable[Unit | None]) -> Unit | None:
    result: Unit | None = PURE
    for unit in list(parts):
        result = None if unit is None or result is None else result * unit
    return result


def _pure(expression: sp.Basic, units: Units, flags: list[UnitFlag]) -> Unit:
    found = _with_units(expression.args, units, flags)
    impure = tuple((part, unit) for part, unit in found if unit != PURE)
    if impure:
        flags.append(UnitFlag(expression, impure))
    return PURE


def _with_units(
    parts: Iterable[sp.Basic], units: Units, flags: list[UnitFlag]
) -> Iterator[tuple[sp.Basic, Unit]]:
    for part in parts:
        unit = _unit(part, units, flags)
        if unit is not None:
            yield part, unit
