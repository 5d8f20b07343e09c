"""Clients that are present independently, grouped by equal availability.

Clients of one group are exchangeable, so expectations over the number of *other* clients present
are the same for all clients of a group, and for all pairs from two groups. They are computed once
for each group or pair of groups, however many clients there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fltheory.decimals import complement
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray

_UNIT_ROUNDOFF = float(np.finfo(np.float64).eps) / 2
# For a million clients, the probability dropped from the distribution of the number present is
# below 1e-54.
_NEGLIGIBLE = 1e-60


@dataclass(frozen=True, eq=False)
class _CountLaw:
    """Probabilities of the numbers ``first``, ``first + 1``, ..."""

    first: int
    chances: FloatArray

    def plus(self, other: _CountLaw) -> _CountLaw:
        """Return the distribution of the sum of two independent numbers; no term is negative."""
        return _CountLaw(self.first + other.first, np.convolve(self.chances, other.chances))


_NOBODY = _CountLaw(0, np.ones(1))


@dataclass(frozen=True, eq=False)
class _Means:
    """A function of the numbers ``first``, ``first + 1``, ..."""

    first: int
    values: FloatArray

    def mean(self, law: _CountLaw) -> float:
        """Return the function's mean under a distribution, all of whose numbers must be covered."""
        place = law.first - self.first
        return float(law.chances @ self.values[place : place + law.chances.size])


def _binomial(trials: int, p: float) -> _CountLaw:
    """Return the binomial distribution without probabilities below 1e-60 of the largest.

    Ratios of neighbouring probabilities are multiplied, starting from the mode, so every
    probability is as accurate as a product of that many factors. Logarithms of factorials would
    lose digits as N grows.
    """
    if p in (0.0, 1.0) or trials == 0:
        return _CountLaw(trials if p == 1.0 else 0, np.ones(1))
    mode = min(int((trials + 1) * p), trials)
    # Chernoff: beyond 40 standard deviations plus 400, probabilities are below 1e-60.
    reach = int(40 * math.sqrt(trials * p * (1 - p))) + 400
    odds = p / (1 - p)
    above = np.arange(mode, min(trials, mode + reach))
    below = np.arange(mode, max(0, mode - reach), -1)
    up = np.cumprod((trials - above) / (above + 1) * odds)
    down = np.cumprod(below / (trials - below + 1) / odds)
    chances = np.concatenate([down[::-1], [1.0], up])
    kept = np.flatnonzero(chances > _NEGLIGIBLE)
    chances = chances[kept[0] : kept[-1] + 1]
    return _CountLaw(mode - down.size + int(kept[0]), chances / chances.sum())


@dataclass(frozen=True, eq=False)
class LikeClients(ReadOnlyArrays):
    """Groups of clients who are present independently, with one probability per group.

    Attributes
    ----------
    availability : array, (G,)
        Probabilities, distinct and ascending.
    sizes : array, (G,)
        Number of clients in each group.
    group : array, (N,)
        Each client's group.
    """

    availability: FloatArray
    sizes: ClientIndices
    group: ClientIndices

    @classmethod
    def of(cls, availability: FloatArray) -> LikeClients:
        """Group clients by their ``availability`` (N,)."""
        distinct, group, sizes = np.unique(availability, return_inverse=True, return_counts=True)
        return cls(distinct, sizes, group)

    @property
    def relative_error(self) -> float:
        """Bound, to first order, on the relative rounding error of a number's probability.

        A group's probability is a product of a few hundred ratios, divided by a sum; adding a group
        sums as many terms as the narrower distribution has. All terms are positive.
        """
        widths = sum(law.chances.size for law in self._laws)
        return 8 * _UNIT_ROUNDOFF * (widths + 8 * len(self._laws))

    @cached_property
    def _laws(self) -> list[_CountLaw]:
        return [laws[0] for laws in self._left_out]

    @cached_property
    def _left_out(self) -> list[tuple[_CountLaw, _CountLaw, _CountLaw]]:
        """Distributions of a group's number present among all, all but one and all but two clients.

        Each distribution is computed from the next one, so that the ranges of numbers are nested.
        For a group of one client, "all but two" means nobody.
        """
        return [
            _grown(int(size), float(p))
            for size, p in zip(self.sizes, self.availability, strict=True)
        ]

    @cached_property
    def number(self) -> tuple[ClientIndices, FloatArray]:
        """Numbers of clients present, and their probabilities; those below 1e-60 are left out."""
        law = _NOBODY
        for group in self._laws:
            law = law.plus(group)
        return np.arange(law.first, law.first + law.chances.size), law.chances

    def without_one(self, values: FloatArray) -> FloatArray:
        """Return ``E values[number of others present]`` (G,) for a client of each group.

        ``values`` is (N,), one for each number of others.
        """
        return self._without(values, 1)

    def without_two_alike(self, values: FloatArray) -> FloatArray:
        """Return ``E values[number of others present]`` (G,) for two clients of the same group.

        ``values`` is (N - 1,). For a group of one client, the entry is meaningless.
        """
        return self._without(values, 2)

    def _without(self, values: FloatArray, count: int) -> FloatArray:
        after, before, found = self._after(values), _NOBODY, []
        for place, left_out in enumerate(self._left_out):
            found.append(after[place].mean(before.plus(left_out[count])))
            before = before.plus(left_out[0])
        return np.array(found)

    def without_two(self, values: FloatArray) -> FloatArray:
        """Return ``E values[number of others present]`` (G, G) for clients of two groups.

        The time is proportional to the number of pairs of groups, and at most linear in N for each
        pair.
        """
        table = np.diag(self.without_two_alike(values))
        after, before = self._after(values), _NOBODY
        for first, (whole, less_one, _) in enumerate(self._left_out):
            other_before = before.plus(less_one)
            for second in range(first + 1, len(self._left_out)):
                less_both = other_before.plus(self._left_out[second][1])
                table[first, second] = table[second, first] = after[second].mean(less_both)
                other_before = less_both.plus(self._one(second))
            before = before.plus(whole)
        return table

    def _one(self, place: int) -> _CountLaw:
        p = float(self.availability[place])
        return _CountLaw(0, np.array([complement(p), p]))

    def _after(self, values: FloatArray) -> list[_Means]:
        """Return, for each group, ``n -> E values[n + number present in later groups]``.

        The functions are computed from the last group backwards, each by averaging over one more
        group. Each covers the numbers n that the groups up to it can reach.
        """
        numbers, _ = self.number
        # If no client is left out, a number may exceed the range of ``values``.
        means = _Means(int(numbers[0]), np.append(values, 0.0)[np.minimum(numbers, values.size)])
        found = [means]
        for law in reversed(self._laws[1:]):
            averaged = np.correlate(means.values, law.chances, mode="valid")
            means = _Means(means.first - law.first, averaged)
            found.append(means)
        return found[::-1]


def _grown(size: int, p: float) -> tuple[_CountLaw, _CountLaw, _CountLaw]:
    one = _CountLaw(0, np.array([complement(p), p]))
    less_two = _binomial(max(size - 2, 0), p)
    less_one = less_two.plus(one) if size > 1 else _NOBODY
    return less_one.plus(one), less_one, less_two
