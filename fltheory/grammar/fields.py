"""Checks of a statement's fields when it is constructed.

Without these checks, a misspelt word could become a number far from its origin and change a
verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

import sympy as sp

from fltheory import validation
from fltheory.derivations.derivation import Derivation
from fltheory.grammar.family import Family
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.refutation import Refutation, StatementKind
from fltheory.grammar.symbols import Symbol

Check = Callable[[str, Any], None]


def expression(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is a SymPy expression."""
    validation.instance_of(name, value, sp.Expr, "a SymPy expression (a number by sympify)")


def real_expression(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is a SymPy expression that may be a real number."""
    expression(name, value)
    if value.has(sp.I, sp.zoo):
        raise ValueError(f"{name} must be a real number, got {value}")


def symbol(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is a SymPy symbol."""
    validation.instance_of(name, value, sp.Symbol, "a SymPy symbol")


def must_be(*kinds: type) -> Check:
    """Return a check that a value is an instance of one of ``kinds``."""
    names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
    return lambda name, value: validation.instance_of(name, value, kinds, names)


_CHECKS: Mapping[str, Check] = {
    "id": validation.text,
    "reading": validation.text,
    "title": must_be(str),
    "source": must_be(str),
    "note": must_be(str),
    "kind": must_be(StatementKind),
    "refutations": partial(validation.tuple_of, kind=Refutation),
    "bound": real_expression,
    "order": expression,
    "variable": symbol,
    "hypotheses": partial(validation.tuple_of, kind=Hypothesis),
    "definitions": partial(validation.mapping_of, keys=sp.Symbol, values=sp.Expr),
    "domain": partial(validation.is_callable, arguments=1),
    "symbols": partial(validation.tuple_of, kind=sp.Symbol),
    "read_as": partial(validation.mapping_of, keys=Symbol, values=Symbol),
    "tightest": partial(validation.mapping_of, keys=Symbol, values=Symbol),
    "observe": partial(validation.is_callable, arguments=1),
    "grid": partial(validation.is_callable, arguments=1),
    "schedule": partial(validation.is_callable, arguments=2),
    "derivation": must_be(Derivation, type(None)),
    "family": must_be(Family, type(None)),
}


def check_fields(owner: Any, of: str, **further: Check) -> None:
    """Raise ValueError unless every field of ``owner`` has the type that belongs to its name.

    Parameters
    ----------
    owner : dataclass
    of : str
        Name of the owner in messages.
    further : callable
        Checks of fields specific to this owner; they take the name and the value.
    """
    checks = {**_CHECKS, **further}
    for item in fields(owner):
        if item.name in checks:
            checks[item.name](f"{item.name} of {of}", getattr(owner, item.name))
    if hasattr(owner, "refutations"):
        _check_refutations(owner, of)


def _check_refutations(statement: Any, of: str) -> None:
    """Raise ValueError for a fault mended by its own reading, or shown by an unknown regime.

    Whether its regimes are really refuted is left to the record of verdicts, because nothing is run
    here.
    """
    for item in statement.refutations:
        if item.reading == statement.reading:
            raise ValueError(
                f"reading that repairs {of} must differ from its own reading, got {item.reading!r}"
            )
        unknown = [name for name in item.regimes if name not in statement.regimes]
        if unknown:
            raise ValueError(
                f"regimes of a refutation of {of} must be among its own "
                f"({', '.join(map(repr, statement.regimes))}), got {unknown[0]!r}"
            )


def regimes_of(kind: type) -> Check:
    """Return a check of regimes: a mapping of names to objects of ``kind``."""

    def check(name: str, value: Any) -> None:
        validation.mapping_of(name, value, str, kind)
        for key in value:
            validation.text(f"a name in {name}", key)

    return check


def check_meanings(statement: Any, of: str) -> None:
    """Raise ValueError unless every symbol of a statement's formulas has a meaning."""
    formulas = [
        getattr(statement, "bound", sp.Integer(0)),
        *(item.condition for item in statement.hypotheses),
        *statement.definitions.values(),
    ]
    of_rounds = {item.symbol for item in statement.round_symbols}
    used = {symbol for formula in formulas for symbol in formula.free_symbols}
    missing = used - of_rounds - set(statement.meanings) - set(statement.definitions)
    if missing:
        names = ", ".join(sorted(map(str, missing)))
        raise ValueError(
            f"symbols of {of} must each have a meaning, got {names} without one: declare each with "
            "fltheory.theorems.symbol"
        )
