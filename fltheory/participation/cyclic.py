"""Rounds in a loop, and clients that are present for part of each period."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.participation.base import Masks
from fltheory.participation.process import Law, Process, States
from fltheory.validation import FloatArray

_MOST_OUTCOMES = 1_000_000


class Loop(Process):
    """Rounds in a given order, which start again after the last one.

    Attributes
    ----------
    start : int or None
        The round with which a run begins, or None to draw it uniformly.
    """

    start: int | None = 0

    @property
    def loop(self) -> Masks:
        """(M, N) participants of each round of the loop, from round 0."""
        raise NotImplementedError

    @property
    def period(self) -> int | None:
        """The number of rounds, or None if the first round of a run is random."""
        return super().period if self.start is None else self.n_states

    def states(self) -> States:
        """Return the rounds as states that follow one another."""
        masks, start = self.loop, self.start
        every = np.full(len(masks), 1 / len(masks))
        if start is None:
            return States(masks, every, every)
        return States(masks, np.eye(1, len(masks), start)[0], every if len(masks) == 1 else None)

    def law(self) -> Law:
        """Return the rounds as states that follow one another."""
        masks = self.loop
        count = len(masks)
        limit = tuple((state, Fraction(1, count)) for state in range(count))
        first = limit if self.start is None else ((self.start, Fraction(1)),)
        return Law.of_states(
            masks, first, lambda state: (((state + 1) % count, Fraction(1)),), limit
        )


@dataclass(frozen=True, eq=False)
class Cyclic(Loop):
    """Client n takes part in round t (from 0) if ``(t + offset_n) mod period_n < active_n``.

    Nothing is random. `fedau_cycles` draws offsets as FedAU's experiments do.

    Parameters
    ----------
    periods : array of int, (N,)
    offsets : array of int, (N,)
        The position in its period at which a client begins; 0 is the first active round.
    active : array of int, (N,), or int
        Rounds of each period in which a client is present.

    Raises
    ------
    ValueError
        If a period is below 1, an offset is negative, or ``active`` is not between 1 and the
        period. The message names the client.

    Examples
    --------
    >>> cycles = Cyclic([2, 3], [0, 1], active=1)
    >>> draw = cycles.masks(np.random.default_rng(0), replicas=1)
    >>> [next(draw)[0].astype(int).tolist() for _ in range(4)]
    [[1, 0], [0, 0], [1, 1], [0, 0]]
    """

    periods: NDArray[np.int64]
    offsets: NDArray[np.int64]
    active: NDArray[np.int64]

    def __init__(self, periods: ArrayLike, offsets: ArrayLike, active: ArrayLike = 1) -> None:
        lengths = _whole_numbers("periods", periods, None)
        fields = {
            "periods": lengths,
            "offsets": _whole_numbers("offsets", offsets, lengths.size),
            "active": _whole_numbers("active", active, lengths.size),
        }
        validation.good_for_each("periods", lengths, lengths >= 1, "at least 1")
        validation.good_for_each("offsets", fields["offsets"], fields["offsets"] >= 0, "at least 0")
        fits = (fields["active"] >= 1) & (fields["active"] <= lengths)
        validation.good_for_each("active", fields["active"], fits, "from 1 to the period")
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Cyclic({self.n_clients} clients)"

    @property
    def independent(self) -> bool:
        """Whether all clients are always present, so that rounds do not differ."""
        return self.fixed_size == self.n_clients

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.periods.size)

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) share of rounds in which a client is present, in the long run."""
        return np.asarray(self.active / self.periods)

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) share of rounds in which two clients are present together, in the long run."""
        together = np.diag(self.marginals)
        for i in range(self.n_clients):
            for j in range(i):
                rounds = np.arange(math.lcm(int(self.periods[i]), int(self.periods[j])))
                both = self._present(rounds, i) & self._present(rounds, j)
                together[i, j] = together[j, i] = both.mean()
        return together

    @property
    def fixed_size(self) -> int | None:
        """N if all clients are always present, otherwise None, as other cases are not examined."""
        return self.n_clients if (self.active == self.periods).all() else None

    @cached_property
    def n_outcomes(self) -> int:
        """The number of rounds until the pattern repeats."""
        return math.lcm(*(int(period) for period in self.periods))

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Yield every round until the pattern repeats, each with the same share.

        Raises
        ------
        ValueError
            If there are more than a million rounds.
        """
        for mask in self.loop:
            yield 1 / self.n_outcomes, mask

    @property
    def n_states(self) -> int:
        """One state per round, until the pattern repeats."""
        return self.n_outcomes

    @property
    def loop(self) -> Masks:
        """(M, N) participants of each round, from the first until the pattern repeats.

        Raises
        ------
        ValueError
            If there are more than a million rounds.
        """
        if self.n_outcomes > _MOST_OUTCOMES:
            raise ValueError(
                f"periods must repeat within {_MOST_OUTCOMES} rounds to list them, "
                f"got {self.n_outcomes}"
            )
        return np.array([self._mask(t) for t in range(self.n_outcomes)])

    def _numbers(self) -> Mapping[str, Any]:
        pairs = zip(self.active.tolist(), self.periods.tolist(), strict=True)
        return {"marginals": [Fraction(active, period) for active, period in pairs]}

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Yield each round's participants, the same for all replicas; ``rng`` is not used."""
        del rng
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        t = 0
        while True:
            yield np.tile(self._mask(t), (replicas, 1))
            t += 1

    def _mask(self, t: int) -> Masks:
        return np.asarray((t + self.offsets) % self.periods < self.active)

    def _present(self, rounds: NDArray[np.int64], client: int) -> Masks:
        position = (rounds + self.offsets[client]) % self.periods[client]
        return np.asarray(position < self.active[client])


def fedau_cycles(availability: ArrayLike, period: int, rng: np.random.Generator) -> Cyclic:
    """Draw the cycles of FedAU's experiments.

    A client is present for ``max(1, round(period p))`` rounds of each period. It begins in the
    inactive part of its period, at a uniformly drawn position, so the start is not stationary.

    Parameters
    ----------
    availability : array, (N,)
        p, in (0, 1].
    period : int
        100 in the experiments.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If p is outside (0, 1] or the period is below 1.
    """
    p = validation.one_each("availability", availability)
    period = validation.whole_number("period", period, at_least=1)
    validation.good_for_each("availability", p, (p > 0) & (p <= 1), "in (0, 1]")
    active = np.maximum(1, np.rint(period * p)).astype(np.int64)
    inactive = period - active
    offsets = active + np.where(inactive > 0, rng.integers(np.maximum(inactive, 1)), 0)
    return Cyclic(np.full(p.size, period), offsets % period, active)


def _whole_numbers(name: str, value: ArrayLike, size: int | None) -> NDArray[np.int64]:
    array = validation.array_of(name, value, size or "N", for_all=size is not None)
    validation.good_for_each(name, array, array == np.rint(array), "a whole number")
    return array.astype(np.int64)
