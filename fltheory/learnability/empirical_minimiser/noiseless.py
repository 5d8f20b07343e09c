"""The exact law of empirical risk minimisation without noise, on thresholds.

Without noise a threshold is right on all samples if and only if no sample lies between it and t*.
The worst one that is, on either side, reaches up to the nearest sample (or beyond all, where there
is none). So its excess error on P is above e with probability ``L + R - LR``: that no sample falls
within the reach of e on the left, on the right, on both. It is a sum of three products of powers,
one factor for each of the distributions that samples come from, be they independent draws from Q
or so many from each.

Empirical risk minimisation without noise, sampled: only the samples next to the target count.

Of so many samples from a distribution a binomial number falls on either side of t*, and the one
next to t* is an order statistic, drawn by inversion; so any number of samples costs the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from fltheory import validation
from fltheory.learnability.populations.marginal import Rational, rational
from fltheory.learnability.populations.population import Population, excess_at
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_NODES = 24
# Survival (1 - mass)^n may fall within 1/n of the low end: halves go on down to 5e-20.
_OCTAVES = 64
_HALVINGS = 200


class NoiselessLaw(ReadOnlyArrays):
    """Law of the largest excess error on P among all empirical minimisers.

    Parameters
    ----------
    target : Population
        P, without noise.
    draws : sequence of (Population, int)
        Where the samples come from, and how many from each; all without noise, all with P's target.

    Raises
    ------
    ValueError
        For noisy sources, a second target, or no draws.

    Examples
    --------
    >>> from fltheory.learnability import Source
    >>> from fltheory.learnability.populations.population import as_population
    >>> p = as_population(Source.uniform(0, 1, Fraction(1, 2)))
    >>> NoiselessLaw(p, [(p, 2)]).survival(Fraction(1, 4))
    Fraction(7, 8)
    """

    def __init__(self, target: Population, draws: Sequence[tuple[Population, int]]) -> None:
        if not draws:
            raise ValueError("draws must be one or more, got none")
        parts = [target, *(population for population, _ in draws)]
        sources = [source for part in parts for _, source in part.present]
        if any(source.beta != 1 or source.scale != 1 for source in sources):
            raise ValueError("draws and target must be without noise: beta = 1 and scale = 1")
        if len({source.target for source in sources}) > 1:
            raise ValueError("draws and target must share one target of all their sources")
        self.target = target
        self.draws = [
            (part, validation.whole_number("draws", count, at_least=0)) for part, count in draws
        ]
        self.centre = target.best

    def survival(self, excess: Rational) -> Fraction:
        """Return ``P[excess error > e]``, exactly."""
        level = rational("excess", excess)
        total = Fraction(0)
        sides = [self._reach(level, side) for side in (-1, 1)]
        for ends, sign in ((sides[:1], 1), (sides[1:], 1), (sides, -1)):
            if all(end is not None for end in ends):
                total += sign * self._none_within([end for end in ends if end is not None])
        return total

    def _none_within(self, ends: Sequence[Fraction]) -> Fraction:
        """Return the probability that no sample lies between t* and any of the ends."""
        chance = Fraction(1)
        for part, count in self.draws:
            mass = sum(
                (abs(part.below(end) - part.below(self.centre)) for end in ends), Fraction(0)
            )
            chance *= (1 - mass) ** count
        return chance

    def _reach(self, level: Fraction, side: int) -> Fraction | None:
        """Return the farthest threshold with at most this excess; None if all have."""
        for near, far in self._pieces(side):
            low, high = self._excess(near), self._excess(far)
            if high > level:
                return near + (far - near) * (level - low) / (high - low)
        return None

    def _pieces(self, side: int) -> Iterator[tuple[Fraction, Fraction]]:
        beyond = [place for place in self.target.places if side * (place - self.centre) > 0]
        yield from pairwise([self.centre, *sorted(beyond, key=lambda p: abs(p - self.centre))])

    def _excess(self, place: Fraction) -> Fraction:
        return Fraction(self.target.excess(place))

    def quantile(self, delta: float) -> float:
        """Return the smallest e with ``P[excess error > e] <= delta``, to float precision.

        Raises
        ------
        ValueError
            For a delta outside (0, 1).
        """
        validation.real_number("delta", delta, "inside (0, 1)", lambda chance: 0 < chance < 1)
        low, high = 0.0, self._largest
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (middle, high) if self._floats(np.array(middle)) > delta else (low, middle)
        return high

    def mean(self) -> float:
        """Return the expected excess error, the integral of `survival`, by Gauss's rule.

        The integrand is a polynomial between the excess errors of places; intervals shrink
        towards each of them by halves, so that any sample size is resolved.
        """
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        total = 0.0
        for low, high in pairwise(self._levels):
            ends = np.array(list(_octaves(low, high)))
            halves = np.diff(ends, axis=1) / 2
            points = ends[:, :1] + halves * (1 + nodes)
            total += float(((halves * self._floats(points)) @ weights).sum())
        return total

    @cached_property
    def _largest(self) -> float:
        return max(self._levels)

    @cached_property
    def _levels(self) -> list[float]:
        """Excess errors at which the law has a kink: those of all places of P and draws."""
        parts = [self.target, *(part for part, _ in self.draws)]
        return sorted({float(self._excess(place)) for part in parts for place in part.places})

    @cached_property
    def _sides(self) -> list[tuple[FloatArray, list[FloatArray]]]:
        """Excess errors at places on either side, and the mass of each draw up to there."""
        parts = [self.target, *(part for part, _ in self.draws)]
        places = sorted({self.centre, *(place for part in parts for place in part.places)})
        found = []
        for side in (-1, 1):
            ordered = [p for p in places[::side] if side * (p - self.centre) >= 0]
            excesses = np.array([float(self._excess(place)) for place in ordered])
            masses = [
                np.array([float(abs(part.below(p) - part.below(self.centre))) for p in ordered])
                for part, _ in self.draws
            ]
            found.append((excesses, masses))
        return found

    def _floats(self, levels: FloatArray) -> FloatArray:
        """Return `survival` in float64 at many levels."""
        reached = []
        for excesses, masses in self._sides:
            within = levels < excesses[-1]
            reached.append((within, [np.interp(levels, excesses, mass) for mass in masses]))
        (on_left, left), (on_right, right) = reached
        both = [a + b for a, b in zip(left, right, strict=True)]
        total: FloatArray = (
            on_left * self._powers(left)
            + on_right * self._powers(right)
            - (on_left & on_right) * self._powers(both)
        )
        return total

    def _powers(self, masses: Sequence[FloatArray]) -> FloatArray:
        logs = np.zeros(masses[0].shape)
        with np.errstate(divide="ignore"):
            for (_, count), mass in zip(self.draws, masses, strict=True):
                if count:
                    logs += count * np.log1p(-np.minimum(mass, 1.0))
        return np.exp(logs)


def _octaves(low: float, high: float) -> Iterator[tuple[float, float]]:
    """Yield intervals that fill one and halve towards its low end."""
    width = high - low
    for step in range(_OCTAVES):
        yield low + width / 2 ** (step + 1), low + width / 2**step
    yield low, low + width / 2**_OCTAVES


def sample_noiseless(
    target: Population,
    draws: Sequence[tuple[Population, int]],
    replicas: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw the largest excess error on P among all empirical minimisers, (replicas,).

    Parameters
    ----------
    target : Population
        P, without noise.
    draws : sequence of (Population, int)
        Where the samples come from, and how many from each; without noise, with P's target.
    replicas : int
    rng : numpy Generator

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from fltheory.learnability import Source
    >>> from fltheory.learnability.populations.population import as_population
    >>> p = as_population(Source.uniform(0, 1, Fraction(1, 2)))
    >>> bool(sample_noiseless(p, [(p, 10**6)], 5, np.random.default_rng(0)).max() < 1e-4)
    True
    """
    centre = float(target.best)
    left = np.full(replicas, float(min(target.places)))
    right = np.full(replicas, float(max(target.places)))
    for population, count in draws:
        marginal = population.marginal
        edges = np.array(marginal.edges, dtype=np.float64)
        masses = np.cumsum([0.0, *map(float, marginal.masses)])
        below = float(marginal.below(target.best))
        lower = rng.binomial(count, below, replicas)
        for side, share, numbers in ((-1, below, lower), (1, 1 - below, count - lower)):
            gap = share * _least_of(numbers, rng)
            places = np.interp(below + side * gap, masses, edges)
            near = np.where(numbers > 0, places, -np.inf if side < 0 else np.inf)
            if side < 0:
                left = np.maximum(left, np.minimum(near, centre))
            else:
                right = np.minimum(right, np.maximum(near, centre))
    return np.maximum(excess_at(target, left), excess_at(target, right))


def _least_of(numbers: np.ndarray, rng: np.random.Generator) -> FloatArray:
    """Draw the least of so many uniform numbers, one where there are none."""
    with np.errstate(divide="ignore"):
        logs = np.log(rng.random(numbers.size)) / numbers
    return np.asarray(-np.expm1(logs))
