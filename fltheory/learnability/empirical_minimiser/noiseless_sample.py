"""Empirical risk minimisation without noise, sampled: only the samples next to the target count.

Of so many samples from a distribution a binomial number falls on either side of t*, and the one
next to t* is an order statistic, drawn by inversion; so any number of samples costs the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fltheory.learnability.populations.arrays import excess_at
from fltheory.learnability.populations.population import Population
from fltheory.validation import FloatArray


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
