"""SA-FL's Assumptions 1 and 2 computed and checked on the whole class of thresholds.

Assumption 2 asks for alpha and beta with ``|eps_P(h) - eps_Q(h)| <= alpha eps_Q(h)^beta`` for
every h. It fails for all beta > 0 if and only if some h has ``eps_Q(h) = 0 < eps_P(h)``: so Q's
best hypothesis must be best for P as well. For beta = 0 it always holds, with alpha = 1, and
Theorem 2 then says nothing.

Where it does not fail, and all sources share one target, both excess errors grow with the distance
from it on either side, are powers of it up to the first edge, and so the smallest alpha for a beta
is enclosed between what points attain and what intervals allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from fltheory.learnability.marginal import Rational, rational
from fltheory.learnability.population import Number, Population

_PIECES = 64


@dataclass(frozen=True)
class Relation:
    """How P and Q are related on the class of thresholds.

    Attributes
    ----------
    beta : Fraction or math.inf
        Largest exponent for which some alpha will do; zero where Assumption 2 fails.
    broken_at : Fraction or None
        A threshold with no excess error on Q but some on P.
    """

    beta: Fraction | float
    broken_at: Fraction | None

    @property
    def holds(self) -> bool:
        """Whether Assumption 2 holds for some beta > 0."""
        return self.broken_at is None


def relate(target: Population, training: Population) -> Relation:
    """Return the largest beta of Assumption 2, or a threshold at which it fails.

    Parameters
    ----------
    target, training : Population
        P and Q.

    Examples
    --------
    >>> from fltheory.learnability import Source, as_population, uniform
    >>> p = as_population(Source(uniform(0, 1), Fraction(1, 2)))
    >>> q = as_population(Source(uniform(0, Fraction(1, 2)), Fraction(1, 2)))
    >>> relate(p, q).broken_at  # Q ends at the target: it cannot tell 1/2 from 1
    Fraction(1, 1)
    """
    for place in _places(target, training):
        if training.excess(place) == 0 and target.excess(place) > 0:
            return Relation(Fraction(0), place)
    sides = [_exponent(target, training, side) for side in (-1, 1)]
    return Relation(min(sides), None)


def _places(target: Population, training: Population) -> tuple[Fraction, ...]:
    """Return thresholds that show a failure if any does: edges, targets, Q's best, and beyond.

    Q's excess error vanishes on intervals between such places, at whose far end P's is largest.
    """
    found = sorted({*target.places, *training.places, training.best})
    middles = [(low + high) / 2 for low, high in pairwise(found)]
    return (*found[::-1], *middles)


def _exponent(target: Population, training: Population, side: int) -> Fraction | float:
    """Return the largest beta that one side of the common target allows."""
    powers_p, powers_q = (_first_powers(p, training.best, side) for p in (target, training))
    if not powers_q:
        # Neither has mass there: both start at one edge, in proportion to the distance from it.
        return Fraction(1)
    powers = {k for k in {*powers_p, *powers_q} if powers_p.get(k, 0) != powers_q.get(k, 0)}
    if not powers:
        return math.inf
    return min(powers) / min(powers_q)


def _first_powers(population: Population, centre: Fraction, side: int) -> dict[Fraction, Fraction]:
    """Return exponents and coefficients of the excess error next to the target."""
    beyond = [p for p in population.places if side * (p - centre) > 0]
    if not beyond:
        return {}
    nearest = min(beyond, key=lambda place: abs(place - centre))
    low, high = sorted((centre, nearest))
    found: dict[Fraction, Fraction] = {}
    for weight, source in population.present:
        density = weight * source.marginal.density_between(low, high)
        if density > 0:
            power = source.kappa + 1
            found[power] = found.get(power, Fraction(0)) + density * source.scale / power
    return found


@dataclass(frozen=True)
class AlphaBounds:
    """The smallest alpha of Assumption 2 for one beta, enclosed.

    Attributes
    ----------
    beta : Fraction
    at_least, at_most : Fraction or float
        What some threshold needs, and what suffices for every threshold.
    where : Fraction
        The threshold that needs the former.
    """

    beta: Fraction
    at_least: Number
    at_most: Number
    where: Fraction


def alpha_bounds(target: Population, training: Population, beta: Rational) -> AlphaBounds:
    """Enclose the smallest alpha for which Assumption 2 holds with this beta, over all thresholds.

    With beta = 1 and constant margins both excess errors are linear between places, so their ratio
    is monotone there and the enclosure is one fraction.

    Raises
    ------
    ValueError
        For a beta out of the range that `relate` gives, or sources with different targets.
    """
    exponent = rational("beta", beta)
    found = relate(target, training)
    if not (found.holds and 0 < exponent <= found.beta):
        raise ValueError(f"beta must be above 0 and at most {found.beta}, got {beta}")
    if len({*target.targets, *training.targets}) > 1:
        raise ValueError("target and training must share one target of all their sources")
    linear = exponent == 1 and all(
        source.kappa == 0 for part in (target, training) for _, source in part.present
    )
    lower: Number = Fraction(0)
    upper: Number = Fraction(0)
    where = training.best
    for near, far in _intervals(target, training, 1 if linear else _PIECES):
        needed = _ratio(target, training, exponent, far)
        if needed > lower:
            lower, where = needed, far
        if not linear:
            upper = max(upper, _most(target, training, exponent, near, far))
    return AlphaBounds(exponent, lower, lower if linear else upper, where)


def _intervals(
    target: Population, training: Population, pieces: int
) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield intervals away from the target on both sides, nearest end first."""
    centre = training.best
    places = sorted({*target.places, *training.places, centre})
    for ordered in (
        [place for place in places if place >= centre],
        [place for place in places[::-1] if place <= centre],
    ):
        for near, far in pairwise(ordered):
            step = (far - near) / pieces
            for piece in range(pieces):
                yield near + piece * step, near + (piece + 1) * step


def _ratio(target: Population, training: Population, beta: Fraction, place: Fraction) -> Number:
    on_p, on_q = target.excess(place), training.excess(place)
    if on_q == 0:
        return Fraction(0)
    if beta == 1:
        return _apart(on_p, on_q) / on_q
    return float(_apart(on_p, on_q)) / float(on_q) ** float(beta)


def _apart(on_p: Number, on_q: Number) -> Number:
    difference: Number = on_p - on_q
    return difference if difference >= 0 else -difference


def _most(
    target: Population, training: Population, beta: Fraction, near: Fraction, far: Fraction
) -> float:
    """Return a bound on the ratio between two thresholds on one side of the target."""
    if near == training.best:
        return _most_at_target(target, training, beta, far)
    on_p = float(target.excess(near)), float(target.excess(far))
    on_q = float(training.excess(near)), float(training.excess(far))
    if on_q[1] == 0:
        return 0.0
    return max(on_p[1] - on_q[0], on_q[1] - on_p[0]) / on_q[0] ** float(beta)


def _most_at_target(
    target: Population, training: Population, beta: Fraction, far: Fraction
) -> float:
    """Return a bound next to the target, where both are sums of powers r^k.

    Q's excess is at least its lowest power; each power of the difference over that, to the beta,
    is a power of r that is not negative, so largest at the far end.
    """
    side = 1 if far > training.best else -1
    reach = float(abs(far - training.best))
    powers_p, powers_q = (_first_powers(p, training.best, side) for p in (target, training))
    if not powers_q:
        return 0.0
    lowest = min(powers_q)
    total = 0.0
    for power in {*powers_p, *powers_q}:
        gap = abs(float(powers_p.get(power, Fraction(0)) - powers_q.get(power, Fraction(0))))
        total += gap * reach ** float(power - beta * lowest) if gap else 0.0
    return total / float(powers_q[lowest]) ** float(beta)


def bernstein_constant(population: Population, beta: Rational) -> float:
    """Return an alpha of Assumption 1 for a beta that will do for all thresholds, or infinity.

    With beta = 1 and constant margins both sides are linear between places, and it is the least
    such alpha. Else, between two thresholds on one side of the target, the excess error is at
    least the mass between target and threshold times the margin at the near one, and at least its
    value there.

    Raises
    ------
    ValueError
        For sources with different targets and margins that are not constant.
    """
    exponent = rational("beta", beta)
    if exponent == 1 and all(source.kappa == 0 for _, source in population.present):
        pairs = [(population.disagreement(p), population.excess(p)) for p in population.places]
        return max((_over(float(apart), float(excess)) for apart, excess in pairs), default=0.0)
    if len(population.targets) > 1:
        raise ValueError("population must have one target of all its sources, or constant margins")
    intervals = _intervals(population, population, _PIECES)
    return max(_bernstein_most(population, float(exponent), *ends) for ends in intervals)


def _bernstein_most(population: Population, beta: float, near: Fraction, far: Fraction) -> float:
    apart = float(population.disagreement(far))
    if apart == 0:
        return 0.0
    if near != population.best:
        margin = min(float(s.margin(np.array([float(near)]))[0]) for _, s in population.present)
        inside = apart - float(population.disagreement(near))
        return _over(apart, (float(population.excess(near)) + margin * inside) ** beta)
    powers = _first_powers(population, near, 1 if far > near else -1)
    lowest, reach = min(powers), float(abs(far - near))
    if float(lowest) * beta > 1:
        return math.inf
    return apart / (float(powers[lowest]) * reach ** float(lowest)) ** beta


def _over(above: float, below: float) -> float:
    if below == 0:
        return math.inf if above > 0 else 0.0
    return above / below
