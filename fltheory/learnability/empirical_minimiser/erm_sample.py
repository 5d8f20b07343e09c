"""Samples of empirical risk minimisation on noisy thresholds, drawn outward from the target.

Seen from t*, the samples on one side come in order of distance, and the empirical risk of a
threshold moved past them is a walk: up where the label was right, down where it was wrong.
Distances are drawn in order as they are needed, ``1 - exp(-sum_j E_j/(k - j + 1))`` of the side's
mass with E_j exponential, so a million samples cost only as many draws as lie near the target.

*Where the walk is left.* Beyond a sample whose walk stands h above its minimum, with margins of at
least mu from there on, ``((1 - mu)/(1 + mu))^W`` is a supermartingale, so the walk comes back to
its minimum with probability at most ``((1 - mu)/(1 + mu))^h``. It is left where this is below
`LEFT_OUT`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fltheory import validation
from fltheory.learnability.populations.population import Population, Source, excess_at
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

LEFT_OUT = 1e-16
"""Probability that one side's walk still reaches its minimum after it was left, at most."""

_FIRST_WIDTH = 32
_LARGEST_BLOCK = 1 << 20


@dataclass(frozen=True)
class ErmSample(ReadOnlyArrays):
    """Excess errors of the worst empirical minimiser, one for each replica.

    Attributes
    ----------
    on_target, on_training : array, (replicas,)
        On P and on Q.
    tagged_errors : array of int, (replicas,)
        Its wrong labels among the tagged samples, less those of the target.
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
    """Draw n samples of Q and minimise the empirical risk, so many times.

    Among all minimisers the one with the largest excess error on P is taken.

    Parameters
    ----------
    target, training : Population
        P and Q; all their sources share one target.
    n, replicas : int
    rng : numpy Generator
    tag : float
        Each sample is tagged with this probability, as the server's say.

    Raises
    ------
    ValueError
        For sources with different targets, or what is no probability.
    """
    validation.whole_number("n", n, at_least=1)
    validation.whole_number("replicas", replicas, at_least=1)
    if len({*target.targets, *training.targets}) > 1:
        raise ValueError("target and training must share one target of all their sources")
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
    """Where the replicas' walks on one side are."""

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
        """Return the walks with their minima, and how far their minimisers reach."""
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
        """Draw the next samples of the active replicas; return which of them are finished."""
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
        """Note the last minimum so far: it reaches up to the sample that comes next."""
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
        """Whether a walk all but surely stays above its minimum from here on.

        Each source's margin grows with the distance, so beyond a point Q's is at least the
        smallest of theirs at it.
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
        """Return Q's margin: the sources' margins weighed by their densities."""
        if len({(source.beta, source.scale) for source in self._sources}) == 1:
            return self._sources[0].margin(points)
        ends = np.abs(self._places[1:] - self._centre)
        piece = np.minimum(np.searchsorted(ends, np.abs(points - self._centre)), ends.size - 1)
        parts = zip(self._shares, self._sources, strict=True)
        return np.sum([share[piece] * source.margin(points) for share, source in parts], axis=0)


def _walked(
    start: NDArray[np.int64], steps: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the values before each step, and after the last."""
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
