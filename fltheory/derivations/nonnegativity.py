"""Expressions whose form alone shows that they are not negative.

No number is approximated: surds are compared through their squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import sympy as sp
from sympy.core.random import rng


def manifestly_nonnegative(expression: sp.Expr, facts: Sequence[sp.Expr] = ()) -> bool:
    """Tell whether sums, products and powers of nonnegative parts make up the expression.

    Parameters
    ----------
    expression : sympy expression
        Tried as it stands, factored and expanded.
    facts : sequence of sympy expressions
        What is known to be nonnegative beside the assumptions on symbols.

    Returns
    -------
    bool
        True only if it is nonnegative wherever it is defined and all facts are nonnegative;
        False says nothing.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> manifestly_nonnegative(x**2 - 2 * x * y + y**2)
    True
    >>> manifestly_nonnegative(x * y), manifestly_nonnegative(x * y, [2 * x * y])
    (False, True)
    """
    return (
        _shown(expression, facts)
        or _shown(factored(expression), facts)
        or _shown(sp.expand(expression), facts)
    )


def factored(expression: sp.Expr) -> sp.Expr:
    """Return the expression factored, in the same time whenever it is asked.

    SymPy factors at points that it draws, and an unlucky one costs a hundred times as much.
    """
    before = rng.getstate()
    rng.seed(0)
    try:
        return sp.factor(expression)
    finally:
        rng.setstate(before)


def number_is_nonnegative(number: sp.Expr) -> bool:
    """Decide the sign of a rational number, or of a rational plus one square root.

    Examples
    --------
    >>> number_is_nonnegative(7 - sp.sqrt(48)), number_is_nonnegative(7 - sp.sqrt(50))
    (True, False)
    """
    rational, rest = number.as_coeff_Add()
    square = sp.expand(rest**2)
    if not (rational.is_Rational and square.is_Rational and square >= 0):
        return False
    root_is_positive = bool(rest.as_coeff_Mul()[0] >= 0)
    if (rational >= 0) == root_is_positive:
        return root_is_positive
    larger = square if root_is_positive else rational**2
    return bool(larger >= (rational**2 if root_is_positive else square))


def _shown(expression: sp.Expr, facts: Sequence[sp.Expr]) -> bool:
    if not expression.free_symbols:
        return number_is_nonnegative(expression)
    return _by_form(expression, facts) or _by_facts(expression, facts)


def _by_form(expression: sp.Expr, facts: Sequence[sp.Expr]) -> bool:
    if isinstance(expression, sp.Symbol):
        return bool(expression.is_extended_nonnegative)
    if isinstance(expression, sp.Add | sp.Min | sp.Max):
        of_parts = any if isinstance(expression, sp.Max) else all
        return of_parts(_shown(part, facts) for part in _parts(expression))
    if isinstance(expression, sp.Mul):
        return _product(expression, facts)
    if isinstance(expression, sp.Pow) and expression.exp.is_extended_real:
        even = bool(expression.exp.is_even and expression.base.is_extended_real)
        return even or _shown(expression.base, facts)
    return False


def _product(expression: sp.Mul, facts: Sequence[sp.Expr]) -> bool:
    negative = 0
    for part in _parts(expression):
        if not _shown(part, facts):
            if not _shown_negative(part, facts):
                return False
            negative += 1
    return negative % 2 == 0


def _parts(expression: sp.Basic) -> tuple[sp.Expr, ...]:
    return cast("tuple[sp.Expr, ...]", expression.args)


def _shown_negative(part: sp.Expr, facts: Sequence[sp.Expr]) -> bool:
    can_be = isinstance(part, sp.Add) or not part.free_symbols
    return can_be and _shown(-part, facts)


def _by_facts(expression: sp.Expr, facts: Sequence[sp.Expr]) -> bool:
    """Tell whether it is a fact, or a positive number times what can change a fact's sign."""
    return expression in facts or any(
        _is_positive_multiple(expression, _core(fact)) for fact in facts
    )


@lru_cache(maxsize=256)
def _core(fact: sp.Expr) -> sp.Expr:
    """Return the fact without its positive factors; one that may be zero has to stay."""
    factors = sp.Mul.make_args(factored(fact))
    return sp.expand(sp.Mul(*(part for part in factors if not _is_positive(part))))


def _is_positive(factor: sp.Expr) -> bool:
    if factor.free_symbols:
        return bool(factor.is_extended_positive)
    return factor != 0 and number_is_nonnegative(factor)


def _is_positive_multiple(expression: sp.Expr, core: sp.Expr) -> bool:
    if not core.free_symbols or core.free_symbols != expression.free_symbols:
        return False
    expanded = sp.expand(expression)
    term, coefficient = next(iter(core.as_coefficients_dict().items()))
    ratio = expanded.as_coefficients_dict()[term] / coefficient
    return bool(ratio > 0) and sp.expand(expanded - ratio * core) == 0
