"""An algorithm's own rounds, followed along a record or a process, in weights of clients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from fltheory.advice.population import Population
from fltheory.algorithms.contract import Algorithm
from fltheory.engines.simulation import simulate
from fltheory.participation.base import Masks, Participation
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_DIVERGED = 1e6
_REPLICAS = 4
_FEWEST, _MOST = 400, 2000
_TIME_CONSTANTS = 16


@dataclass(frozen=True, eq=False)
class OnTheLog(ReadOnlyArrays):
    """Rounds along the record, over and over.

    Attributes
    ----------
    errors : array, (rounds,)
        Root-mean-square distance from the optimum after each of the record's rounds, over
        directions of optima and start and over gradients' noise.
    weights : array, (G,)
        The mean model of the second pass, as weights of the groups' optima.
    sway, noise : float
        What the coming and going of clients, and gradients' noise, move the model about that
        mean: root mean squares over the second pass.
    """

    errors: FloatArray
    weights: FloatArray
    sway: float
    noise: float

    @property
    def late_error(self) -> float:
        """Root-mean-square error over the last quarter of the record."""
        late = self.errors[-max(1, self.errors.size // 4) :]
        with np.errstate(over="ignore"):
            return float(np.sqrt((late**2).mean()))

    def rounds_within(self, distance: float) -> int | None:
        """Return after how many rounds the error stays within a distance; None if never."""
        above = np.flatnonzero(~(self.errors <= distance))
        last = int(above[-1]) + 1 if above.size else 0
        return last + 1 if last < self.errors.size else None


@dataclass(frozen=True, eq=False)
class AlongTheProcess(ReadOnlyArrays):
    """Rounds along draws of the fitted process, after a time to settle.

    Attributes
    ----------
    weights : array, (R, G)
        Each draw's mean model.
    sway, noise : float
        As on the log.
    """

    weights: FloatArray
    sway: float
    noise: float


def on_the_log(algorithm: Algorithm, population: Population, seed: int) -> OnTheLog | None:
    """Follow an algorithm through the record twice; None where it diverges."""
    clients, distances = population.clients(seed), population.group_distances
    masks = population.recorded
    count = len(masks)
    rng = np.random.default_rng(seed)
    states = simulate(
        algorithm,
        clients,
        _Repeated(masks),  # type: ignore[arg-type]
        clients.at_start(1),
        participation_rng=rng,
        branch_rng=rng,
    )
    sigma = population.training.noise
    squares, noises = np.empty(2 * count), np.empty(2 * count)
    models = np.empty((count, distances.targets.size))
    for index, (state, _) in enumerate(islice(states, 1, 2 * count + 1)):
        x = state["x"]
        if not np.abs(x).max() < _DIVERGED:
            return None
        start, weights = float(clients.start(x)[0]), clients.weights(x)[0]
        away = weights - (1 - start) * distances.targets
        squares[index] = start**2 + distances.radius**2 * (distances.spread @ away**2)
        noises[index] = clients.noise(x)[0]
        if index >= count:
            models[index - count] = weights
    mean = models.mean(axis=0)
    noise = sigma**2 * float(noises[count:].mean()) * population.thinning
    return OnTheLog(
        # The noise of so few coordinates is itself noisy: its mean stands for it in all rounds.
        errors=np.sqrt(squares[:count] + noise),
        weights=mean,
        sway=_sway(models, mean, population),
        noise=math.sqrt(noise),
    )


def along_the_process(
    algorithm: Algorithm, population: Population, step: float, seed: int
) -> AlongTheProcess | None:
    """Follow an algorithm through draws of the fitted process; None where it diverges.

    Parameters
    ----------
    algorithm : Algorithm
    population : Population
    step : float
        What the algorithm goes of its way in a round, about: it settles in its inverse.
    seed : int
    """
    clients, distances = population.clients(seed), population.group_distances
    rng = np.random.default_rng(seed + 1)
    half = min(max(_FEWEST, math.ceil(_TIME_CONSTANTS / step)), _MOST) // 2
    states = simulate(
        algorithm,
        clients,
        population.group_chains,
        clients.at_optimum(_REPLICAS),
        participation_rng=rng,
        branch_rng=rng,
    )
    sum_of = np.zeros((_REPLICAS, distances.targets.size))
    squares, noise = 0.0, 0.0
    for index, (state, _) in enumerate(islice(states, 2 * half)):
        x = state["x"]
        if not np.abs(x).max() < _DIVERGED:
            return None
        if index >= half:
            weights = clients.weights(x)
            sum_of += weights
            squares += float((distances.squares(weights)).sum()) / (_REPLICAS * half)
            noise += float(clients.noise(x).mean()) / half
    means = sum_of / half
    about_mean = squares - float(distances.squares(means).sum()) / _REPLICAS
    return AlongTheProcess(
        weights=means,
        sway=distances.radius * math.sqrt(max(about_mean, 0.0) * population.thinning),
        noise=population.training.noise * math.sqrt(noise * population.thinning),
    )


def _sway(models: FloatArray, mean: FloatArray, population: Population) -> float:
    distances = population.group_distances
    return distances.radius * math.sqrt(float(((models - mean) ** 2).mean(axis=0) @ distances.spread))


class _Repeated:
    """The record's rounds in their order, from its first; after the last comes the first."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks

    def masks(self, rng: np.random.Generator, replicas: int) -> cycle[Masks]:
        return cycle(np.repeat(self._masks[:, None], replicas, axis=1))
