"""An algorithm's own rounds, followed along a record or a process, in weights of clients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

import numpy as np

from fltheory.advice.population import ClientPopulation
from fltheory.algorithms.contract import Algorithm
from fltheory.engines.simulation import simulate
from fltheory.logs import AvailabilityLog
from fltheory.logs.played_log import PlayedLog
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_DIVERGED = 1e6
_FEWEST, _MOST = 400, 2000
_TIME_CONSTANTS = 16
_DRAWN_PASSES = 8


@dataclass(frozen=True, eq=False)
class OnTheLog(ReadOnlyArrays):
    """Rounds along the record, over and over.

    Attributes
    ----------
    errors : array, (rounds,)
        Root-mean-square distance from the optimum after each of the record's rounds, over
        directions of optima and start and over gradients' noise.
    weights : array, (G,)
        The mean model of the second pass, as weights of the groups' optima. Where branches are
        drawn, the mean of eight passes from the second on.
    error : float
        The standard error of these weights, as a distance; 0 where nothing is drawn.
    sway, noise : float
        What the coming and going of clients, and gradients' noise, move the model about that
        mean: root mean squares over the second pass.
    left : float
        What is left of the start over the first pass's last quarter, root mean square.
    """

    errors: FloatArray
    weights: FloatArray
    error: float
    sway: float
    noise: float
    left: float

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


class LogRounds:
    """An algorithm's rounds along the record: once from the start, then once more.

    Parameters
    ----------
    algorithm : Algorithm
    population : ClientPopulation
    seed : int
    """

    def __init__(self, algorithm: Algorithm, population: ClientPopulation, seed: int) -> None:
        self._population = population
        self._clients = population.clients(seed)
        rng = np.random.default_rng(seed)
        states = simulate(
            algorithm,
            self._clients,
            PlayedLog(AvailabilityLog.from_masks(population.recorded), repeat=True),
            self._clients.at_start(1),
            participation_rng=rng,
            branch_rng=rng,
        )
        self._states = islice(states, 1, None)
        self._passes = 1 if len(algorithm.branches) == 1 else _DRAWN_PASSES
        self._first = self._pass()

    @property
    def late_error(self) -> float:
        """Root-mean-square error over the last quarter of the record; infinite if it diverges."""
        if self._first is None:
            return math.inf
        return _late(self._first.errors)

    def on_the_log(self) -> OnTheLog | None:
        """Return what all passes show; None if the algorithm diverges."""
        again = None if self._first is None else self._pass()
        if self._first is None or again is None:
            return None
        distances = self._population.group_distances
        about_mean = again.models.var(axis=0) @ distances.spread
        means = [again.models.mean(axis=0)]
        for _ in range(self._passes - 1):
            further = self._pass()
            if further is None:
                return None
            means.append(further.models.mean(axis=0))
        # Where nothing is drawn one pass is like another.
        variance = float(np.var(means, axis=0) @ distances.spread) / max(len(means) - 1, 1)
        return OnTheLog(
            errors=self._first.errors,
            weights=np.mean(means, axis=0),
            error=distances.radius * math.sqrt(variance),
            sway=distances.radius * math.sqrt(float(about_mean)),
            noise=again.noise,
            left=_late(self._first.starts),
        )

    def _pass(self) -> _Pass | None:
        clients, distances = self._clients, self._population.group_distances
        models = np.empty((len(self._population.recorded), distances.targets.size))
        starts, noises = np.empty((len(models), 1)), np.empty(len(models))
        for index, (state, _) in enumerate(islice(self._states, len(models))):
            x = state["x"]
            if not np.abs(x).max() < _DIVERGED:
                return None
            models[index] = clients.weights(x)[0]
            starts[index], noises[index] = clients.start(x)[0], clients.noise(x)[0]
        # Without what is left of the start: a mean of optima, as the limit is.
        moved = np.where(starts == 1, 1, 1 - starts)
        settled = models / moved
        # The noise of so few coordinates is itself noisy: its mean stands for it in all rounds.
        noise = self._population.training.noise**2 * noises.mean() * self._population.thinning
        away = (1 - starts) * (settled - distances.targets)
        squares = starts[:, 0] ** 2 + distances.radius**2 * (away**2 @ distances.spread)
        return _Pass(settled, np.sqrt(squares + noise), starts[:, 0], math.sqrt(noise))


@dataclass(frozen=True, eq=False)
class _Pass:
    """A record's rounds: models less start (rounds, G), errors and starts, and rms noise."""

    models: FloatArray
    errors: FloatArray
    starts: FloatArray
    noise: float


def _late(values: FloatArray) -> float:
    """Return the root mean square over the last quarter."""
    return float(np.sqrt((values[-max(1, values.size // 4) :] ** 2).mean()))


def settling_rounds(step: float) -> int:
    """Return for how many rounds a draw of the process settles, and is then followed."""
    return min(max(_FEWEST, math.ceil(_TIME_CONSTANTS / step)), _MOST) // 2


def along_the_process(
    algorithm: Algorithm, population: ClientPopulation, step: float, seed: int, draws: int
) -> AlongTheProcess | None:
    """Follow an algorithm through draws of the fitted process; None where it diverges.

    Parameters
    ----------
    algorithm : Algorithm
    population : ClientPopulation
    step : float
        What the algorithm goes of its way in a round, about: it settles in its inverse.
    seed : int
    draws : int
        At least 2.
    """
    clients, distances = population.clients(seed), population.group_distances
    rng = np.random.default_rng(seed + 1)
    half = settling_rounds(step)
    states = simulate(
        algorithm,
        clients,
        population.group_chains,
        clients.at_optimum(draws),
        participation_rng=rng,
        branch_rng=rng,
    )
    sum_of = np.zeros((draws, distances.targets.size))
    squares, noise = 0.0, 0.0
    for index, (state, _) in enumerate(islice(states, 2 * half)):
        x = state["x"]
        if not np.abs(x).max() < _DIVERGED:
            return None
        if index >= half:
            weights = clients.weights(x)
            sum_of += weights
            squares += float((distances.squares(weights)).sum()) / (draws * half)
            noise += float(clients.noise(x).mean()) / half
    means = sum_of / half
    about_mean = squares - float(distances.squares(means).sum()) / draws
    return AlongTheProcess(
        weights=means,
        sway=distances.radius * math.sqrt(max(about_mean, 0.0) * population.thinning),
        noise=population.training.noise * math.sqrt(noise * population.thinning),
    )
