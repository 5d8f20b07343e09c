"""All registered theorems, by id and reading."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from fltheory.theorems import (
    ca_fed,
    ca_fed_weights,
    sa_fl,
    sa_fl_impossibility,
    sa_fl_pac,
    sa_fl_repairs,
)
from fltheory.theorems.statement import Statement

PAPERS = (
    sa_fl.STATEMENTS,
    sa_fl_repairs.STATEMENTS,
    ca_fed.STATEMENTS,
    ca_fed_weights.STATEMENTS,
    sa_fl_impossibility.STATEMENTS,
    sa_fl_pac.STATEMENTS,
)

_BY_NAME: Mapping[tuple[str, str], Statement] = {
    (statement.id, statement.reading): statement for paper in PAPERS for statement in paper
}


def registered() -> tuple[Statement, ...]:
    """Return every registered statement in every reading, in order."""
    return tuple(_BY_NAME.values())


def ids() -> tuple[str, ...]:
    """Return the ids of all registered theorems, in order."""
    return tuple(dict.fromkeys(identifier for identifier, _ in _BY_NAME))


def readings(identifier: str) -> tuple[str, ...]:
    """Return the readings of a theorem.

    Raises
    ------
    ValueError
        For an unknown id; the message lists the near ones.
    """
    found = tuple(reading for known, reading in _BY_NAME if known == identifier)
    if not found:
        near = get_close_matches(identifier, ids(), n=3, cutoff=0.4) or ids()
        raise ValueError(f"id must be a registered theorem ({', '.join(near)}), got {identifier!r}")
    return found


def get(identifier: str, reading: str = "printed") -> Statement:
    """Return a theorem by its id, say ``"sa-fl/5"``, in one of its readings.

    Raises
    ------
    ValueError
        For an unknown id or reading; the message lists those that exist.
    """
    known = readings(identifier)
    if reading not in known:
        raise ValueError(
            f"reading of {identifier} must be one of {', '.join(known)}, got {reading!r}"
        )
    return _BY_NAME[identifier, reading]
