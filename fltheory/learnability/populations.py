"""Threshold classifiers on the line, for populations with excess errors in closed form.

``h_t`` predicts +1 at and above t. A source has a marginal with piecewise constant density, a
target t*, and labels that are correct with probability ``(1 + margin)/2``, where ``margin = scale
|x - t*|^kappa``. Then ``excess(h_t)`` is the integral of the density times the margin from t* to t,
which is a power of the distance on each piece. Near t*, ``P(h_t != h*) = |t - t*|`` is
``excess^(1/(kappa + 1))`` up to a constant. So the Bernstein exponent is ``beta = 1/(kappa + 1)``,
and any beta in (0, 1] is obtained from ``kappa = 1/beta - 1``. With beta = 1 and scale = 1 there is
no noise. A population is a mixture of sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from fltheory.validation import FloatArray

Rational: TypeAlias = Fraction | int | str | float


@dataclass(frozen=True)
class Marginal:
    """A distribution with mass ``masses[i]`` uniform between ``edges[i]`` and ``edges[i + 1]``.

    Parameters
    ----------
    edges : sequence of numbers, (k + 1,)
        In increasing order.
    masses : sequence of numbers, (k,)
        Not negative, with sum 1. Floats are read as their exact binary values.

    Raises
    ------
    ValueError
        If edges are out of order, or masses are not probabilities.
    """

    edges: tuple[Fraction, ...]
    masses: tuple[Fraction, ...]

    def __init__(self, edges: Sequence[Rational], masses: Sequence[Rational]) -> None:
        places = tuple(rational("edges", edge) for edge in edges)
        weights = tuple(rational("masses", mass) for mass in masses)
        if len(places) < 2 or any(low >= high for low, high in pairwise(places)):
            raise ValueError(f"edges must be two or more in increasing order, got {list(edges)}")
        check_weights("masses", weights, len(places) - 1)
        object.__setattr__(self, "edges", places)
        object.__setattr__(self, "masses", weights)

    @property
    def densities(self) -> tuple[Fraction, ...]:
        """The density between neighbouring edges."""
        widths = (high - low for low, high in pairwise(self.edges))
        return tuple(mass / width for mass, width in zip(self.masses, widths, strict=True))

    def density_between(self, low: Fraction, high: Fraction) -> Fraction:
        """Return the density on an interval that crosses no edge."""
        for (left, right), density in zip(pairwise(self.edges), self.densities, strict=True):
            if left <= low and high <= right:
                return density
        return Fraction(0)

    def below(self, point: Fraction) -> Fraction:
        """Return the mass below a point."""
        total = Fraction(0)
        for (left, right), mass in zip(pairwise(self.edges), self.masses, strict=True):
            if point <= left:
                break
            total += mass * min(Fraction(1), (point - left) / (right - left))
        return total

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draw points, independent of each other."""
        left = np.array(self.edges[:-1], dtype=np.float64)
        widths = np.diff(np.array(self.edges, dtype=np.float64))
        pieces = rng.choice(widths.size, size=size, p=np.array(self.masses, dtype=np.float64))
        points: FloatArray = left[pieces] + widths[pieces] * rng.random(size)
        return points


def uniform(low: Rational, high: Rational) -> Marginal:
    """Return the uniform distribution on an interval."""
    return Marginal((low, high), (1,))


def rational(name: str, value: Rational) -> Fraction:
    """Return a number as a fraction.

    Raises
    ------
    ValueError
        If it is not a finite number.
    """
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"{name} must be made of finite numbers, got {value!r}") from error


def check_weights(name: str, weights: Sequence[Fraction], count: int) -> None:
    """Raise ValueError unless ``weights`` are ``count`` probabilities with sum 1."""
    if len(weights) != count or min(weights) < 0 or sum(weights) != 1:
        shown = [str(weight) for weight in weights]
        raise ValueError(f"{name} must be {count} numbers of at least 0 with sum 1, got {shown}")


Number: TypeAlias = Fraction | float
_HALVINGS = 60


@dataclass(frozen=True)
class Source:
    """One distribution of points and labels.

    Parameters
    ----------
    marginal : Marginal
    target : number
        t*, the threshold with the fewest wrong labels.
    beta : number
        Bernstein exponent, in (0, 1].
    scale : number
        Margin at distance one from the target (beta < 1), or everywhere (beta = 1).

    Raises
    ------
    ValueError
        If a number is out of range, or the margin is above 1 somewhere on the support.

    Examples
    --------
    >>> Source.uniform(0, 1, target="1/2", beta="1/2", scale=2).kappa
    Fraction(1, 1)
    """

    marginal: Marginal
    target: Fraction
    beta: Fraction
    scale: Fraction

    def __init__(
        self,
        marginal: Marginal,
        target: Rational,
        *,
        beta: Rational = 1,
        scale: Rational = 1,
    ) -> None:
        object.__setattr__(self, "marginal", marginal)
        for name, value in (("target", target), ("beta", beta), ("scale", scale)):
            object.__setattr__(self, name, rational(name, value))
        if not 0 < self.beta <= 1:
            raise ValueError(f"beta must be in (0, 1], got {beta}")
        reach = max(abs(edge - self.target) for edge in marginal.edges)
        if not 0 < self.scale * _power(reach, self.kappa) <= 1:
            raise ValueError(
                f"scale must be above 0 and such that the margin scale |x - t*|^{self.kappa} is "
                f"at most 1 up to the distance {reach}, got {scale}"
            )

    @classmethod
    def uniform(
        cls,
        low: Rational,
        high: Rational,
        target: Rational,
        *,
        beta: Rational = 1,
        scale: Rational = 1,
    ) -> Source:
        """Return a source whose points are uniform on an interval.

        Examples
        --------
        >>> Source.uniform(0, 1, "1/2").excess("3/4")
        Fraction(1, 4)
        """
        return cls(uniform(low, high), target, beta=beta, scale=scale)

    @property
    def kappa(self) -> Fraction:
        """Exponent of the margin, ``1/beta - 1``."""
        return 1 / self.beta - 1

    def excess(self, threshold: Rational) -> Number:
        """Return ``R(h_t) - R(h*)``, as a fraction if kappa is an integer, otherwise as a float."""
        low, high = sorted((rational("threshold", threshold), self.target))
        edges = self.marginal.edges
        places = [low, *(edge for edge in edges if low < edge < high), high]
        total: Number = Fraction(0)
        for left, right in pairwise(places):
            density = self.marginal.density_between(left, right)
            far, near = sorted((abs(left - self.target), abs(right - self.target)), reverse=True)
            grown = _power(far, self.kappa + 1) - _power(near, self.kappa + 1)
            total = total + density * grown * self.scale / (self.kappa + 1)
        return total

    def disagreement(self, threshold: Rational) -> Fraction:
        """Return ``P(h_t != h*)``."""
        place = rational("threshold", threshold)
        return abs(self.marginal.below(place) - self.marginal.below(self.target))

    def margin(self, points: FloatArray) -> FloatArray:
        """Return the margin at points, measured from this source's own target."""
        distance = np.abs(points - float(self.target))
        scaled: FloatArray = float(self.scale) * distance ** float(self.kappa)
        return scaled

    def slope(self, point: float, density: Fraction) -> float:
        """Return the derivative of the excess at a point where the density is known."""
        side = 1.0 if point > self.target else -1.0
        return side * float(density) * float(self.margin(np.array([point]))[0])


def _power(base: Fraction, exponent: Fraction) -> Number:
    """Return a power, as a fraction if the exponent is an integer."""
    if exponent.denominator == 1:
        return base ** int(exponent)
    return float(base) ** float(exponent)


@dataclass(frozen=True)
class Population:
    """A mixture of sources.

    Parameters
    ----------
    sources : sequence of Source
    weights : sequence of numbers
        Probability of each; equal by default.

    Raises
    ------
    ValueError
        If there is not one weight for each source, or the weights are not probabilities.
    """

    sources: tuple[Source, ...]
    weights: tuple[Fraction, ...]

    def __init__(self, sources: Sequence[Source], weights: Sequence[Rational] = ()) -> None:
        chosen = tuple(sources)
        given = weights or [Fraction(1, max(len(chosen), 1))] * len(chosen)
        shares = tuple(rational("weights", weight) for weight in given)
        if not chosen:
            raise ValueError("sources must not be empty, got none")
        check_weights("weights", shares, len(chosen))
        object.__setattr__(self, "sources", chosen)
        object.__setattr__(self, "weights", shares)

    @cached_property
    def present(self) -> tuple[tuple[Fraction, Source], ...]:
        """The sources of positive weight, with their weights."""
        pairs = zip(self.weights, self.sources, strict=True)
        return tuple((weight, source) for weight, source in pairs if weight > 0)

    @cached_property
    def places(self) -> tuple[Fraction, ...]:
        """Edges and targets, in order; all densities are constant between neighbours."""
        found: set[Fraction] = set()
        for _, source in self.present:
            found |= {source.target, *source.marginal.edges}
        return tuple(sorted(found))

    @property
    def targets(self) -> tuple[Fraction, ...]:
        """The sources' targets, each once, in order."""
        return tuple(sorted({source.target for _, source in self.present}))

    @property
    def beta(self) -> Fraction:
        """The largest Bernstein exponent, if all sources share a target with mass around it."""
        return max(source.beta for _, source in self.present)

    @cached_property
    def marginal(self) -> Marginal:
        """The points' distribution."""
        masses = [self.below(high) - self.below(low) for low, high in pairwise(self.places)]
        return Marginal(self.places, masses)

    def below(self, point: Rational) -> Fraction:
        """Return the mass below a point."""
        place = rational("point", point)
        return sum((w * s.marginal.below(place) for w, s in self.present), Fraction(0))

    def disagreement(self, threshold: Rational) -> Fraction:
        """Return ``P(h_t != h*)``."""
        place = rational("threshold", threshold)
        return abs(self.below(place) - self.below(self.best))

    def excess(self, threshold: Rational) -> Number:
        """Return ``R(h_t) - R(h*)``, where h* is the best hypothesis of the class."""
        return self._sum_of_excesses(rational("threshold", threshold)) - self.least

    @cached_property
    def best(self) -> Fraction:
        """The threshold of h*, or the lowest one if there are several."""
        return min(self._candidates, key=lambda place: (self._sum_of_excesses(place), place))

    @cached_property
    def least(self) -> Number:
        """The total excess error of h* over the sources' own best hypotheses."""
        return self._sum_of_excesses(self.best)

    def _sum_of_excesses(self, place: Fraction) -> Number:
        total: Number = Fraction(0)
        for weight, source in self.present:
            total = total + weight * source.excess(place)
        return total

    @property
    def _candidates(self) -> Sequence[Fraction]:
        """Return candidate thresholds that include a best one.

        Between two places the derivative increases, because each source's derivative does. So a
        minimum lies either at one of the places or at the only zero of the derivative, which is
        found by bisection.
        """
        if len(self.targets) == 1:
            return self.targets
        inner = (self._stationary(low, high) for low, high in pairwise(self.places))
        return (*self.places, *(place for place in inner if place is not None))

    def _stationary(self, low: Fraction, high: Fraction) -> Fraction | None:
        if all(source.kappa == 0 for _, source in self.present):
            return None
        parts = [
            (weight * source.marginal.density_between(low, high), source)
            for weight, source in self.present
        ]

        def slope(point: float) -> float:
            return sum(source.slope(point, density) for density, source in parts)

        left, right = float(low), float(high)
        for _ in range(_HALVINGS):
            middle = (left + right) / 2
            left, right = (middle, right) if slope(middle) < 0 else (left, middle)
        inside = float(low) < left and right < float(high)
        return Fraction((left + right) / 2) if inside else None


def mixture(
    clients: Population | Source, server: Population | Source, server_share: Rational
) -> Population:
    """Return SA-FL's mixture ``Q = lambda_1 D + lambda_2 P``, with the server's share lambda_2.

    Raises
    ------
    ValueError
        If the share is outside [0, 1].
    """
    share = rational("server_share", server_share)
    if not 0 <= share <= 1:
        raise ValueError(f"server_share must be in [0, 1], got {server_share}")
    parts = [(1 - share, as_population(clients)), (share, as_population(server))]
    pairs = [(outer * inner, source) for outer, part in parts for inner, source in part.present]
    return Population([source for _, source in pairs], [weight for weight, _ in pairs])


def as_population(part: Population | Source) -> Population:
    """Return a population unchanged, or a source as a population with one source."""
    return part if isinstance(part, Population) else Population([part])


def excess_at(population: Population, thresholds: FloatArray) -> FloatArray:
    """Return the excess error at many thresholds, in float64."""
    clipped = np.clip(thresholds, float(population.places[0]), float(population.places[-1]))
    total = np.zeros(clipped.shape)
    for weight, source in population.present:
        centre, power = float(source.target), float(source.kappa) + 1
        for (low, high), density in zip(
            pairwise(source.marginal.edges), source.marginal.densities, strict=True
        ):
            factor = float(weight * density * source.scale) / power
            ends = [np.clip(end, float(low), float(high)) for end in (clipped, centre)]
            grown = [np.sign(e - centre) * np.abs(e - centre) ** power for e in ends]
            total += factor * np.abs(grown[0] - grown[1])
    return np.maximum(total - float(population.least), 0.0)


def disagreement_at(population: Population, thresholds: FloatArray) -> FloatArray:
    """Return ``P(h_t != h*)`` at many thresholds."""
    marginal = population.marginal
    edges = np.array(marginal.edges, dtype=np.float64)
    below = np.concatenate(([0.0], np.cumsum(np.array(marginal.masses, dtype=np.float64))))
    covered: FloatArray = np.interp(thresholds, edges, below)
    return np.abs(covered - float(population.below(population.best)))
