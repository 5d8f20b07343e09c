"""Which statements a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fltheory.theorems import Statement


def selected(names: Sequence[str]) -> list[Statement]:
    """Return the statements whose id is one of ``names`` or begins with it and a slash."""
    from fltheory import theorems as registry

    if not names:
        return list(registry.registered())
    chosen = []
    for name in names:
        matching = [s for s in registry.registered() if s.id == name or s.id.startswith(f"{name}/")]
        if not matching:
            registry.readings(name)
        chosen += [statement for statement in matching if statement not in chosen]
    return chosen


def in_readings(theorem: str, reading: str | None) -> list[Statement]:
    """Return a theorem in the reading that was asked for, or in all of them."""
    from fltheory import theorems as registry

    readings = (reading,) if reading else registry.readings(theorem)
    return [registry.get(theorem, name) for name in readings]
