"""Which statements a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fltheory.claims.statement import Statement


def the_id(typed: str) -> str:
    """Return the id of the theorem that is meant: what was typed, or the only id that it begins.

    Raises
    ------
    ValueError
        If no id begins so, or several do; the message lists them.
    """
    from fltheory.theorems import registry

    begun = list(dict.fromkeys(statement.id for statement in registry.registered(typed)))
    if typed in begun or len(begun) == 1:
        return typed if typed in begun else begun[0]
    raise ValueError(f"theorem must be one of {', '.join(begun)}, got {typed!r}")


def in_readings(theorem: str, reading: str | None) -> list[Statement]:
    """Return a theorem in the reading that was asked for, or in all of them."""
    from fltheory.theorems import registry

    readings = registry.readings(theorem) if reading is None else (reading,)
    return [registry.get(theorem, name) for name in readings]


def registered_in(reading: str | None, beginnings: Sequence[str] | None) -> tuple[Statement, ...]:
    """Return the statements whose ids begin so (all for none), in one reading if one is named.

    Raises
    ------
    ValueError
        If no id begins so, or none of those statements has the reading.
    """
    from fltheory.theorems import registry

    named = registry.registered(*beginnings or ())
    found = tuple(one for one in named if reading in (None, one.reading))
    if not found:
        known = ", ".join(dict.fromkeys(one.reading for one in named))
        raise ValueError(f"reading must be one of {known}, got {reading!r}")
    return found
