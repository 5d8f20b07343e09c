"""Which statements a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fltheory.theorems import Statement


def in_readings(theorem: str, reading: str | None) -> list[Statement]:
    """Return a theorem in the reading that was asked for, or in all of them."""
    from fltheory import theorems as registry

    readings = (reading,) if reading else registry.readings(theorem)
    return [registry.get(theorem, name) for name in readings]
