"""Checks of a statement's fields, made when it is constructed.

A misspelt word would otherwise come out as some number, far from its place, and turn a verdict.
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
from fltheory.grammar.own_symbols import check_symbols
from fltheory.grammar.refutation import Refutation, StatementKind
from fltheory.grammar.units import Unit

Check = Callable[[str, Any], None]


def expression(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is a SymPy expression."""
    validation.instance_of(name, value, sp.Expr, "a SymPy expression (a number by sympify)")


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
    "bound": expression,
    "order": expression,
    "variable": symbol,
    "hypotheses": partial(validation.tuple_of, kind=Hypothesis),
    "meanings": partial(validation.mapping_of, keys=sp.Symbol, values=str),
    "definitions": partial(validation.mapping_of, keys=sp.Symbol, values=sp.Expr),
    "quantities": partial(validation.mapping_of, keys=sp.Symbol, values=str),
    "units": partial(validation.mapping_of, keys=sp.Symbol, values=Unit),
    "constants": validation.is_callable,
    "observe": validation.is_callable,
    "grid": validation.is_callable,
    "schedule": validation.is_callable,
    "derivation": must_be(Derivation, type(None)),
    "family": must_be(Family, type(None)),
}


def check_fields(owner: Any, of: str, **further: Check) -> None:
    """Raise ValueError unless every field of ``owner`` is what its name says it is.

    Parameters
    ----------
    owner : dataclass
    of : str
        Whose fields they are, for messages.
    further : callable
        Checks of fields that are this owner's alone: they take the name and the value.
    """
    checks = {**_CHECKS, **further}
    for item in fields(owner):
        if item.name in checks:
            checks[item.name](f"{item.name} of {of}", getattr(owner, item.name))
    if hasattr(owner, "refutations"):
        _check_refutations(owner, of)
    if hasattr(owner, "meanings"):
        check_symbols(owner, of)


def _check_refutations(statement: Any, of: str) -> None:
    """Raise ValueError for a fault that its own reading mends, or that an unknown regime shows.

    That its regimes are refuted is for the record of verdicts to say: nothing is run here.
    """
    for item in statement.refutations:
        if item.reading == statement.reading:
            raise ValueError(
                f"reading that mends {of} must be another one than its own, got {item.reading!r}"
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
