"""Options of algorithms by name: what each may be, and what it says of the clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fltheory import validation


@dataclass(frozen=True)
class Option:
    """A word, the same for all clients; ranges are the algorithms' own to check.

    Attributes
    ----------
    optional : bool
        Whether it may be None: left out.
    """

    optional: bool = False

    def checked(self, name: str, value: Any) -> Any:
        """Return what was given as ``run`` is to have it: NumPy's scalars and lists as Python's.

        Raises
        ------
        ValueError
            If it is nothing of the kind.
        """
        if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
            value = value.item()
        if value is None and not self.optional:
            raise ValueError(f"{name} must have a value, got None")
        return value if value is None else self._of_kind(name, value)

    def _of_kind(self, name: str, value: Any) -> Any:
        validation.text(name, value)
        return value

    def n_clients(self, value: Any) -> int | None:
        """Return how many clients it speaks of; None for any number."""
        return None

    def fewest(self, value: Any) -> int:
        """Return how many clients there must be at least."""
        return 1

    def lasts(self, value: Any) -> float:
        """Return how many rounds of absence it takes until it makes a difference."""
        return 0

    def for_clients(self, value: Any, n: int) -> Any:
        """Return the option where there are n clients."""
        return value

    def ordered(self, value: Any, order: Sequence[int]) -> Any:
        """Return the option for only the clients named, in this order."""
        return value


class Number(Option):
    """A number, the same for all clients."""

    def _of_kind(self, name: str, value: Any) -> float:
        return validation.real_number(name, value, "a finite number", lambda number: True)


class Cutoff(Number):
    """A number of rounds after which something is forgotten; infinite for never."""

    def _of_kind(self, name: str, value: Any) -> float:
        return value if value == math.inf else validation.whole_number(name, value, at_least=1)

    def lasts(self, value: Any) -> float:
        """Return the cut-off."""
        return float(value) if math.isfinite(value) else 0


class Whole(Option):
    """A whole number."""

    def _of_kind(self, name: str, value: Any) -> int:
        return validation.whole_number(name, value, at_least=1)


class Size(Whole):
    """How many clients there may be of something."""

    def fewest(self, value: int) -> int:
        """Return the size: there are as many clients at least."""
        return value

    def ordered(self, value: int, order: Sequence[int]) -> int:
        """Return the size, or how many clients are left."""
        return min(value, len(order))


class Pair(Option):
    """Two numbers."""

    def _of_kind(self, name: str, value: Any) -> tuple[float, ...]:
        pair = validation.real_array(name, value, shape="(2,)")
        if pair.shape != (2,):
            raise ValueError(f"{name} must be two numbers, got {value!r}")
        return tuple(pair.tolist())


class PerClient(Option):
    """A number for each client; one number is everybody's."""

    def _of_kind(self, name: str, value: Any) -> Any:
        array = validation.real_array(name, value, shape="(N,)")
        if array.ndim > 1 or not array.size:
            raise ValueError(f"{name} must be a number for each client, got {value!r}")
        return tuple(array.tolist()) if array.ndim else float(array)

    def n_clients(self, value: Any) -> int | None:
        """Return how many numbers there are."""
        return len(value) if isinstance(value, tuple) else None

    def for_clients(self, value: Any, n: int) -> Any:
        """Return a number for each of n clients."""
        return value if isinstance(value, tuple | None) else (value,) * n

    def ordered(self, value: Any, order: Sequence[int]) -> Any:
        """Return the numbers of those clients."""
        return tuple(value[k] for k in order) if isinstance(value, tuple) else value


class Shares(PerClient):
    """A number for each client, with sum 1."""

    def ordered(self, value: tuple[float, ...], order: Sequence[int]) -> tuple[float, ...]:
        """Return the shares of those clients among themselves."""
        those = tuple(value[k] for k in order)
        if len(those) == len(value):
            return those
        total = sum(those)
        return tuple(share / total for share in those)


class StepsPerClient(PerClient):
    """Local steps of each client."""

    def _of_kind(self, name: str, value: Any) -> Any:
        if np.ndim(value) == 0:
            return validation.whole_number(name, value, at_least=1)
        if not len(value):
            raise ValueError(f"{name} must be a whole number for each client, got {value!r}")
        return tuple(validation.whole_number(name, one, at_least=1) for one in value)


OPTIONS: dict[str, Option] = {
    "client_lr": Number(),
    "server_lr": Number(),
    "weighting": Option(),
    "start": Option(),
    "option": Whole(),
    "proximal": Number(),
    "cutoff": Cutoff(),
    "growth": Number(),
    "largest": Number(),
    "size": Size(),
    "smoothing": Number(),
    "loss_smoothing": Number(),
    "threshold": Number(),
    "kappa_bar": Number(),
    "prior": Pair(),
    "target_weights": Shares(),
    "availability": PerClient(optional=True),
    "correlation": PerClient(optional=True),
    "known_minima": PerClient(optional=True),
}
"""What is given to ``run`` by name, besides the number of local steps."""
