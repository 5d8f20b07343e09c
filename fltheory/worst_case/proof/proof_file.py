"""Proofs as files: the common base of certificates of every kind."""

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
    """A module of the folder ``checker``: its kind of proof, and functions to read and check it."""

    KIND: str
    MOST_CHARACTERS: int

    def parsed(self, text: str) -> Any:
        """Return the proof in a text, not yet checked; raise ValueError if it has no such proof."""

    def checked(self, text: str) -> str:
        """Return the claim that a text proves; raise ValueError if the proof fails."""


class ClassOutcome(Enum):
    """Verdicts about a whole class of clients; each value says what the verdict means."""

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
        JSON in which all numbers are fractions.
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
        """The proof's content, read from its text."""
        read: P = self.checker.parsed(self.text)
        return read

    def verify(self) -> None:
        """Check the proof with its checker, which needs only the standard library.

        Raises
        ------
        ValueError
            If the proof fails. The message names the first check that fails.
        """
        self.checker.checked(self.text)

    @property
    @abstractmethod
    def lines(self) -> tuple[str, ...]:
        """The claim: the bound, the class of clients and the round. Trust it only after `verify`.

        Raises
        ------
        ValueError
            If a field is invalid.
        """

    def rocq_theorem(self) -> str:
        """Return the proof as a theorem for Rocq, which needs the library in the folder ``rocq``.

        Raises
        ------
        ValueError
            If the library does not cover this kind of proof, or the proof is too large for it.
        """
        raise ValueError(
            "a certificate must be about one round, a method with memory, or clients correlated in "
            f"time to become a theorem for Rocq, got {self.checker.KIND!r}"
        )

    def write(self, path: Path) -> None:
        """Write the proof to a file; if writing fails, leave an existing file as it was."""
        write_whole(path, self.text)


def first_accepted(kind: type[F], texts: Iterable[str], margin: float) -> F:
    """Return the proof in the first text that its checker accepts.

    Raises
    ------
    ArithmeticError
        If no text is accepted.
    """
    for text in texts:
        made = kind.accepted(text)
        if made is not None:
            return made
    raise ArithmeticError(f"no proof was found at a margin of {margin:g}: try a larger one")


def of_least_margin(prove: Callable[[float], F], margins: Iterable[float]) -> F | None:
    """Return the proof at the first margin that has one, or None if no margin has one."""
    for margin in margins:
        try:
            return prove(margin)
        except ArithmeticError:
            continue
    return None


def with_values_cancelled(
    weights: list[list[Fraction]], values: Sequence[Fraction]
) -> list[list[Fraction]]:
    """Return multipliers, raised so that function values cancel; the last point is x*.

    The multipliers between x* and every other point are raised until the point's outgoing weights
    equal its incoming weights plus its entry of ``values``.
    """
    raised = [list(row) for row in weights]
    for point, value in enumerate(values):
        excess = value + sum(row[point] for row in weights) - sum(weights[point])
        raised[point][-1] += max(excess, Fraction(0))
        raised[-1][point] += max(-excess, Fraction(0))
    return raised


# ---------------------------------------------------------------- parts of the lines


def class_text(L: Fraction, mu: Fraction) -> str:
    """Return the clients' smoothness and convexity, in words."""
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
    """Return a polynomial in the clients' step size, with six digits per coefficient."""
    powers = ["", " eta_c", " eta_c^2", " eta_c^3"]
    return " + ".join(
        f"{float(value):.6g}{power}"
        for value, power in zip(coefficients, powers, strict=False)
        if value
    )


def text_from_above(value: Fraction) -> str:
    """Return a number with seven significant digits, rounded up if it has more."""
    digits = Context(prec=7, rounding=ROUND_CEILING)
    rounded = digits.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded.normalize():f}" if rounded > Decimal("1e-4") else f"{rounded.normalize()}"
