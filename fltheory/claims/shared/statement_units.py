"""The units of a whole statement: bound, hypotheses and definitions."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from fltheory.claims.statement import Statement
from fltheory.grammar.units import UnitFlag, Units, unit_of


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
    units, formulas = statement.unit_formulas()
    return tuple(
        StatementFlag(place, flag) for place, formula in formulas for flag in _flags(formula, units)
    )


def _flags(formula: sp.Basic, units: Units) -> tuple[UnitFlag, ...]:
    found = unit_of(formula, units)
    return found if isinstance(found, tuple) else ()
