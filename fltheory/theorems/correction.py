"""A refuted statement, its correction, and the changes between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from fltheory.claims.statement import Statement
from fltheory.grammar.assertion import Assertion
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.theorems import registry


@dataclass(frozen=True)
class Change:
    """One change between a printed statement and the corrected one.

    Attributes
    ----------
    about : str
        The change, and where the paper shows it.
    kind : str
        The weight of the fault that the change repairs: misprint, missing hypothesis or gap.
    why : str
        The fault, in one to three sentences; empty if ``about`` says it.
    parts : frozenset
        Conditions and summands of the corrected statement that come from this change, if known.
    """

    about: str
    kind: str
    why: str = ""
    parts: frozenset[sp.Basic] = frozenset()


@dataclass(frozen=True)
class Correction:
    """A printed statement, the one in which all its faults are repaired, and the changes.

    Attributes
    ----------
    printed, corrected : Statement
    changes : tuple of Change
    """

    printed: Statement
    corrected: Statement
    changes: tuple[Change, ...]

    def marks(self, part: sp.Basic) -> str:
        """Return the numbers of the changes that introduced a part, or ``*`` if unknown.

        A part is a condition, a left side, a summand of a right side or a definition. Parts that
        are as printed have no mark.
        """
        if part in parts_of(self.printed):
            return ""
        if len(self.changes) == 1:
            return "1"
        numbers = [str(n) for n, change in enumerate(self.changes, 1) if part in change.parts]
        return ",".join(numbers) or "*"

    def label(self, change: Change) -> str:
        """Return a change's number, or ``*`` if no part of the statement is marked with it."""
        number = str(self.changes.index(change) + 1)
        marks = {mark for part in parts_of(self.corrected) for mark in self.marks(part).split(",")}
        return number if number in marks else "*"

    @property
    def left_out(self) -> tuple[Hypothesis, ...]:
        """Printed hypotheses that the corrected statement does not have in any form."""
        kept = {h.name for h in self.corrected.conditions}
        return tuple(h for h in self.printed.conditions if h.name not in kept)


def correction(identifier: str) -> Correction:
    """Return the correction of a refuted statement.

    It is the ``repaired`` reading if there is one, otherwise the reading that repairs the faults.

    Raises
    ------
    ValueError
        If the id is unknown, the statement is not refuted, or no registered reading repairs its
        faults.
    """
    printed = registry.get(identifier)
    if not printed.refutations:
        raise ValueError(
            f"theorem must have a recorded refutation to be corrected, got {identifier}, which has "
            "none (fltheory falsify searches for one)"
        )
    mending = {fault.reading for fault in printed.refutations} - {""}
    if "repaired" in registry.readings(identifier):
        mending = {"repaired"}
    if len(mending) != 1:
        raise ValueError(f"theorem must have a reading that mends it, got {identifier}")
    corrected = registry.get(identifier, mending.pop())
    return Correction(printed, corrected, _changes(printed, corrected))


def _changes(printed: Statement, corrected: Statement) -> tuple[Change, ...]:
    repair = getattr(corrected, "repair", None)
    if repair is None:
        return tuple(
            Change(fault.change, fault.weight.label, fault.why) for fault in printed.refutations
        )
    whole = parts_of(corrected)
    return tuple(
        Change(
            f"{mend.about}; see {mend.source}",
            mend.kind,
            "",
            whole - parts_of(repair.without(mend)),
        )
        for mend in repair.mends
    )


def parts_of(statement: Statement) -> frozenset[sp.Basic]:
    """Return a statement's conditions, left sides, summands of right sides, and definitions."""
    rights: Iterable[sp.Expr] = (assertion.right for assertion in statement.assertions)
    summands = (term for right in rights for term in sp.Add.make_args(right))
    lefts = (left_part(assertion) for assertion in statement.assertions)
    defined = (definition_part(*item) for item in statement.basis.definitions.items())
    conditions = (h.condition for h in statement.conditions)
    return frozenset((*conditions, *lefts, *summands, *defined))


def left_part(assertion: Assertion) -> sp.Basic:
    """Return a left side as a part of its statement, identified by its text."""
    return sp.Symbol(assertion.left)


def definition_part(symbol: sp.Symbol, term: sp.Expr) -> sp.Basic:
    """Return a definition as a part of its statement."""
    return sp.Eq(symbol, term, evaluate=False)
