"""Repairs: a printed statement with the fewest changes that its own proof asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fltheory.theorems.statement import Theorem


@dataclass(frozen=True)
class Mend:
    """One change to a printed statement.

    Attributes
    ----------
    about : str
        What changes, in a few words.
    source : str
        The equation of the proof that asks for it.
    changes : mapping
        Keyword arguments of the repair's ``build``.
    """

    about: str
    source: str
    changes: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Repair:
    """A printed statement and the changes that mend it.

    Attributes
    ----------
    mends : tuple of Mend
    build : callable
        Makes the statement; without arguments it is the printed one.
    """

    mends: tuple[Mend, ...]
    build: Callable[..., Theorem]

    def theorem(self) -> Theorem:
        """Return the statement with all mends."""
        names = "; ".join(f"{mend.about} [{mend.source}]" for mend in self.mends)
        note = f"The printed statement with the fewest changes that its proof asks for: {names}."
        return replace(self._with(self.mends), reading="repaired", note=note, repair=self)

    def without(self, mend: Mend) -> Theorem:
        """Return the statement with all mends but one.

        Raises
        ------
        ValueError
            If it is none of this repair's mends.
        """
        if mend not in self.mends:
            raise ValueError(f"mend must be one of this repair's, got {mend.about!r}")
        others = [other for other in self.mends if other is not mend]
        return replace(self._with(others), reading=f"repaired, but not: {mend.about}")

    def _with(self, mends: tuple[Mend, ...] | list[Mend]) -> Theorem:
        changes = {name: value for mend in mends for name, value in mend.changes.items()}
        return replace(self.build(**changes), derivation=None)
