"""The distribution of the empirical minimiser's error on thresholds, exact or sampled.

*Without noise*, the distribution is exact. A threshold is right on all samples if and only if no
sample lies between it and t*. The worst such threshold, on either side, reaches up to the nearest
sample (or past all points if there is none). So its excess error on P exceeds e with probability
``L + R - LR``, where L and R are the probabilities that no sample falls within the reach of e on
the left and on the right. This is a sum of three products of powers, with one factor for each
distribution that samples come from, whether they are independent draws from Q or a fixed number
from each.

*Sampled without noise*, only the samples next to the target matter. The number of the n samples
from a distribution on each side of t* is binomial, and the sample nearest to t* is an order
statistic, drawn by inversion. So the cost does not depend on the number of samples.

*Sampled with noise*, samples are drawn outward from the target. As a threshold moves from t* past
the samples on one side, in order of distance, its empirical risk is a random walk, which goes up
where the label was right and down where it was wrong. Distances are drawn in order as needed. The
mass within the j-th one is the share ``1 - exp(-sum_j E_j/(k - j + 1))`` of the side's mass with
exponential E_j, so a million samples cost only as many draws as lie near the target. If the walk W
is h above its minimum, and margins are at least mu from there on, ``((1 - mu)/(1 + mu))^W`` is a
supermartingale, so the walk returns to its minimum with probability at most ``((1 - mu)/(1 +
mu))^h``. It is stopped where this is below `LEFT_OUT`.

*Simulated with a server*, nothing is assumed about the two populations. Their targets may differ,
and the best threshold of the mixture may be bad for P. So the conditions of Theorem 3 are evaluated
by this simulation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fltheory import validation
from fltheory.learnability.populations import (
    Population,
    Rational,
    Source,
    excess_at,
    mixture,
    rational,
)
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_NODES = 24
# The survival (1 - mass)^n may drop within 1/n of the low end, so halving continues to 5e-20.
_OCTAVES = 64
_HALVINGS = 200


class NoiselessLaw(ReadOnlyArrays):
    """Distribution of the largest excess error on P among all empirical minimisers.

    Parameters
    ----------
    target : Population
        P, without noise.
    draws : sequence of (Population, int)
        The distributions of the samples, with the number of samples from each. All are without
        noise and have P's target.

    Raises
    ------
    ValueError
        If a source is noisy, targets differ, or there are no draws.

    Examples
    --------
    >>> from fltheory.learnability import Source
    >>> from fltheory.learnability.populations import as_population
    >>> p = as_population(Source.uniform(0, 1, Fraction(1, 2)))
    >>> NoiselessLaw(p, [(p, 2)]).survival(Fraction(1, 4))
    Fraction(7, 8)
    """

    def __init__(self, target: Population, draws: Sequence[tuple[Population, int]]) -> None:
        if not draws:
            raise ValueError("draws must not be empty, got none")
        parts = [target, *(population for population, _ in draws)]
        sources = [source for part in parts for _, source in part.present]
        if any(source.beta != 1 or source.scale != 1 for source in sources):
            raise ValueError("draws and target must be without noise: beta = 1 and scale = 1")
        if len({source.target for source in sources}) > 1:
            raise ValueError("draws and target must have the same target in all their sources")
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
        """Return the farthest threshold with at most this excess error, or None if all qualify."""
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
            If delta is outside (0, 1).
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

        Between the excess errors of neighbouring places, the integrand is a polynomial. Intervals
        are halved towards each of these errors, so that any sample size is resolved.
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
        """Excess errors where the distribution has a kink: at all places of P and of the draws."""
        parts = [self.target, *(part for part, _ in self.draws)]
        return sorted({float(self._excess(place)) for part in parts for place in part.places})

    @cached_property
    def _sides(self) -> list[tuple[FloatArray, list[FloatArray]]]:
        """Excess errors at the places on each side, and the mass of each draw up to each place."""
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
    """Yield intervals that cover ``low`` to ``high``, with lengths halving towards the low end."""
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
        The distributions of the samples, with the number of samples from each. All are without
        noise and have P's target.
    replicas : int
    rng : numpy Generator

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from fltheory.learnability import Source
    >>> from fltheory.learnability.populations import as_population
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
    """Draw the smallest of a given number of uniform numbers, for each entry; it is 1 if none."""
    with np.errstate(divide="ignore"):
        logs = np.log(rng.random(numbers.size)) / numbers
    return np.asarray(-np.expm1(logs))


LEFT_OUT = 1e-16
"""Bound on the probability that a walk reaches its minimum after it was stopped."""

_FIRST_WIDTH = 32
_LARGEST_BLOCK = 1 << 20


@dataclass(frozen=True)
class ErmSample(ReadOnlyArrays):
    """Excess errors of the worst empirical minimiser, one for each replica.

    Attributes
    ----------
    on_target, on_training : array, (replicas,)
        Excess errors on P and on Q.
    tagged_errors : array of int, (replicas,)
        Number of the minimiser's wrong labels among the tagged samples, minus that of the target.
    """

    on_target: FloatArray
    on_training: FloatArray
    tagged_errors: NDArray[np.int64]


def sample_erm(
    target: Population,
    training: Population,
    n: int,
    replicas: int,
    rng: np.random.Generator,
    *,
    tag: float = 0.0,
) -> ErmSample:
    """Draw n samples of Q and minimise the empirical risk, once per replica.

    Among all minimisers, the one with the largest excess error on P is taken.

    Parameters
    ----------
    target, training : Population
        P and Q; all their sources share one target.
    n, replicas : int
    rng : numpy Generator
    tag : float
        Each sample is tagged with this probability, for instance as one of the server's.

    Raises
    ------
    ValueError
        If sources have different targets, or ``tag`` is not a probability.
    """
    validation.whole_number("n", n, at_least=1)
    validation.whole_number("replicas", replicas, at_least=1)
    if len({*target.targets, *training.targets}) > 1:
        raise ValueError("target and training must have the same target in all their sources")
    validation.probability("tag", tag)
    right_count = rng.binomial(n, _mass(training, 1), size=replicas)
    left, right = (
        _Side(training, side).minimisers(count, tag, rng)
        for side, count in ((-1, n - right_count), (1, right_count))
    )
    errors = [
        np.where(walks.least <= other.least, excess_at(target, walks.reach), -1.0)
        for walks, other in ((left, right), (right, left))
    ]
    leftward = errors[0] >= errors[1]
    reach = np.where(leftward, left.reach, right.reach)
    return ErmSample(
        np.maximum(*errors),
        excess_at(training, reach),
        np.where(leftward, left.tagged_at_least, right.tagged_at_least),
    )


def _mass(population: Population, side: int) -> float:
    below = population.below(population.best)
    return float(below if side < 0 else 1 - below)


@dataclass
class _Walks:
    """The state of the replicas' walks on one side."""

    counts: NDArray[np.int64]
    passed: FloatArray
    height: NDArray[np.int64]
    least: NDArray[np.int64]
    reach: FloatArray
    tagged: NDArray[np.int64]
    tagged_at_least: NDArray[np.int64]

    @classmethod
    def started(cls, counts: NDArray[np.int64]) -> _Walks:
        none = np.zeros((4, counts.size), dtype=np.int64)
        reach = np.full(counts.size, np.nan)
        return cls(counts, np.zeros(counts.size), none[0], none[1], reach, none[2], none[3])


class _Side:
    """Samples on one side of the target, in order of distance."""

    def __init__(self, training: Population, side: int) -> None:
        centre, marginal = training.best, training.marginal
        beyond = [place for place in training.places if side * (place - centre) > 0]
        places = [centre, *sorted(beyond, key=lambda place: abs(place - centre))]
        covered = [abs(marginal.below(place) - marginal.below(centre)) for place in places]
        self._side, self._centre = side, float(centre)
        self._mass = _mass(training, side)
        self._places = np.array(places, dtype=np.float64)
        self._covered = np.array(covered, dtype=np.float64)
        self._sources = [source for _, source in training.present]
        self._shares = [
            _shares(training, source, weight, places) for weight, source in training.present
        ]

    def minimisers(self, counts: NDArray[np.int64], tag: float, rng: np.random.Generator) -> _Walks:
        """Return the walks with their minima and the range of their minimisers."""
        walks = _Walks.started(counts)
        active = np.arange(counts.size)
        done, width = 0, _FIRST_WIDTH
        while active.size:
            width = min(width, _LARGEST_BLOCK // active.size + 1)
            finished = self._advance(walks, active, done, width, tag, rng)
            active = active[~finished]
            done, width = done + width, 2 * width
        return walks

    def _advance(
        self,
        walks: _Walks,
        active: NDArray[np.intp],
        done: int,
        width: int,
        tag: float,
        rng: np.random.Generator,
    ) -> NDArray[np.bool_]:
        """Draw the next samples of the active replicas, and return which replicas are finished."""
        remaining = walks.counts[active, None] - (done + np.arange(width))
        exists = remaining > 0
        spacings = rng.standard_exponential(exists.shape) / np.maximum(remaining, 1)
        spent = walks.passed[active, None] + np.cumsum(spacings, axis=1)
        points = self._points(spent)
        right = rng.random(exists.shape) < (1 + self._margins(points)) / 2
        steps = np.where(exists, np.where(right, 1, -1), 0)
        points = np.where(exists, points, self._side * np.inf)
        tagged = np.where(rng.random(exists.shape) < tag, steps, 0) if tag else None
        self._record(walks, active, points, steps, tagged)
        walks.passed[active] = spent[:, -1]
        over = ~exists[:, -1]
        return over | self._left(walks, active, np.where(over, self._centre, points[:, -1]))

    def _record(
        self,
        walks: _Walks,
        active: NDArray[np.intp],
        points: FloatArray,
        steps: NDArray[np.int64],
        tagged: NDArray[np.int64] | None,
    ) -> None:
        """Record the last minimum so far, which extends up to the next sample."""
        rows = np.arange(active.size)
        before, walks.height[active] = _walked(walks.height[active], steps)
        least = np.minimum(walks.least[active], before.min(axis=1))
        is_least = before == least[:, None]
        last = before.shape[1] - 1 - np.argmax(is_least[:, ::-1], axis=1)
        found = is_least.any(axis=1)
        walks.reach[active] = np.where(found, points[rows, last], walks.reach[active])
        walks.least[active] = least
        if tagged is not None:
            tags, walks.tagged[active] = _walked(walks.tagged[active], tagged)
            kept = walks.tagged_at_least[active]
            walks.tagged_at_least[active] = np.where(found, tags[rows, last], kept)

    def _left(
        self, walks: _Walks, active: NDArray[np.intp], points: FloatArray
    ) -> NDArray[np.bool_]:
        """Return whether a walk almost certainly stays above its minimum from here on.

        Each source's margin grows with the distance. So beyond a point, Q's margin is at least the
        smallest margin that any source has at that point.
        """
        margin = np.minimum.reduce([source.margin(points) for source in self._sources])
        above = (walks.height[active] - walks.least[active]).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = above * (np.log1p(-margin) - np.log1p(margin))
        return (above > 0) & (chance < np.log(LEFT_OUT))

    def _points(self, spent: FloatArray) -> FloatArray:
        covered = -self._mass * np.expm1(-spent)
        points: FloatArray = np.interp(covered, self._covered, self._places)
        return points

    def _margins(self, points: FloatArray) -> FloatArray:
        """Return Q's margin, the mean of the sources' margins weighted by their densities."""
        if len({(source.beta, source.scale) for source in self._sources}) == 1:
            return self._sources[0].margin(points)
        ends = np.abs(self._places[1:] - self._centre)
        piece = np.minimum(np.searchsorted(ends, np.abs(points - self._centre)), ends.size - 1)
        parts = zip(self._shares, self._sources, strict=True)
        return np.sum([share[piece] * source.margin(points) for share, source in parts], axis=0)


def _walked(
    start: NDArray[np.int64], steps: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the values before each step and after the last step."""
    values = start[:, None] + np.cumsum(steps, axis=1)
    return np.concatenate((start[:, None], values[:, :-1]), axis=1), values[:, -1]


def _shares(
    training: Population, source: Source, weight: Fraction, places: Sequence[Fraction]
) -> FloatArray:
    """Return a source's share of the density on each piece of one side."""
    shares = []
    for ends in pairwise(places):
        low, high = sorted(ends)
        whole = training.marginal.density_between(low, high)
        part = weight * source.marginal.density_between(low, high)
        shares.append(float(part / whole) if whole else 0.0)
    return np.array(shares, dtype=np.float64)


_LARGEST_BATCH = 1 << 20


@dataclass(frozen=True)
class ServerAssisted(ReadOnlyArrays):
    """The errors of SA-FL and of the server alone, one entry per replica.

    Attributes
    ----------
    together : array, (replicas,)
        Excess error on P of the worst empirical minimiser over the server's and clients' samples.
    server_only : array, (replicas,)
        Excess error on P of the worst empirical minimiser over the server's samples alone.
    no_worse_on_server : array of bool, (replicas,)
        Whether the minimiser over all samples makes at most as many errors on the server's samples
        as h_Q* does. This is the first condition of Theorem 3.
    """

    together: FloatArray
    server_only: FloatArray
    no_worse_on_server: NDArray[np.bool_]


def sample_server_assisted(
    server: Population,
    clients: Population,
    n_server: int,
    n_clients: int,
    replicas: int,
    rng: np.random.Generator,
    *,
    target: Population | None = None,
) -> ServerAssisted:
    """Draw the server's samples from P, or P', and the clients' from D, once per replica.

    Parameters
    ----------
    server, clients : Population
        The distributions P and D.
    n_server, n_clients : int
        The sample sizes n_T and n_S.
    replicas : int
    rng : numpy Generator
    target : Population, optional
        P, on which errors are measured, if the server's samples come from another P'.

    Raises
    ------
    ValueError
        If sources of P have different targets, or a count is below 1.
    """
    judge = server if target is None else target
    if len(judge.targets) > 1:
        raise ValueError("target must have the same target in all its sources")
    for name, count in (("n_server", n_server), ("n_clients", n_clients), ("replicas", replicas)):
        validation.whole_number(name, count, at_least=1)
    best = float(best_together(server, clients, n_server, n_clients))
    batch = max(1, _LARGEST_BATCH // (n_server + n_clients))
    parts = []
    for start in range(0, replicas, batch):
        size = min(batch, replicas - start)
        points, labels = draw(server, (size, n_server), rng)
        others, other_labels = draw(clients, (size, n_clients), rng)
        chosen = worst_minimiser(
            judge,
            np.concatenate((points, others), axis=1),
            np.concatenate((labels, other_labels), axis=1),
        )
        alone = worst_minimiser(judge, points, labels)
        errors = [_errors(points, labels, place) for place in (chosen.inside, best)]
        parts.append((chosen.excess, alone.excess, errors[0] <= errors[1]))
    together, server_only, no_worse = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ServerAssisted(together, server_only, no_worse)


def best_together(server: Population, clients: Population, n_server: int, n_clients: int) -> float:
    """Return the best threshold of Q, the mixture in proportion to the sample sizes."""
    share = n_server / (n_server + n_clients)
    return float(mixture(clients, server, share).best)


def draw(
    population: Population, size: tuple[int, int], rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw points with labels +1 and -1."""
    shares = [float(weight) for weight, _ in population.present]
    chosen = rng.choice(len(shares), size=size, p=np.array(shares) / sum(shares))
    points = np.zeros(size)
    labels = np.zeros(size, dtype=np.int64)
    for index, (_, source) in enumerate(population.present):
        places = source.marginal.draw(rng, size)
        right = rng.random(size) < (1 + source.margin(places)) / 2
        side = np.where(places >= float(source.target), 1, -1)
        points = np.where(chosen == index, places, points)
        labels = np.where(chosen == index, np.where(right, side, -side), labels)
    return points, labels


@dataclass(frozen=True)
class Minimiser(ReadOnlyArrays):
    """The empirical minimiser with the largest excess error, one entry per replica.

    Attributes
    ----------
    excess : array, (replicas,)
        Supremum over the minimiser's gap between samples.
    inside : array, (replicas,)
        A threshold inside that gap.
    """

    excess: FloatArray
    inside: FloatArray


def worst_minimiser(target: Population, points: FloatArray, labels: NDArray[np.int64]) -> Minimiser:
    """Minimise the empirical risk over thresholds; of several minimisers, take the worst on P.

    P's excess error grows with the distance from its target, so this is the leftmost or the
    rightmost minimiser.

    Parameters
    ----------
    target : Population
        P.
    points, labels : array, (replicas, n)
    """
    order = np.argsort(points, axis=1)
    ordered = np.take_along_axis(points, order, axis=1)
    moved = np.cumsum(np.take_along_axis(labels, order, axis=1), axis=1)
    # The errors of a threshold past the first i samples, minus those of one before all samples.
    errors = np.concatenate((np.zeros((points.shape[0], 1), dtype=np.int64), moved), axis=1)
    low, high = float(target.places[0]) - 1.0, float(target.places[-1]) + 1.0
    ends = np.pad(ordered, ((0, 0), (1, 1)), constant_values=((0, 0), (low, high)))
    rows = np.arange(points.shape[0])
    first = np.argmin(errors, axis=1)
    last = errors.shape[1] - 1 - np.argmin(errors[:, ::-1], axis=1)
    leftmost = excess_at(target, ends[rows, first])
    rightmost = excess_at(target, ends[rows, last + 1])
    chosen = np.where(leftmost >= rightmost, first, last)
    middle = (ends[rows, chosen] + ends[rows, chosen + 1]) / 2
    return Minimiser(np.maximum(leftmost, rightmost), middle)


def _errors(
    points: FloatArray, labels: NDArray[np.int64], thresholds: FloatArray | float
) -> NDArray[np.int64]:
    at = np.reshape(thresholds, (-1, 1))
    wrong: NDArray[np.int64] = ((points >= at) != (labels > 0)).sum(axis=1)
    return wrong
