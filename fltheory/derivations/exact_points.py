"""Rational points, and what relations say at them, decided in fractions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import sympy as sp
from sympy.core.relational import Relational

from fltheory.derivations.nonnegativity import number_is_nonnegative

Point: TypeAlias = Mapping[sp.Symbol, sp.Rational]

_SIMPLE_POINTS = 400


@dataclass(frozen=True)
class _Pool:
    numerators: tuple[int, ...]
    denominators: tuple[int, ...]
    whole: tuple[int, ...]


_SIMPLE = _Pool((1, 2, 3, 5), (1, 2, 4), (1, 2, 3, 4, 8))
_WIDE = _Pool((1, 2, 3, 5, 16, 64), (1, 2, 4, 8, 16, 64, 256), (1, 2, 3, 4, 8, 64, 256))


def rational_points(symbols: Iterable[sp.Basic], count: int, seed: int) -> Iterator[Point]:
    """Yield random points of small fractions that meet the symbols' assumptions.

    The first few hundred have the smallest denominators.
    """
    ordered = sorted((item for item in symbols if isinstance(item, sp.Symbol)), key=str)
    generator = random.Random(seed)
    for index in range(count):
        pool = _SIMPLE if index < _SIMPLE_POINTS else _WIDE
        yield {symbol: _value(symbol, pool, generator) for symbol in ordered}


def _value(symbol: sp.Symbol, pool: _Pool, generator: random.Random) -> sp.Rational:
    if symbol.is_integer:
        return sp.Integer(generator.choice(pool.whole))
    size = sp.Rational(generator.choice(pool.numerators), generator.choice(pool.denominators))
    if symbol.is_extended_positive:
        return size
    signs = (1, 1, 1, 0) if symbol.is_extended_nonnegative else (1, 1, -1, -1, 0)
    return generator.choice(signs) * size


def value_at(expression: sp.Expr, point: Point) -> sp.Expr:
    """Return an expression's exact value; infinite or undefined where it divides by zero."""
    return expression.xreplace(dict(point))


def holds_at(relation: Relational, point: Point) -> bool | None:
    """Decide ``left <= right`` and the like in fractions.

    A side with a square root is compared through its square, both being nonnegative. None
    where that does not decide, or where a side is not defined.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> holds_at(sp.Le(x, sp.sqrt(2)), {x: sp.Rational(3, 2)})
    False
    >>> holds_at(sp.Le(1 / x, 1), {x: sp.Integer(0)}) is None
    True
    """
    left, right = value_at(relation.lhs, point), value_at(relation.rhs, point)
    if not (left.is_Rational and right.is_Rational):
        sides = (left, right)
        if not all(side.is_finite and number_is_nonnegative(side) for side in sides):
            return None
        left, right = (sp.expand(side**2) for side in sides)
        if not (left.is_Rational and right.is_Rational):
            return None
    return bool(relation.func(left, right))
