"""Repairs: a printed statement with what its own proof asks for, change by change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from fltheory.derivations.derivation import Derivation
from fltheory.grammar.refutation import Weight

S = TypeVar("S", bound=Any)


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
    weight : Weight or None
        How much the fault weighs that it mends; None where nothing is at fault and the statement
        only applies more widely.
    """

    about: str
    source: str
    changes: Mapping[str, Any] = field(hash=False)
    weight: Weight | None = None

    @property
    def kind(self) -> str:
        """The weight's word, for a reader."""
        return "so that it applies" if self.weight is None else self.weight.label


@dataclass(frozen=True)
class Repair(Generic[S]):
    """A printed statement and the changes that mend it.

    Attributes
    ----------
    mends : tuple of Mend
    build : callable
        Makes the statement; without arguments it is the printed one.
    derivation : Derivation, optional
        The last steps of the proof of the statement with all mends.
    """

    mends: tuple[Mend, ...]
    build: Callable[..., S]
    derivation: Derivation | None = None

    def theorem(self) -> S:
        """Return the statement with all mends."""
        names = "; ".join(f"{mend.about} [{mend.source}]" for mend in self.mends)
        note = f"The printed statement with what its proof needs: {names}."
        return replace(
            self._with(self.mends),
            reading="repaired",
            note=note,
            repair=self,
            derivation=self.derivation,
        )

    def without(self, mend: Mend) -> S:
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

    def _with(self, mends: tuple[Mend, ...] | list[Mend]) -> S:
        changes = {name: value for mend in mends for name, value in mend.changes.items()}
        return replace(self.build(**changes), derivation=None)
