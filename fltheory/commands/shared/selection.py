"""Which statements, or which log with which sizes of its clients, a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fltheory.claims.statement import Statement
    from fltheory.logs import AvailabilityLog
    from fltheory.validation import FloatArray


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


def deployment(
    log: Path, sizes: Path | None, round_length: float | None, columns: str | None
) -> tuple[AvailabilityLog, FloatArray | None]:
    """Return a log with all its clients, and their sizes if a file of them is given."""
    from fltheory.logs import read_log
    from fltheory.weights.sizes_file import read_sizes

    named = None if columns is None else _named_columns(columns)
    record = read_log(log, round_length=round_length, columns=named)
    return (record, None) if sizes is None else read_sizes(sizes, record)


def _named_columns(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name and column for name, _, column in pairs):
        raise ValueError(f"columns must be like client=user,from=login,to=logout, got {text!r}")
    return {name.strip(): column.strip() for name, _, column in pairs}
