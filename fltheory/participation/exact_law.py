"""Who takes part, with probabilities in fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, runtime_checkable

from fltheory.participation.base import Masks

Following = Callable[[int], Sequence[tuple[int, Fraction]]]


@dataclass(frozen=True, eq=False)
class ExactLaw:
    """A process as states that say who takes part, each with what may follow.

    Attributes
    ----------
    initial : tuple of (int, Fraction)
        States that the first round may be in, with their probabilities, which sum to one.
    sets : callable
        The participant sets of a state, ``(probability, mask of shape (N,))``.
    following : callable
        The states that may follow a state, with their probabilities.
    """

    initial: Sequence[tuple[int, Fraction]]
    sets: Callable[[int], Sequence[tuple[Fraction, Masks]]]
    following: Following


@runtime_checkable
class ExactlyKnown(Protocol):
    """Participation that knows its law in fractions."""

    def exact_law(self) -> ExactLaw:
        """Return the law; a float stands for its shortest decimal."""
        ...


def independent_law(outcomes: Sequence[tuple[Fraction, Masks]]) -> ExactLaw:
    """Return the law of rounds that are independent and alike."""
    alone = ((0, Fraction(1)),)
    return ExactLaw(alone, lambda state: outcomes, lambda state: alone)


def chain_law(
    initial: Sequence[tuple[int, Fraction]], masks: Masks, following: Following
) -> ExactLaw:
    """Return the law of a chain whose states (M,) have the participants ``masks`` (M, N)."""
    return ExactLaw(initial, lambda state: ((Fraction(1), masks[state]),), following)
