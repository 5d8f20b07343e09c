"""The units of a whole statement: bound, hypotheses and definitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from fltheory.theorems.learning_claim import DecayClaim, LearningClaim
from fltheory.theorems.statement import PointClaim, RateClaim, Statement, Theorem
from fltheory.theorems.units import UnitFlag, Units, unit_of


@dataclass(frozen=True)
class StatementFlag:
    """Where in a statement units do not fit, and how."""

    place: str
    flag: UnitFlag

    def __str__(self) -> str:
        return f"{self.place}: {self.flag}"


def unit_flags(statement: Statement) -> tuple[StatementFlag, ...]:
    """Return what does not fit in a theorem, or in the conditions of a corollary's own.

    Statements on learnability are about probabilities and counts, which have no unit.

    Raises
    ------
    ValueError
        Where the theorem gives no unit for a symbol.
    """
    if isinstance(statement, LearningClaim | DecayClaim):
        return ()
    if isinstance(statement, RateClaim):
        units, formulas = statement.theorem.units, _formulas_of_claim(statement)
    else:
        units, formulas = _with_quantity(statement), _formulas_of_theorem(statement)
    return tuple(
        StatementFlag(place, flag) for place, formula in formulas for flag in _flags(formula, units)
    )


def _formulas_of_claim(claim: RateClaim) -> Iterator[tuple[str, sp.Basic]]:
    for axis in claim.axes:
        for hypothesis in axis.hypotheses:
            yield f"hypothesis '{hypothesis.name}'", hypothesis.condition


def _formulas_of_theorem(theorem: Theorem | PointClaim) -> Iterator[tuple[str, sp.Basic]]:
    if theorem.quantity.unit is None:
        yield "bound", theorem.bound
    else:
        yield "bound", sp.Le(sp.Symbol(theorem.quantity.text), theorem.bound, evaluate=False)
    for hypothesis in theorem.hypotheses:
        yield f"hypothesis '{hypothesis.name}'", hypothesis.condition
    for symbol, expression in theorem.definitions.items():
        yield f"definition of {symbol}", sp.Eq(symbol, expression, evaluate=False)


def _with_quantity(theorem: Theorem | PointClaim) -> Units:
    """Return the units, with the bounded quantity as one more symbol."""
    quantity = theorem.quantity
    if quantity.unit is None:
        return theorem.units
    return {**theorem.units, sp.Symbol(quantity.text): quantity.unit}


def _flags(formula: sp.Basic, units: Units) -> tuple[UnitFlag, ...]:
    found = unit_of(formula, units)
    return found if isinstance(found, tuple) else ()
