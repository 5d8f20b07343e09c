"""Step sizes: checks of constant ones, and step sizes that depend on the round.

Rounds are counted from 1 as in CA-Fed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from fltheory import validation


class StepSizes(Hashable, Protocol):
    """eta_1, eta_2, ...: positive numbers."""

    def at(self, round_index: int) -> float:
        """Return eta_t for ``round_index`` t, 1 in the first round."""
        ...


def checked_step_sizes(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` has a step size for every round.

    Raises
    ------
    ValueError
        Also if given a class instead of an instance.
    """
    if isinstance(value, type) or not callable(getattr(value, "at", None)):
        raise ValueError(
            f"{name} must be step sizes, e.g. Constant(0.1), got {validation.shown(value)}"
        )


def checked_steps(client_lr: float, local_steps: int, server_lr: float) -> dict[str, Any]:
    """Check the step parameters that most algorithms share, and return them by name.

    Raises
    ------
    ValueError
        If a step size is not positive, or ``local_steps`` is below 1.
    """
    return {
        "client_lr": validation.positive("client_lr", client_lr),
        "local_steps": validation.whole_number("local_steps", local_steps, at_least=1),
        "server_lr": validation.positive("server_lr", server_lr),
    }


@dataclass(frozen=True)
class Constant:
    """The same step size in every round, ``eta_t = value``.

    Parameters
    ----------
    value : float

    Raises
    ------
    ValueError
        If ``value`` is not positive.

    Examples
    --------
    >>> Constant(0.1).at(100)
    0.1
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
        If ``scale`` is not positive or ``offset`` is negative.

    Examples
    --------
    >>> Harmonic(1.0, offset=1.0).at(4)
    0.2
    """

    scale: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        validation.positive("scale", self.scale)
        validation.nonnegative("offset", self.offset)

    def at(self, round_index: int) -> float:
        """Return eta_t."""
        return self.scale / (round_index + self.offset)
