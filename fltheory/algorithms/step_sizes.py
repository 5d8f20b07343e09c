"""Step sizes that depend on the round, which is counted from 1 as in CA-Fed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from fltheory import validation


class StepSizes(Hashable, Protocol):
    """eta_1, eta_2, ...: positive numbers."""

    def at(self, round_index: int) -> float:
        """Return eta_t for ``round_index`` t, 1 in the first round."""
        ...


@dataclass(frozen=True)
class Constant:
    """``eta_t = value``.

    Raises
    ------
    ValueError
        If ``value`` is not positive.
    """

    value: float

    def __post_init__(self) -> None:
        validation.positive("value", self.value)

    def at(self, round_index: int) -> float:
        """Return eta_t."""
        return self.value


@dataclass(frozen=True)
class Harmonic:
    """``eta_t = scale / (t + offset)``, which meets CA-Fed's equation (11).

    Parameters
    ----------
    scale : float
        Positive.
    offset : float
        Not negative.

    Raises
    ------
    ValueError
        For other values.
    """

    scale: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        validation.positive("scale", self.scale)
        validation.nonnegative("offset", self.offset)

    def at(self, round_index: int) -> float:
        """Return eta_t."""
        return self.scale / (round_index + self.offset)
