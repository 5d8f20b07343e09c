"""Verdicts about a whole class of client losses."""

from __future__ import annotations

from enum import Enum

from fltheory.evidence.verdict import Scope


class ClassOutcome(Enum):
    """Verdicts about a whole class of clients; the value is what each means."""

    PROVED = "for every client loss of the class, by a certificate that the checker accepts"
    REFUTED = "broken by clients of the class"
    UNDECIDED = "neither a proof nor clients that break it were found"

    @property
    def scope(self) -> Scope:
        """What it speaks of."""
        return Scope.CLASS
