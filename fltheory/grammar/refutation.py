"""Recorded refutations: kinds of statements, reasons why printed ones fail, and mends.

A refuted remark is not a refuted theorem, and a misprint is not a gap in a proof. So a statement
records its rank in the paper, and each fault of a refuted one records where a reader finds it, how
serious it is, and which single change mends it. A repair is the printed statement with the changes
that its own proof requires, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from fltheory import validation
from fltheory.derivations.derivation import Derivation

S = TypeVar("S", bound=Any)


class StatementKind(StrEnum):
    """The rank of a statement in its paper; the value is the word shown to readers.

    Examples
    --------
    >>> StatementKind.LEMMA.is_result, StatementKind.SKETCH.is_result
    (True, False)
    """

    THEOREM = "theorem"
    COROLLARY = "corollary"
    LEMMA = "lemma"
    STEP = "step of a proof"
    SKETCH = "sentence of a proof sketch"
    REMARK = "remark"
    EXAMPLE = "example"
    ASSUMPTION = "assumption"

    @property
    def is_result(self) -> bool:
        """Whether the paper states it as a result: only these count as refuted theorems."""
        return self in (StatementKind.THEOREM, StatementKind.COROLLARY, StatementKind.LEMMA)

    @property
    def with_article(self) -> str:
        """The word with its article.

        Examples
        --------
        >>> StatementKind.REMARK.with_article, StatementKind.ASSUMPTION.with_article
        ('a remark', 'an assumption')
        """
        return f"{'an' if self.value[0] in 'aeiou' else 'a'} {self.value}"


class Weight(StrEnum):
    """How serious a fault is, the least serious first; the value is the sentence shown to readers.

    Examples
    --------
    >>> Weight.heaviest([Weight.GAP, Weight.MISPRINT]).name
    'GAP'
    """

    WORDING = "wording: an informal sentence that is true in the sense intended, but not literally"
    MISPRINT = "misprint: the paper's own argument is right"
    MISSING_HYPOTHESIS = (
        "missing hypothesis: the proof uses a condition that the statement does not state"
    )
    GAP = "gap: a step of the argument fails"

    @property
    def label(self) -> str:
        """The word before the colon."""
        return self.value.partition(":")[0]

    @classmethod
    def heaviest(cls, weights: Iterable[Weight]) -> Weight | None:
        """Return the most serious of some weights, or None if there are none."""
        return max(weights, key=list(cls).index, default=None)


# A sentence ends at a full stop followed by a capital or by nothing, unlike in "Eq. (3)" and "0.5".
_SENTENCE_END = re.compile(r"\.(?=\s+[A-Z]|\s*$)")


@dataclass(frozen=True)
class Refutation:
    """One fault of a statement, with the change that mends only this fault.

    Attributes
    ----------
    why : str
        The fault in one to three sentences, with the places in the paper that show it.
    weight : Weight
    change : str
        The single change that mends it, in a few words.
    reading : str
        A registered reading that has this change, possibly among others; empty if there is none.
    regimes : tuple of str
        The regimes that this fault refutes.
    certificates : tuple of str
        Names of stored certificates that show the fault on settings that a referee would call
        natural.
    natural : str
        If no certificate is stored, the regime with a natural setting, or a sentence saying that
        none is known and how hard it was searched for.
    answer : str
        The authors' likely answer, in one line: whether the result survives, and at what price.

    Raises
    ------
    ValueError
        If ``why`` is not one to three sentences, ``change`` is empty, neither a regime nor a
        certificate shows the fault, or ``natural`` is given though a certificate is kept.

    Examples
    --------
    >>> fault = Refutation("(3) fails at K = 1.", Weight.GAP, "K > 1", "derived", ("one step",))
    >>> fault.fixed_by
    'K > 1 (the derived reading)'
    """

    why: str
    weight: Weight
    change: str
    reading: str = ""
    regimes: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    natural: str = ""
    answer: str = ""

    def __post_init__(self) -> None:
        validation.text("why of a refutation", self.why)
        if not 1 <= len(_SENTENCE_END.findall(self.why)) <= 3 or not self.why.endswith("."):
            raise ValueError(
                "why of a refutation must be one to three sentences with full stops, got "
                f"{self.why!r}"
            )
        validation.instance_of("weight of a refutation", self.weight, Weight, "a Weight")
        validation.text("change of a refutation", self.change)
        validation.instance_of("reading of a refutation", self.reading, str, "a string")
        for name in ("regimes", "certificates"):
            validation.tuple_of(f"{name} of a refutation", getattr(self, name), str)
        if not (self.regimes or self.certificates):
            raise ValueError(
                "regimes or certificates of a refutation must name its evidence, got neither"
            )
        validation.instance_of("natural of a refutation", self.natural, str, "a string")
        if self.natural and self.certificates:
            raise ValueError(
                "natural of a refutation must be empty if certificates are kept, got "
                f"{self.natural!r} and {', '.join(self.certificates)}"
            )

    @property
    def natural_witness(self) -> str:
        """The location of a natural witness, or why none is known; empty if neither is recorded."""
        if self.certificates:
            return ", ".join(self.certificates)
        return f"regime {self.natural!r}" if self.natural in self.regimes else self.natural

    @property
    def fixed_by(self) -> str:
        """The change that repairs the fault, in a few words, and the reading that has it."""
        return f"{self.change} (the {self.reading} reading)" if self.reading else self.change


@dataclass(frozen=True)
class Mend:
    """One change to a printed statement.

    Attributes
    ----------
    about : str
        The change, in a few words.
    source : str
        The equation of the proof that requires it.
    changes : mapping
        Keyword arguments of the repair's ``build``.
    weight : Weight or None
        How serious the mended fault is, or None if the change mends no fault but makes the
        statement apply more widely.
    """

    about: str
    source: str
    changes: Mapping[str, Any] = field(hash=False)
    weight: Weight | None = None

    @property
    def kind(self) -> str:
        """The word for the weight, as shown to readers."""
        return "so that it applies" if self.weight is None else self.weight.label


@dataclass(frozen=True)
class Repair(Generic[S]):
    """A printed statement and the changes that repair it.

    Attributes
    ----------
    mends : tuple of Mend
    build : callable
        Makes the statement; without arguments, the printed one.
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
            If it is not one of this repair's mends.
        """
        if mend not in self.mends:
            raise ValueError(f"mend must be a change of this repair, got {mend.about!r}")
        others = [other for other in self.mends if other is not mend]
        return replace(self._with(others), reading=f"repaired, but not: {mend.about}")

    def _with(self, mends: tuple[Mend, ...] | list[Mend]) -> S:
        changes = {name: value for mend in mends for name, value in mend.changes.items()}
        return replace(self.build(**changes), derivation=None)
