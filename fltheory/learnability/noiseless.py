"""The exact law of empirical risk minimisation without noise, on thresholds.

Without noise a threshold is right on all samples if and only if no sample lies between it and t*. The
worst one that is, on either side, reaches up to the nearest sample (or beyond all, where there is none).
So its excess error on P is above e with probability ``L + R - LR``: that no sample falls within the reach
of e on the left, on the right, on both. It is a sum of three products of powers, one factor for each of
the distributions that samples come from, be they independent draws from Q or so many from each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from fltheory import validation
from fltheory.learnability.marginal import Rational, rational
from fltheory.learnability.population import Population

_NODES = 24
_OCTAVES = 64
_HALVINGS = 200


class NoiselessLaw:
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
        For noisy sources, or a second target.
    """

    def __init__(self, target: Population, draws: Sequence[tuple[Population, int]]) -> None:
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
            mass = sum((abs(part.below(end) - part.below(self.centre)) for end in ends), Fraction(0))
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
        low, high = 0.0, float(self._largest)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (middle, high) if self._float(middle) > delta else (low, middle)
        return high

    def mean(self) -> float:
        """Return the expected excess error, the integral of `survival`, by Gauss's rule.

        The integrand is a polynomial between the excess errors of places; intervals shrink
        towards each of them by halves, so that any sample size is resolved.
        """
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        total = 0.0
        for low, high in pairwise(self._levels):
            for left, right in _octaves(low, high):
                half = (right - left) / 2
                points = left + half * (1 + nodes)
                values = np.array([self._float(float(point)) for point in points])
                total += half * float(weights @ values)
        return total

    @property
    def _largest(self) -> Fraction:
        return max(self._excess(place) for place in self.target.places)

    @property
    def _levels(self) -> list[float]:
        """Excess errors at which the law has a kink: those of all places of P and draws."""
        parts = [self.target, *(part for part, _ in self.draws)]
        return sorted({float(self._excess(place)) for part in parts for place in part.places})

    def _float(self, level: float) -> float:
        """Return `survival` in float64."""
        masses = [self._masses(level, side) for side in (-1, 1)]
        left, right = (None if m is None else self._power(m) for m in masses)
        if left is None or right is None:
            return (left or 0.0) + (right or 0.0)
        assert masses[0] is not None
        assert masses[1] is not None
        both = [a + b for a, b in zip(*masses, strict=True)]
        return left + right - self._power(both)

    def _power(self, masses: Sequence[float]) -> float:
        if max(masses, default=0.0) >= 1:
            return 0.0
        exponents = (
            count * math.log1p(-mass)
            for (_, count), mass in zip(self.draws, masses, strict=True)
        )
        return math.exp(sum(exponents))

    def _masses(self, level: float, side: int) -> list[float] | None:
        end = self._reach(Fraction(level), side)
        if end is None:
            return None
        return [float(abs(part.below(end) - part.below(self.centre))) for part, _ in self.draws]


def _octaves(low: float, high: float) -> Iterator[tuple[float, float]]:
    """Yield intervals that fill one and halve towards its low end."""
    width = high - low
    for step in range(_OCTAVES):
        yield low + width / 2 ** (step + 1), low + width / 2**step
    yield low, low + width / 2**_OCTAVES
