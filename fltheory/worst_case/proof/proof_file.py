"""Proofs as files: what certificates of every kind have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from fltheory.decimals import fraction_text
from fltheory.evidence.verdict import Scope
from fltheory.files.whole_file import write_whole
from fltheory.worst_case.checker.kernel import ProofError

P = TypeVar("P")
F = TypeVar("F", bound="ProofFile[Any]")


class ProofChecker(Protocol):
    """A file of the folder ``checker``: its kind of proof, and how it is read."""

    KIND: str
    MOST_CHARACTERS: int

    def parsed(self, text: str) -> Any:
        """Return what a text says, not yet believed; ValueError for what is no such proof."""

    def checked(self, text: str) -> str:
        """Return the claim of a text; ValueError for what proves nothing."""


class ClassOutcome(Enum):
    """Verdicts about a whole class of clients; the value is what each means."""

    PROVED = "for every client loss of the class, by a certificate that the checker accepts"
    REFUTED = "broken by clients of the class"
    UNDECIDED = "neither a proof nor clients that violate it were found"

    @property
    def scope(self) -> Scope:
        """The scope: a whole class of problems."""
        return Scope.CLASS


@dataclass(frozen=True)
class ProofFile(ABC, Generic[P]):
    """A proof as the text of its file.

    Attributes
    ----------
    text : str
        JSON, all numbers fractions.
    checker : ProofChecker
        The checker for proofs of its kind.
    """

    text: str
    checker: ClassVar[ProofChecker]

    @classmethod
    def accepted(cls, text: str) -> Self | None:
        """Return the proof in a text if its checker accepts it."""
        made = cls(text)
        try:
            made.verify()
        except ProofError:
            return None
        return made

    @property
    def proof(self) -> P:
        """Its content, read again from its text."""
        read: P = self.checker.parsed(self.text)
        return read

    def verify(self) -> None:
        """Check it by its checker, which needs the standard library only.

        Raises
        ------
        ValueError
            If it proves nothing, with the first thing that fails.
        """
        self.checker.checked(self.text)

    @property
    @abstractmethod
    def lines(self) -> tuple[str, ...]:
        """Its claim: the bound, the class of clients and the round. Believe it once verified.

        Raises
        ------
        ValueError
            If a field is not what it must be.
        """

    def rocq_theorem(self) -> str:
        """Return it as a theorem that Rocq checks, beside the library in the folder ``rocq``.

        Raises
        ------
        ValueError
            For a kind of proof that the library does not know, or one that is too large for it.
        """
        raise ValueError(
            "a certificate must be about one round, a method with memory, or clients correlated in "
            f"time to become a theorem for Rocq, got {self.checker.KIND!r}"
        )

    def write(self, path: Path) -> None:
        """Write it to a file, whole or not at all."""
        write_whole(path, self.text)


def first_accepted(kind: type[F], texts: Iterable[str], margin: float) -> F:
    """Return the proof in the first text that its checker accepts.

    Raises
    ------
    ArithmeticError
        If there is none.
    """
    for text in texts:
        made = kind.accepted(text)
        if made is not None:
            return made
    raise ArithmeticError(f"no proof was found at a margin of {margin:g}: try a larger one")


def of_least_margin(prove: Callable[[float], F], margins: Iterable[float]) -> F | None:
    """Return the proof at the first margin that has one, if any has."""
    for margin in margins:
        try:
            return prove(margin)
        except ArithmeticError:
            continue
    return None


def with_values_cancelled(
    weights: list[list[Fraction]], values: Sequence[Fraction]
) -> list[list[Fraction]]:
    """Return multipliers of points, of which x* is the last, at which function values cancel.

    Those with x* are raised until as much leaves each of the first points as comes to it, the
    ``values`` that are there besides included.
    """
    raised = [list(row) for row in weights]
    for point, value in enumerate(values):
        excess = value + sum(row[point] for row in weights) - sum(weights[point])
        raised[point][-1] += max(excess, Fraction(0))
        raised[-1][point] += max(-excess, Fraction(0))
    return raised


# ---------------------------------------------------------------- words that lines are made of


def class_text(L: Fraction, mu: Fraction) -> str:
    """Return how curved clients are, in words."""
    smooth = f"{fraction_text(L)}-smooth"
    if mu >= 0:
        return f"{smooth} and {fraction_text(mu)}-strongly convex"
    least = "" if mu == -L else f", of curvature {fraction_text(mu)} at least"
    return f"{smooth}, convex or not{least}"


def heterogeneity_text(kind: str) -> str:
    """Return how clients may differ, as a formula."""
    if kind == "optimum":
        return "1/N sum ||grad F_i(x*)||^2 <= sigma_*^2"
    return "||grad F_i - grad F|| <= sigma_G"


def polynomial_text(coefficients: list[Fraction]) -> str:
    """Return a polynomial in the clients' step, its coefficients in six digits."""
    powers = ["", " eta_c", " eta_c^2", " eta_c^3"]
    return " + ".join(
        f"{float(value):.6g}{power}"
        for value, power in zip(coefficients, powers, strict=False)
        if value
    )


def text_from_above(value: Fraction) -> str:
    """Return a number in seven digits, rounded up where those are not all."""
    digits = Context(prec=7, rounding=ROUND_CEILING)
    rounded = digits.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded.normalize():f}" if rounded > Decimal("1e-4") else f"{rounded.normalize()}"
