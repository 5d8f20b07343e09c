"""Subsets of available clients: FedAvg(S) takes at most S of them, or waits for S."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.decimals import as_fraction, complement
from fltheory.participation.base import Masks, between, of_size
from fltheory.participation.bernoulli import Bernoulli
from fltheory.participation.inclusions.correlations import Inclusions, of_available
from fltheory.participation.inclusions.independent_clients import chances_of_sets, weighted_pairs
from fltheory.participation.inclusions.like_clients import LikeClients
from fltheory.participation.process import Chances, Law, Process
from fltheory.participation.uniform_subset import UniformSubset
from fltheory.validation import FloatArray

_AT_ONCE = 1024
_Clients = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SubsetOfAvailable(Process):
    """Base of processes with independently available clients, of which ``size`` are wanted.

    Parameters
    ----------
    availability : array, (N,)
        Probabilities in (0, 1].
    size : int
        S, from 1 to N.

    Raises
    ------
    ValueError
        If a probability is outside (0, 1], or ``size`` is not an integer from 1 to N.
    """

    availability: FloatArray
    size: int

    def __init__(self, availability: ArrayLike, size: int) -> None:
        p = Bernoulli(availability).availability
        size = validation.whole_number("size", size, at_least=1)
        if size > p.size:
            raise ValueError(f"size must be at most the number of clients, {p.size}, got {size}")
        object.__setattr__(self, "availability", p)
        object.__setattr__(self, "size", size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_clients} clients, size={self.size})"

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.availability.size)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class AtMost(SubsetOfAvailable):
    """Of the independently available clients, ``size`` are drawn uniformly and take part.

    If fewer are available, all of them take part. With `FedAvg`, this is FedAR's baseline "FedAvg
    (S=50)", if that is read as not waiting for anybody.

    Parameters
    ----------
    availability : array, (N,)
        Probabilities in (0, 1].
    size : int
        S, from 1 to N.

    Raises
    ------
    ValueError
        If a probability is outside (0, 1], or ``size`` is not an integer from 1 to N.

    Examples
    --------
    >>> AtMost([0.5, 1.0], 1).marginals.tolist()
    [0.25, 0.75]
    """

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) probability that a client takes part: ``p_i E min(1, S/(1 + others available))``."""
        like = LikeClients.of(self.availability)
        drawn = np.minimum(1.0, self.size / np.arange(1, self.n_clients + 1))
        return np.asarray(self.availability * like.without_one(drawn)[like.group])

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that two clients take part together."""
        return self.weighted_inclusions(np.ones(self.n_clients + 1))

    def inclusions(self, weight: FloatArray) -> Inclusions:
        """Return the moments of ``1{i takes part} weight[|S|]``, for ``weight`` (N + 1,)."""
        return of_available(self.availability, weight, self.size)

    def weighted_inclusions(self, weight: FloatArray) -> FloatArray:
        """Return ``E[1{i and j take part} weight[|S|]]``, (N, N), for ``weight`` (N + 1,)."""
        there = np.arange(self.n_clients + 1)
        drawn = np.minimum(there, self.size)
        of_ones = weight[drawn] * drawn / np.maximum(there, 1)
        of_pairs = of_ones * (drawn - 1) / np.maximum(there - 1, 1)
        return weighted_pairs(self.availability, of_pairs, of_ones)

    @property
    def fixed_size(self) -> int | None:
        """S if exactly S clients are always available, otherwise None."""
        return self.size if self._certain >= self.size else None

    @property
    def _certain(self) -> int:
        return int((self.availability == 1).sum())

    @property
    def n_outcomes(self) -> int:
        """Number of participant sets with positive probability."""
        certain = self._certain
        smaller = sum(
            math.comb(self.n_clients - certain, k - certain) for k in range(certain, self.size)
        )
        return smaller + math.comb(self.n_clients, self.size)

    def law(self) -> Law:
        """Return every participant set: the available clients, or S of them."""
        found = list(self._sets([as_fraction(chance) for chance in self.availability]))
        return Law(lambda state: found)

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Yield every participant set of positive probability."""
        return self._sets(self.availability.tolist())

    def _sets(self, p: Sequence[Any]) -> Iterator[tuple[Any, Masks]]:
        """Yield every participant set of positive probability, in the numbers of ``p``."""
        for size in range(self.size + 1):
            for mask in of_size(size, np.ones(self.n_clients, dtype=bool)):
                law = number_there([q for q, here in zip(p, mask, strict=True) if not here])
                if size < self.size:
                    del law[1:]
                drawn = sum(chance / math.comb(size + k, size) for k, chance in enumerate(law))
                chance = math.prod(compress(p, mask)) * drawn
                if chance > 0:
                    yield chance, mask

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Yield each round's participants in ``replicas`` independent runs."""
        for available in Bernoulli(self.availability).masks(rng, replicas):
            keys = np.where(available, rng.random(available.shape), np.inf)
            last = np.partition(keys, self.size - 1, axis=1)[:, self.size - 1 : self.size]
            yield available & (keys <= last)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class WaitingSubset(SubsetOfAvailable):
    """A uniformly drawn subset takes part once each of its members has been available.

    Follows FedAvg(S) in MIFA's code: ``size`` clients are drawn from all N, available or not. While
    the server waits, nobody takes part. In the round in which the last of the subset's members is
    seen, all of them take part, even those unavailable in that round. Then the next subset is
    drawn. A run starts with a fresh subset. Every client takes part equally often, whatever its
    availability.

    Parameters
    ----------
    availability : array, (N,)
        Probabilities in (0, 1].
    size : int
        S, from 1 to N.

    Raises
    ------
    ValueError
        If a probability is outside (0, 1], or ``size`` is not an integer from 1 to N.

    Examples
    --------
    >>> round(WaitingSubset([0.5, 0.25], 1).mean_wait, 12)
    3.0
    """

    mixes = True

    @cached_property
    def mean_wait(self) -> float:
        """Mean number of rounds between two subsets' rounds, to within a few rounding errors.

        It is the sum over t >= 0 of the probability that a subset is not complete after t rounds.
        Computing it takes time of order N S / min p.
        """
        total, first = 0.0, 0
        least = float(self.availability.min())
        while first == 0 or self.n_clients * (1 - least) ** first > 1e-17 * least:
            times = np.arange(first, first + _AT_ONCE)
            seen = 1 - (1 - self.availability[:, None]) ** times
            total += float((1 - self._chance_complete(seen)).sum())
            first += _AT_ONCE
        return total

    def _chance_complete(self, seen: FloatArray) -> FloatArray:
        """Return the mean over subsets of the product of ``seen`` (N, times) over members."""
        means = np.zeros((self.size + 1, seen.shape[1]))
        means[0] = 1.0
        members = np.arange(1, self.size + 1)[:, None]
        for number, chance in enumerate(seen, start=1):
            joins = np.minimum(members / number, 1.0)
            means[1:] = (1 - joins) * means[1:] + joins * chance * means[:-1]
        return np.asarray(means[-1])

    @property
    def independent(self) -> bool:
        """Whether the server never has to wait."""
        return bool((self.availability == 1).all())

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) long-run share of rounds in which a client takes part."""
        return np.asarray(self._always.marginals / self.mean_wait)

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) long-run share of rounds in which two clients take part."""
        return np.asarray(self._always.pair_inclusions / self.mean_wait)

    @property
    def fixed_size(self) -> int | None:
        """S if the server never has to wait, otherwise None."""
        return self.size if self.independent else None

    @property
    def n_outcomes(self) -> int:
        """The number of subsets, plus one for the empty set if the server may have to wait."""
        return self._always.n_outcomes + (not self.independent)

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Yield every participant set with its long-run share of the rounds."""
        if not self.independent:
            yield 1 - 1 / self.mean_wait, np.zeros(self.n_clients, dtype=bool)
        for chance, mask in self._always.outcomes():
            yield chance / self.mean_wait, mask

    @property
    def n_states(self) -> int:
        """The number of pairs of a subset and a set of its members seen so far."""
        unsure = int((self.availability < 1).sum())
        sure = self.n_clients - unsure
        return sum(
            math.comb(unsure, k) * math.comb(sure, self.size - k) * 2**k
            for k in range(self.size + 1)
        )

    def law(self) -> Law:
        """Return the law, with a state for each subset and its members not yet seen.

        The subset takes part once all of its members have been seen.
        """
        p = [as_fraction(chance) for chance in self.availability]
        subsets = list(combinations(range(self.n_clients), self.size))

        def still(missing: _Clients) -> list[tuple[_Clients, Fraction]]:
            """Return the members that may still be missing after a round, with probabilities."""
            sets = between(np.zeros(len(missing), dtype=bool), np.ones(len(missing), dtype=bool))
            left = [tuple(compress(missing, mask)) for mask in sets]
            chances = chances_of_sets([1 - p[client] for client in missing])
            return [(left[number], chance) for number, chance in chances]

        first = [
            ((subset, missing), chance / len(subsets))
            for subset in subsets
            for missing, chance in still(subset)
        ]
        states = [state for state, _ in first]
        numbers = {state: number for number, state in enumerate(states)}
        fresh = [(numbers[state], chance) for state, chance in first]
        masks = np.zeros((len(states), self.n_clients), dtype=bool)
        for row, (subset, missing) in zip(masks, states, strict=True):
            row[list(subset)] = not missing

        def following(state: int) -> Chances:
            subset, missing = states[state]
            if not missing:
                return fresh
            return [(numbers[subset, later], chance) for later, chance in still(missing)]

        return Law.of_states(masks, fresh, following)

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Yield each round's participants in ``replicas`` independent runs."""
        subsets = self._always.masks(rng, replicas)
        chosen = next(subsets)
        seen = np.zeros_like(chosen)
        for available in Bernoulli(self.availability).masks(rng, replicas):
            seen |= available
            complete = (seen | ~chosen).all(axis=1, keepdims=True)
            yield chosen & complete
            chosen = np.where(complete, next(subsets), chosen)
            seen &= ~complete

    @property
    def _always(self) -> UniformSubset:
        return UniformSubset(self.n_clients, self.size)


def number_there(chances: Sequence[Any]) -> list[Any]:
    """Return the distribution of how many independent clients are present, in the given numbers."""
    law: list[Any] = [Fraction(1)]
    for p in chances:
        law = [
            complement(p) * stay + p * come for stay, come in zip([*law, 0], [0, *law], strict=True)
        ]
    return law
