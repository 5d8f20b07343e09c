"""Checks of a statement's fields, made when it is constructed.

A misspelt word would otherwise come out as some number, far from its place, and turn a verdict.

A statement's mappings use its own symbols and no others: a key of ``quantities`` or ``meanings`` is
a SymPy symbol, and one of another name, or of the same name with other assumptions, is another
symbol and would be left out without a word.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import partial
from typing import Any

import sympy as sp

from fltheory import validation
from fltheory.derivations.derivation import Derivation
from fltheory.grammar.family import Family
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.refutation import Refutation, StatementKind
from fltheory.grammar.symbols import Symbol
from fltheory.grammar.units import Unit

Check = Callable[[str, Any], None]

_NAMES = """
    L mu sigma least_sigma server_sigma sigma_G Gamma n_clients rounds local_steps
    client_lr server_lr assist_lr q option cutoff is_warm participants least_availability
    largest_availability distance_from_uniform has_memory dependence
    squared_distance excess_loss control_gap total_weight least_weight mean_weight
    mean_squared_weight biased_squared_distance biased_Gamma chain_states chain_rate chain_factor
    chain_onset start_distance radius reach_of_optima reach_of_minimisers reach_of_start
    largest_gradient largest_loss_change first_step step_decay step_sum step_square_sum
    inverse_square_sum delayed_square_sum delayed_log_sum weight_convexity chance_of_absence
    cited_chain_factor cited_delayed_square_sum cited_delayed_log_sum
    summand_curvature share_curvature chi_square total_variation tightest_excess
    tightest_biased_excess weight_inversion weight_multiplier run_square_sum run_unmixed_sum
    run_delay_sum weight_error_ratio late_weight_error_ratio weight_error_share mean_weight_error
    mean_absence mean_squared_absence mean_lasting_absence harmonic_sum
"""
NUMBERS_OF_SETTINGS = frozenset(_NAMES.split())
"""Numbers that the checker of certificates works out, which ``quantities`` may be made of."""
_FUNCTIONS = frozenset(("sqrt", "log", "Min", "Max"))


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
    "meanings": partial(validation.mapping_of, keys=sp.Symbol, values=str),
    "definitions": partial(validation.mapping_of, keys=sp.Symbol, values=sp.Expr),
    "quantities": partial(validation.mapping_of, keys=sp.Symbol, values=str),
    "units": partial(validation.mapping_of, keys=sp.Symbol, values=Unit),
    "constants": partial(validation.is_callable, arguments=1),
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
    if hasattr(owner, "read_symbols"):
        owner.read_symbols()
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


def check_symbols(statement: Any, of: str) -> None:
    """Raise ValueError for meanings or quantities that are not of the statement's symbols.

    Several statements of a paper may share one mapping: what a statement has no symbol for is taken
    for a slip only where one of its own, of much the same name, is left without.
    """
    formulas = _symbols_in_formulas(statement)
    definitions = set(statement.definitions)
    _check_misspelt_meanings(statement, of)
    quantities: Mapping[sp.Symbol, str] = getattr(statement, "quantities", {})
    known = formulas | definitions | set(statement.meanings)
    without = formulas - set(quantities) - definitions - _of_rounds(statement)
    for symbol in sorted(set(quantities) - known, key=str):
        if str(symbol) in map(str, known):
            raise ValueError(
                f"quantities of {of} must be of its own symbols, got {symbol} of other assumptions "
                f"than its {symbol}: use the very same symbol"
            )
        if near := _nearest(symbol, without):
            raise ValueError(
                f"quantities of {of} must be of its own symbols, got {symbol}, which is none{near}"
            )
    for symbol, text in quantities.items():
        _check_formula(f"quantities of {of}", symbol, text)


def check_meanings(statement: Any, of: str) -> None:
    """Raise ValueError unless every symbol of a statement's formulas has a meaning."""
    missing = _without_meaning(statement)
    if missing:
        raise ValueError(f"meanings of {of} must say what {_said(missing)} is, got none")


def _check_misspelt_meanings(statement: Any, of: str) -> None:
    spare = set(statement.meanings) - _symbols_in_formulas(statement)
    for symbol in sorted(_without_meaning(statement), key=str):
        if str(symbol) in map(str, spare):
            raise ValueError(
                f"meanings of {of} must be of its own symbols, got {symbol} of other assumptions "
                f"than its {symbol}: use the very same symbol"
            )
        if near := _nearest(symbol, spare):
            raise ValueError(f"meanings of {of} must say what {symbol} is, got none{near}")


def _without_meaning(statement: Any) -> set[sp.Symbol]:
    formulas = _symbols_in_formulas(statement) - _of_rounds(statement)
    return formulas - set(statement.meanings) - set(statement.definitions)


def _symbols_in_formulas(statement: Any) -> set[sp.Symbol]:
    formulas = [
        getattr(statement, "bound", sp.Integer(0)),
        *(item.condition for item in statement.hypotheses),
        *statement.definitions.values(),
    ]
    return {symbol for formula in formulas for symbol in formula.free_symbols}


def _of_rounds(statement: Any) -> set[sp.Symbol]:
    return {item.symbol for item in getattr(statement, "round_symbols", ())}


def _said(symbols: Iterable[sp.Symbol]) -> str:
    return ", ".join(sorted(map(str, symbols)))


def _nearest(name: Any, others: Iterable[Any]) -> str:
    """Return which of some names was probably meant, in brackets; nothing if none is alike."""
    by_letters = {_letters(other): str(other) for other in others}
    wanted = _letters(name)
    # Of names so short, no other letters are a slip.
    long_ones = [letters for letters in by_letters if min(len(letters), len(wanted)) > 2]
    same = [wanted] if wanted in by_letters else []
    near = same or get_close_matches(wanted, long_ones, n=1, cutoff=0.7)
    return f" (nearest: {by_letters[near[0]]})" if near else ""


def _letters(name: Any) -> str:
    return str(name).lower().replace("_", "")


def _check_formula(name: str, symbol: sp.Symbol, text: str) -> None:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"{name} must be formulas, say 'sqrt(squared_distance)', got {text!r} for {symbol}"
        ) from error
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for unknown in sorted(used - NUMBERS_OF_SETTINGS - _FUNCTIONS):
        near = _nearest(unknown, NUMBERS_OF_SETTINGS | _FUNCTIONS)
        raise ValueError(
            f"{name} must be numbers of a setting that certificates know, got {unknown!r} for "
            f"{symbol}{near}; help(fltheory.theorems.Theorem) lists them"
        )
