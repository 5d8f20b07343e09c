"""A population's closed forms at many thresholds, in float64."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fltheory.learnability.populations.population import Population
from fltheory.validation import FloatArray


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
