"""Symbolic checks of proof steps, with a rational counterexample for steps that fail.

Some expressions are nonnegative by their form alone. No number is approximated: surds are compared
through their squares.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, cast

import sympy as sp
from sympy.core.random import rng
from sympy.core.relational import GreaterThan, Relational, StrictGreaterThan

from fltheory.derivations.derivation import (
    Derivation,
    Equal,
    FiniteLimit,
    Implied,
    Step,
    StepOutcome,
    StepResult,
    Substitution,
)
from fltheory.long_work.progress import Progress


def manifestly_nonnegative(expression: sp.Expr, facts: Sequence[sp.Expr] = ()) -> bool:
    """Return whether the expression is built from nonnegative parts by sums, products and powers.

    Parameters
    ----------
    expression : sympy expression
        The expression; it is tried as given, factored and expanded.
    facts : sequence of sympy expressions
        Expressions known to be nonnegative, besides the assumptions on symbols.

    Returns
    -------
    bool
        True only if the expression is nonnegative wherever it is defined and all facts are
        nonnegative; False means only that this was not shown.

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
    """Return the expression factored, with reproducible running time.

    SymPy's factoring uses random points, and an unlucky one costs a hundred times as much.
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
    """Return whether the expression is a fact, or a positive multiple of a fact's core."""
    return expression in facts or any(
        _is_positive_multiple(expression, _core(fact)) for fact in facts
    )


@lru_cache(maxsize=256)
def _core(fact: sp.Expr) -> sp.Expr:
    """Return the fact without its positive factors; factors that may be zero are kept."""
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
    """Yield random points with small fractions that satisfy the symbols' assumptions.

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
    """Return an expression's exact value; infinite or undefined on division by zero."""
    return expression.xreplace(dict(point))


def holds_at(relation: Relational, point: Point) -> bool | None:
    """Decide ``left <= right`` and the like with exact fractions.

    A side with a square root is compared through its square if both sides are nonnegative. The
    result is None if that is not enough to decide, or if a side is undefined.

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


_POINTS = 5000
_POINTS_OF_LIMITS = 5
_SEED = 0
_NOT_FINITE = (sp.oo, -sp.oo, sp.zoo, sp.nan, sp.Limit, sp.AccumBounds)


def check_derivation(
    derivation: Derivation, *, progress: Progress | None = None
) -> tuple[StepResult, ...]:
    """Check every step of a derivation, each on its own.

    Parameters
    ----------
    derivation : Derivation
    progress : callable, optional
        Called with (steps checked, steps, the next step).
    """
    results: list[StepResult] = []
    for step in derivation.steps:
        if progress is not None:
            progress(len(results), len(derivation.steps), step.label)
        results.append(check_step(step))
    return tuple(results)


def check_step(step: Step) -> StepResult:
    """Check one step in exact arithmetic; an equality need hold only where its sides are defined.

    Examples
    --------
    >>> x = sp.Symbol("x", positive=True)
    >>> check_step(Step("one", "(x+1)^2 = x^2+1", Equal((x + 1) ** 2, x**2 + 1))).difference
    2*x
    """
    claim = step.claim
    if isinstance(claim, Equal):
        return _check_equal(step, claim)
    if isinstance(claim, Implied):
        return _check_implied(step, claim)
    return _check_limit(step, claim)


def _check_equal(step: Step, claim: Equal) -> StepResult:
    left, right = (side.xreplace(dict(claim.under)) for side in (claim.left, claim.right))
    difference = left - right
    if _is_zero(difference):
        return StepResult(step, StepOutcome.FOLLOWS)
    shown = factored(difference)
    domain = [_replaced(relation, claim.under) for relation in claim.domain]
    symbols = left.free_symbols.union(*(item.free_symbols for item in (right, *domain)))
    for point in rational_points(symbols, _POINTS, _SEED):
        value = value_at(difference, point)
        inside = all(holds_at(condition, point) for condition in domain)
        if inside and value.is_Rational and value != 0:
            return StepResult(step, StepOutcome.DIFFERS, shown, point)
    return StepResult(step, StepOutcome.UNSHOWN, shown)


def _check_implied(step: Step, claim: Implied) -> StepResult:
    claimed = _replaced(claim.claimed, claim.under)
    given = [_replaced(relation, claim.under) for relation in claim.given]
    domain = [_replaced(relation, claim.under) for relation in claim.domain]
    multipliers = [factor.xreplace(dict(claim.under)) for factor in claim.multipliers]
    if len(multipliers) == len(given) and _certified(claimed, given, domain, multipliers):
        return StepResult(step, StepOutcome.FOLLOWS)
    conditions = [*domain, *given]
    symbols = claimed.free_symbols.union(*(relation.free_symbols for relation in conditions))
    for point in rational_points(symbols, _POINTS, _SEED):
        if holds_at(claimed, point) is False and all(
            holds_at(condition, point) for condition in conditions
        ):
            return StepResult(step, StepOutcome.FAILS, value_at(gap(claimed), point), point)
    return StepResult(step, StepOutcome.UNSHOWN)


def _certified(
    claimed: Relational,
    given: list[Relational],
    domain: list[Relational],
    multipliers: list[sp.Expr],
) -> bool:
    facts = [gap(condition) for condition in (*domain, *given)]
    if not all(manifestly_nonnegative(factor, facts) for factor in multipliers):
        return False
    pairs = zip(multipliers, given, strict=True)
    rest = gap(claimed) - sp.Add(*(factor * gap(relation) for factor, relation in pairs))
    return _is_zero(rest) or manifestly_nonnegative(rest, facts)


def _check_limit(step: Step, claim: FiniteLimit) -> StepResult:
    limit = _limit(claim.expression, claim.variables)
    if limit is not None:
        return StepResult(step, StepOutcome.FOLLOWS, limit)
    others = claim.expression.free_symbols - set(claim.variables)
    for point in rational_points(others, _POINTS_OF_LIMITS, _SEED):
        value = claim.expression.xreplace(dict(point))
        for variable in claim.variables:
            value = sp.limit(value, variable, sp.oo)
        if value in (sp.oo, -sp.oo):
            return StepResult(step, StepOutcome.FAILS, value, point)
    return StepResult(step, StepOutcome.UNSHOWN)


def _limit(expression: sp.Expr, variables: tuple[sp.Symbol, ...]) -> sp.Expr | None:
    """Return the limit if the limit of every term is finite, else None."""
    for variable in variables:
        terms = sp.Add.make_args(sp.expand(expression))
        limits = [sp.limit(term, variable, sp.oo) for term in terms]
        if any(limit.has(*_NOT_FINITE) for limit in limits):
            return None
        expression = sp.Add(*limits)
    return expression


def gap(relation: Relational) -> sp.Expr:
    """Return the side claimed to be larger, minus the other."""
    if isinstance(relation, GreaterThan | StrictGreaterThan):
        return relation.lhs - relation.rhs
    return relation.rhs - relation.lhs


def _replaced(relation: Relational, under: Substitution) -> Relational:
    """Substitute in a relation without evaluating it."""
    sides = (side.xreplace(dict(under)) for side in (relation.lhs, relation.rhs))
    return relation.func(*sides, evaluate=False)


def _is_zero(expression: sp.Expr) -> bool:
    return bool(sp.expand(sp.fraction(sp.together(expression))[0]) == 0)
