"""Proofs as files: what certificates of every kind have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from fltheory.decimals import fraction_text
from fltheory.evidence.verdict import Scope
from fltheory.files.whole_file import write_whole


class ClassOutcome(Enum):
    """Verdicts about a whole class of clients; the value is what each means."""

    PROVED = "for every client loss of the class, by a certificate that the checker accepts"
    REFUTED = "broken by clients of the class"
    UNDECIDED = "neither a proof nor clients that violate it were found"

    @property
    def scope(self) -> Scope:
        """What it speaks of."""
        return Scope.CLASS


@dataclass(frozen=True)
class ProofFile(ABC):
    """A proof as the text of its file.

    Attributes
    ----------
    text : str
        JSON, all numbers fractions.
    kind : str
        What the file says that it is.
    most_characters : int
        Longer files are refused.
    check : callable
        The checker's own function; it raises ValueError for what proves nothing.
    """

    text: str
    kind: ClassVar[str]
    most_characters: ClassVar[int]
    check: ClassVar[staticmethod[[Any], None]]

    @property
    @abstractmethod
    def proof(self) -> Any:
        """What it says, read again from its text."""

    def verify(self) -> None:
        """Check it by its checker, which needs the standard library only.

        Raises
        ------
        ValueError
            If it proves nothing, with the first thing that fails.
        """
        self.check(self.proof)

    @property
    @abstractmethod
    def lines(self) -> tuple[str, ...]:
        """What it shows: the bound, the class of clients and the round. Believe it once verified.

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
            "a certificate must be of one round, of a method with memory, or of clients in bursts, "
            f"to be a theorem for Rocq, got {self.kind!r}"
        )

    def write(self, path: Path) -> None:
        """Write it to a file, whole or not at all."""
        write_whole(path, self.text)


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
