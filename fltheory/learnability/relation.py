"""SA-FL's Assumptions 1 and 2, computed and checked on the whole class of thresholds.

Assumption 2 asks for alpha and beta with ``|eps_P(h) - eps_Q(h)| <= alpha eps_Q(h)^beta`` for every
h. It fails for all beta > 0 if and only if some h has ``eps_Q(h) = 0 < eps_P(h)``. So Q's best
hypothesis must be best for P as well. With beta = 0 and alpha = 1 the assumption always holds, but
then Theorem 2 is vacuous.

If the assumption holds and all sources share one target, both excess errors grow with the distance
from the target on either side, and they are powers of the distance up to the first edge. So the
smallest alpha for a given beta is enclosed between lower bounds from points and upper bounds from
intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from fltheory.learnability.populations import (
    Number,
    Population,
    Rational,
    Source,
    disagreement_at,
    excess_at,
    rational,
)
from fltheory.validation import FloatArray

_PIECES = 1200
_INNERMOST = 1e-9
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PositiveRelation:
    """The relation between P and Q on the class of thresholds.

    Attributes
    ----------
    beta : Fraction or math.inf
        Largest exponent for which some alpha exists, or zero if Assumption 2 fails.
    broken_at : Fraction or None
        A threshold with no excess error on Q but some on P.
    """

    beta: Fraction | float
    broken_at: Fraction | None

    @property
    def holds(self) -> bool:
        """Whether Assumption 2 holds for some beta > 0."""
        return self.broken_at is None


def relate(target: Population, training: Population) -> PositiveRelation:
    """Return the largest beta of Assumption 2, or a threshold at which the assumption fails.

    Parameters
    ----------
    target, training : Population
        P and Q.

    Examples
    --------
    >>> from fltheory.learnability import Source
    >>> from fltheory.learnability.populations import as_population
    >>> p = as_population(Source.uniform(0, 1, Fraction(1, 2)))
    >>> q = as_population(Source.uniform(0, Fraction(1, 2), Fraction(1, 2)))
    >>> relate(p, q).broken_at  # Q ends at the target: it cannot tell 1/2 from 1
    Fraction(1, 1)
    """
    for place in _places(target, training):
        if training.excess(place) == 0 and target.excess(place) > 0:
            return PositiveRelation(Fraction(0), place)
    sides = [_exponent(target, training, side) for side in (-1, 1)]
    return PositiveRelation(min(sides), None)


def _places(target: Population, training: Population) -> tuple[Fraction, ...]:
    """Return thresholds that reveal any failure: edges, targets, Q's best, and points beyond.

    Q's excess error can vanish only on intervals between such places, and P's excess error is
    largest at their far ends.
    """
    found = sorted({*target.places, *training.places, training.best})
    middles = [(low + high) / 2 for low, high in pairwise(found)]
    return (*found[::-1], *middles)


def _exponent(target: Population, training: Population, side: int) -> Fraction | float:
    """Return the largest beta that one side of the common target allows."""
    powers_p, powers_q = (_first_powers(p, training.best, side) for p in (target, training))
    if not powers_q:
        # Neither has mass there, so both errors start at the same edge, in proportion to the
        # distance from it.
        return Fraction(1)
    powers = {k for k in {*powers_p, *powers_q} if powers_p.get(k, 0) != powers_q.get(k, 0)}
    if not powers:
        return math.inf
    return min(powers) / min(powers_q)


def _first_powers(population: Population, centre: Fraction, side: int) -> dict[Fraction, Fraction]:
    """Return the excess error next to the target as exponents with coefficients."""
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
        A value required by some threshold, and a value that suffices for every threshold.
    where : Fraction
        The threshold that requires ``at_least``.
    """

    beta: Fraction
    at_least: Number
    at_most: Number
    where: Fraction


def alpha_bounds(target: Population, training: Population, beta: Rational) -> AlphaBounds:
    """Enclose the smallest alpha for which Assumption 2 holds with this beta, over all thresholds.

    With beta = 1 and constant margins, both excess errors are linear between places, so their ratio
    is monotone there and the enclosure is one fraction.

    Raises
    ------
    ValueError
        If beta is not above 0, or above the value that `relate` returns, sources have different
        targets, or Q has mass on one side of the target but none next to it.
    """
    exponent = rational("beta", beta)
    found = relate(target, training)
    if not (found.holds and 0 < exponent <= found.beta):
        raise ValueError(f"beta must be above 0 and at most {found.beta}, got {beta}")
    if len({*target.targets, *training.targets}) > 1:
        raise ValueError("target and training must have the same target in all their sources")
    if _content(target) == _content(training):
        return AlphaBounds(exponent, Fraction(0), Fraction(0), training.best)
    if exponent == 1 and _has_constant_margins(target) and _has_constant_margins(training):
        return _alpha_at_places(target, training)
    return _alpha_by_intervals(target, training, exponent)


def _content(population: Population) -> dict[Source, Fraction]:
    """Return the weight of each source, summed over repetitions."""
    found: dict[Source, Fraction] = {}
    for weight, source in population.present:
        found[source] = found.get(source, Fraction(0)) + weight
    return found


def _has_constant_margins(population: Population) -> bool:
    return all(source.kappa == 0 for _, source in population.present)


def _alpha_at_places(target: Population, training: Population) -> AlphaBounds:
    largest, where = Fraction(0), training.best
    for place in sorted({*target.places, *training.places}):
        on_p, on_q = Fraction(target.excess(place)), Fraction(training.excess(place))
        if on_q > 0 and abs(on_p - on_q) / on_q > largest:
            largest, where = abs(on_p - on_q) / on_q, place
    return AlphaBounds(Fraction(1), largest, largest, where)


def _alpha_by_intervals(target: Population, training: Population, beta: Fraction) -> AlphaBounds:
    lower, upper, where = 0.0, 0.0, float(training.best)
    for side in (-1, 1):
        ends = _ends(target, training, side)
        if not ends.size:
            continue
        on_p, on_q = excess_at(target, ends), excess_at(training, ends)
        needed = np.abs(on_p - on_q) / on_q ** float(beta)
        if needed.max() > lower:
            lower, where = float(needed.max()), float(ends[needed.argmax()])
        most = np.maximum(on_p[1:] - on_q[:-1], on_q[1:] - on_p[:-1]) / on_q[:-1] ** float(beta)
        inner = _most_at_target(target, training, beta, Fraction(float(ends[0])))
        upper = max(upper, inner, float(most.max()) * (1 + _ROUNDING))
    return AlphaBounds(beta, lower, upper, Fraction(where))


def _ends(target: Population, training: Population, side: int) -> FloatArray:
    """Return the ends of intervals that cover one side, except next to the target.

    Neighbouring ends differ by a small part of their distance from the target.
    """
    centre = float(training.best)
    places = {float(place) for place in (*target.places, *training.places)}
    reach = [side * (place - centre) for place in places if side * (place - centre) > 0]
    if not reach:
        return np.zeros(0)
    if not _first_powers(training, training.best, side):
        if training.excess(training.places[-1 if side > 0 else 0]) == 0:
            return np.zeros(0)
        raise ValueError(
            "training must have mass right next to its target on each side on which it has any mass"
        )
    distances = np.geomspace(_INNERMOST * min(reach), max(reach), _PIECES)
    return centre + side * np.unique(np.concatenate((distances, np.array(reach))))


def _most_at_target(
    target: Population, training: Population, beta: Fraction, far: Fraction
) -> float:
    """Return a bound on the ratio next to the target, where both errors are sums of powers r^k.

    Q's excess is at least its lowest power. Divided by that lowest power to the beta, each power in
    the difference is a nonnegative power of r, so it is largest at the far end.
    """
    side = 1 if far > training.best else -1
    reach = float(abs(far - training.best))
    powers_p, powers_q = (_first_powers(p, training.best, side) for p in (target, training))
    lowest = min(powers_q)
    total = 0.0
    for power in {*powers_p, *powers_q}:
        gap = abs(float(powers_p.get(power, Fraction(0)) - powers_q.get(power, Fraction(0))))
        total += gap * reach ** float(power - beta * lowest) if gap else 0.0
    return total / float(powers_q[lowest]) ** float(beta)


def bernstein_constant(population: Population, beta: Rational) -> float:
    """Return an alpha of Assumption 1 that is valid for all thresholds, or infinity.

    With beta = 1 and constant margins, both sides are linear between places, and the result is the
    smallest such alpha. Otherwise, a lower bound is used for the excess error between two
    thresholds on one side of the target. It is the excess error at the nearer one plus the mass in
    between times the margin there.

    Raises
    ------
    ValueError
        If sources have different targets and margins are not constant.
    """
    exponent = rational("beta", beta)
    if exponent == 1 and _has_constant_margins(population):
        pairs = [(population.disagreement(p), population.excess(p)) for p in population.places]
        return max(_over(float(apart), float(excess)) for apart, excess in pairs)
    if len(population.targets) > 1:
        raise ValueError(
            "population must have the same target in all its sources, or constant margins"
        )
    return max(_bernstein_on(population, exponent, side) for side in (-1, 1))


def _bernstein_on(population: Population, beta: Fraction, side: int) -> float:
    centre = population.best
    places = [place for place in population.places if side * (place - centre) > 0]
    if not places:
        return 0.0
    reach = [float(side * (place - centre)) for place in places]
    distances = np.geomspace(_INNERMOST * min(reach), max(reach), _PIECES)
    distances = np.unique(np.concatenate((distances, np.array(reach))))
    ends = float(centre) + side * distances
    covered = disagreement_at(population, ends)
    margin = np.minimum.reduce([source.margin(ends) for _, source in population.present])
    excess = excess_at(population, ends)[:-1] + margin[:-1] * np.diff(covered)
    apart = covered[1:]
    ratios = apart[apart > 0] / excess[apart > 0] ** float(beta)
    return max(float(ratios.max()), _bernstein_at_target(population, beta, side, distances[0]))


def _bernstein_at_target(population: Population, beta: Fraction, side: int, reach: float) -> float:
    powers = _first_powers(population, population.best, side)
    if not powers:
        return 0.0
    lowest = min(powers)
    if lowest * beta > 1:
        return math.inf
    apart = float(population.disagreement(float(population.best) + side * reach))
    return apart / (float(powers[lowest]) * reach ** float(lowest)) ** float(beta)


def _over(above: float, below: float) -> float:
    if below == 0:
        return math.inf if above > 0 else 0.0
    return above / below
