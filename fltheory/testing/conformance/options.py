"""Algorithms' options by name, with kinds, random values and what they imply for the clients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fltheory import validation


@dataclass(frozen=True)
class Option:
    """A word that is the same for all clients; algorithms check ranges themselves.

    Attributes
    ----------
    says : str
        The option's meaning, in a few words.
    draw : callable
        Returns a random value, given a generator and a number of clients.
    """

    says: str = ""
    draw: Callable[[np.random.Generator, int], Any] = lambda rng, n: None

    def checked(self, name: str, value: Any, *, optional: bool = False) -> Any:
        """Return a value in the form for ``run``, with NumPy scalars and arrays as Python objects.

        Raises
        ------
        ValueError
            If the value is of the wrong kind, or is None although not ``optional``.
        """
        if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
            value = value.item()
        if value is None and not optional:
            raise ValueError(f"{name} must have a value, got None")
        return value if value is None else self._of_kind(name, value)

    def _of_kind(self, name: str, value: Any) -> Any:
        validation.text(name, value)
        return value

    def n_clients(self, value: Any) -> int | None:
        """Return the number of clients that the value implies, or None for any number."""
        return None

    def fewest(self, value: Any) -> int:
        """Return the smallest possible number of clients."""
        return 1

    def lasts(self, value: Any) -> float:
        """Return the number of rounds of absence before the option makes a difference."""
        return 0

    def for_clients(self, value: Any, n: int) -> Any:
        """Return the option's value for n clients."""
        return value

    def ordered(self, value: Any, order: Sequence[int]) -> Any:
        """Return the option for only the given clients, in this order."""
        return value


class Number(Option):
    """A number that is the same for all clients."""

    def _of_kind(self, name: str, value: Any) -> float:
        return validation.real_number(name, value, "a finite number", lambda number: True)


class Cutoff(Number):
    """A number of rounds after which something is forgotten; infinity means that it never is."""

    def _of_kind(self, name: str, value: Any) -> float:
        return value if value == math.inf else validation.whole_number(name, value, at_least=1)

    def lasts(self, value: Any) -> float:
        """Return the cut-off."""
        return float(value) if math.isfinite(value) else 0


class Whole(Option):
    """An integer."""

    def _of_kind(self, name: str, value: Any) -> int:
        return validation.whole_number(name, value, at_least=1)


class Size(Whole):
    """A maximal number of clients."""

    def fewest(self, value: int) -> int:
        """Return the size, because there must be at least that many clients."""
        return value

    def ordered(self, value: int, order: Sequence[int]) -> int:
        """Return the size, or the number of clients left if that is smaller."""
        return min(value, len(order))


class Pair(Option):
    """Two numbers."""

    def _of_kind(self, name: str, value: Any) -> tuple[float, ...]:
        pair = validation.real_array(name, value, shape="(2,)")
        if pair.shape != (2,):
            raise ValueError(f"{name} must be two numbers, got {value!r}")
        return tuple(pair.tolist())


class PerClient(Option):
    """A number for each client; a single number applies to all clients."""

    def _of_kind(self, name: str, value: Any) -> Any:
        array = validation.real_array(name, value, shape="(N,)")
        if array.ndim > 1 or not array.size:
            raise ValueError(f"{name} must be a number for each client, got {value!r}")
        return tuple(array.tolist()) if array.ndim else float(array)

    def n_clients(self, value: Any) -> int | None:
        """Return the number of values, if there is one per client."""
        return len(value) if isinstance(value, tuple) else None

    def for_clients(self, value: Any, n: int) -> Any:
        """Return a number for each of n clients."""
        return value if isinstance(value, tuple | None) else (value,) * n

    def ordered(self, value: Any, order: Sequence[int]) -> Any:
        """Return the numbers of those clients."""
        return tuple(value[k] for k in order) if isinstance(value, tuple) else value


class Shares(PerClient):
    """A number for each client; the numbers sum to 1."""

    def ordered(self, value: tuple[float, ...], order: Sequence[int]) -> tuple[float, ...]:
        """Return the shares of those clients, rescaled to sum to 1."""
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


class Groups(StepsPerClient):
    """The group of each client, numbered from 0 without a gap."""

    def _of_kind(self, name: str, value: Any) -> Any:
        return tuple(validation.whole_number(name, one, at_least=0) for one in value)

    def ordered(self, value: tuple[int, ...], order: Sequence[int]) -> tuple[int, ...]:
        """Return the groups of those clients, renumbered."""
        those = [value[k] for k in order]
        return tuple(sorted(set(those)).index(group) for group in those)


def _shares(rng: np.random.Generator, n: int) -> tuple[float, ...]:
    """Return shares that are different for all clients."""
    raw = rng.uniform(0.5, 1.5, n) + np.arange(n) / n
    return tuple((raw / raw.sum()).tolist())


def _each(least: float, largest: float) -> Callable[[np.random.Generator, int], Any]:
    return lambda rng, n: tuple(rng.uniform(least, largest, n).tolist())


def _one(least: float, largest: float) -> Callable[[np.random.Generator, int], Any]:
    return lambda rng, n: float(rng.uniform(least, largest))


def _either(*values: Any) -> Callable[[np.random.Generator, int], Any]:
    return lambda rng, n: values[rng.integers(len(values))]


OPTIONS: Mapping[str, Option] = {
    "client_lr": Number(),
    "server_lr": Number(),
    "weighting": Option(
        '"n_samples" (by default) or "uniform"', _either(*["n_samples"] * 2, "uniform")
    ),
    "start": Option(
        '"wait" or "zero": until all clients have appeared', _either("zero", "wait", "zero")
    ),
    "option": Whole("1 or 2: how a client's control is updated", _either(1, 2)),
    "proximal": Number("mu of the proximal term", _one(0.2, 1.0)),
    "cutoff": Cutoff(
        "the longest interval (FedAU's K), or age (FedAR's tau_max), that counts",
        _either(2, 3, 4, 30),
    ),
    "growth": Number("psi(tau) = min(1 + growth tau, largest)", _one(0.1, 0.4)),
    "largest": Number("the largest psi", _one(1.2, 2.2)),
    "size": Size("m, how many clients may train in a round", lambda rng, n: max(1, n // 2)),
    "smoothing": Number("beta of the rates", _one(0.1, 0.5)),
    "loss_smoothing": Number("beta, the share of a new report", _one(0.2, 0.8)),
    "threshold": Number("tau, how much an exclusion must lower epsilon", _either(0.0, 0.1)),
    "kappa_bar": Number("its square weighs the bias in epsilon", _one(0.2, 2.0)),
    "prior": Pair("(n, m) of the estimates", lambda rng, n: tuple(rng.uniform(0.5, 4, 2).tolist())),
    "target_weights": Shares("alpha, positive with sum 1, one per client", _shares),
    "aggregation_weights": PerClient("q, positive, one per client", _each(0.1, 0.9)),
    "availability": PerClient(
        "the probability that a client is present, one per client", _each(0.3, 0.95)
    ),
    "correlation": PerClient(
        "lambda, one per client; omit it if availability is omitted", _each(-0.3, 0.9)
    ),
    # Minima from an oracle need not be the clients' actual minima, which are all 0.
    "known_minima": PerClient("F_k^*, one per client", _each(-1.0, 0.0)),
    "clusters": Groups(
        "the cluster of each client, 0, 1, ...",
        lambda rng, n: tuple((rng.permutation(n) % ((n + 1) // 2)).tolist()),
    ),
    "assist_lr": Number("the step size of the server's own step", _one(0.05, 0.3)),
}
"""The keyword arguments of ``run`` besides the number of local steps."""
