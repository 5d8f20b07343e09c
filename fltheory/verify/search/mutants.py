"""Mutants: theorems with one planted change each, to measure how strong the search is.

One at a time, every constant is divided, every sign, exponent and reduction over rounds is changed,
and every hypothesis is dropped. Mutants are made from the statement itself, so a new theorem has
its own automatically.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import sympy as sp

from fltheory.grammar.quantities import Reduction
from fltheory.theorems import Hypothesis, Theorem, get

DIVISORS = (2, 10, 100)

_OTHER_REDUCTIONS: Mapping[Reduction, tuple[Reduction, ...]] = {
    "mean": ("min", "max"),
    "min": ("max",),
    "max": ("min",),
    "every": ("last",),
    "last": ("max",),
}


@dataclass(frozen=True, eq=False)
class Mutant:
    """A theorem with one change.

    Attributes
    ----------
    about : str
        The change and its place, in words.
    theorem : Theorem
    """

    about: str
    theorem: Theorem


def mutants(theorem: Theorem) -> tuple[Mutant, ...]:
    """Return all mutants of a theorem, without duplicates and unchanged ones."""
    seen = {_content(theorem)}
    places: Counter[str] = Counter()
    kept = []
    for about, changed in _changes(theorem):
        places[about] += 1
        content = _content(changed)
        if content in seen:
            continue
        seen.add(content)
        place = f" (place {places[about]})" if places[about] > 1 else ""
        reading = f"{theorem.reading}, {about}{place}"
        kept.append(Mutant(f"{about}{place}", replace(changed, reading=reading)))
    return tuple(kept)


@lru_cache(maxsize=32)
def registered_mutants(identifier: str, reading: str) -> tuple[Mutant, ...]:
    """Return all mutants of a registered theorem, which must be an inequality along a run."""
    return mutants(cast("Theorem", get(identifier, reading)))


def _content(theorem: Theorem) -> tuple[object, ...]:
    conditions = tuple(hypothesis.condition for hypothesis in theorem.hypotheses)
    reductions = tuple(item.reduction for item in theorem.round_symbols)
    return theorem.bound, conditions, reductions, theorem.quantity.reduction


def _changes(theorem: Theorem) -> Iterator[tuple[str, Theorem]]:
    for about, bound in _variants(theorem.bound):
        yield f"bound: {about}", replace(theorem, bound=bound)
    for index, hypothesis in enumerate(theorem.hypotheses):
        before, after = theorem.hypotheses[:index], theorem.hypotheses[index + 1 :]
        dropped = replace(theorem, hypotheses=before + after)
        yield f"{hypothesis.name}: dropped", dropped
        for about, changed in _changed_conditions(hypothesis):
            changed_theorem = replace(theorem, hypotheses=(*before, changed, *after))
            yield f"{hypothesis.name}: {about}", changed_theorem
    for index, item in enumerate(theorem.round_symbols):
        for reduction in _OTHER_REDUCTIONS[item.reduction]:
            symbols = list(theorem.round_symbols)
            symbols[index] = replace(item, reduction=reduction)
            about = f"{item.symbol}: {item.reduction} -> {reduction}"
            yield about, replace(theorem, round_symbols=tuple(symbols))
    for reduction in _OTHER_REDUCTIONS[theorem.quantity.reduction]:
        quantity = replace(theorem.quantity, reduction=reduction, weights=None)
        about = f"{theorem.quantity.text}: {theorem.quantity.reduction} -> {reduction}"
        yield about, replace(theorem, quantity=quantity)


def _changed_conditions(hypothesis: Hypothesis) -> Iterator[tuple[str, Hypothesis]]:
    condition = hypothesis.condition
    for side, other in ((condition.lhs, "right"), (condition.rhs, "left")):
        if side.is_Symbol or side.is_number:
            continue
        for about, variant in _variants(side):
            sides = (variant, condition.rhs) if other == "right" else (condition.lhs, variant)
            changed = condition.func(*sides, evaluate=False)
            yield about, replace(hypothesis, condition=changed)


def _variants(expression: sp.Basic) -> Iterator[tuple[str, sp.Expr]]:
    """Yield variants of an expression, each with one change, and a text on the change."""
    if not expression.is_Add:
        yield from _divided(expression)
    yield from _inner_variants(expression)


def _inner_variants(expression: sp.Basic) -> Iterator[tuple[str, sp.Expr]]:
    if isinstance(expression, sp.Add):
        yield from _changed_terms(expression)
    elif isinstance(expression, sp.Pow) and not expression.base.is_number:
        for exponent in (expression.exp + 1, expression.exp - 1):
            yield f"exponent of {expression} -> {exponent}", expression.base**exponent
    elif isinstance(expression, sp.Max | sp.Min):
        other = sp.Min if isinstance(expression, sp.Max) else sp.Max
        yield f"{expression} -> {other.__name__}", other(*expression.args)
    for index, argument in enumerate(expression.args):
        for about, variant in _inner_variants(argument):
            yield about, _with_argument(expression, index, variant)


def _changed_terms(total: sp.Add) -> Iterator[tuple[str, sp.Expr]]:
    for index, term in enumerate(total.args):
        for about, variant in (*_divided(term), (f"sign of {term}", -1 * term)):
            yield f"{about}, in {total}", _with_argument(total, index, variant)


def _with_argument(expression: sp.Basic, index: int, argument: sp.Expr) -> sp.Expr:
    arguments = list(expression.args)
    arguments[index] = argument
    changed: sp.Expr = expression.func(*arguments)
    return changed


def _divided(term: Any) -> Iterator[tuple[str, sp.Expr]]:
    """Divide a term's constant, or its denominator's if only that is not one."""
    above, below = (part.as_coeff_Mul()[0] for part in sp.fraction(term))
    for divisor in DIVISORS:
        if abs(above) == 1 and below != 1:
            yield f"denominator of {term} / {divisor}", term * divisor
        else:
            yield f"{term} / {divisor}", term / divisor
