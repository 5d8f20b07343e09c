"""An algorithm's own rounds, followed along a record, in weights of clients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from fltheory.advice.orthogonal_clients import NOISES
from fltheory.advice.population import ClientPopulation
from fltheory.algorithms.contract import Algorithm
from fltheory.engines.simulation import simulate
from fltheory.logs import AvailabilityLog
from fltheory.logs.played_log import PlayedLog
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_DIVERGED = 1e6


@dataclass(frozen=True, eq=False)
class OnTheLog(ReadOnlyArrays):
    """Rounds along the record.

    Attributes
    ----------
    errors : array, (rounds,)
        Root-mean-square distance from the optimum after each of the record's rounds, over
        directions of optima and start and over gradients' noise.
    weights : array, (G,)
        The mean model, as weights of the groups' optima: of a second pass through the record,
        or, where availability drifts, of the last quarter of the first.
    pulls : array, (B, G)
        Towards which mean of optima clients pulled in each of B batches of these rounds.
    squares : array, (B,)
        Of sway, at the worst optima, and noise together: their mean in each batch.
    sway, sway_at_worst : float
        How far the coming and going of clients moves the model about that mean, root mean square:
        over unrelated optima, and for the optima that are worst for the mean.
    noise : float
        How far gradients' noise moves it.
    noise_error : float
        Standard error of the square of that, from so few draws.
    left : float
        What is left of the start over the first pass's last quarter, root mean square.
    """

    errors: FloatArray
    weights: FloatArray
    pulls: FloatArray
    squares: FloatArray
    sway: float
    sway_at_worst: float
    noise: float
    noise_error: float
    left: float

    def rounds_within(self, distance: float) -> int | None:
        """Return after how many rounds the error stays within a distance; None if never."""
        above = np.flatnonzero(~(self.errors <= distance))
        last = int(above[-1]) + 1 if above.size else 0
        return last + 1 if last < self.errors.size else None


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
        self._first = self._pass()

    @property
    def late_error(self) -> float:
        """Root-mean-square error over the last quarter of the record; infinite if it diverges."""
        if self._first is None:
            return math.inf
        return _late(self._first.errors)

    def on_the_log(self) -> OnTheLog | None:
        """Return what all rounds show; None if the algorithm diverges."""
        population, first = self._population, self._first
        counted = first if population.drifts else self._pass()
        if first is None or counted is None:
            return None
        distances = population.group_distances
        edges = population.batches
        counts = slice(edges[0], edges[-1])
        models, noises = counted.models[counts], counted.noises[counts]
        mean = models.mean(axis=0)
        away = models - mean
        # The mean pull of a batch is where the model was, and how far it went from its beginning
        # to its end over how far it goes at all: unlike models, pulls forget from batch to batch.
        pull = 1 - max(abs(first.starts[-1]), 1e-300) ** (1 / first.starts.size)
        before = np.vstack([first.models[-1:], counted.models])
        pulls = [
            before[begin:end].mean(axis=0) + (before[end] - before[begin]) / ((end - begin) * pull)
            for begin, end in pairwise(edges)
        ]
        at_worst = (away @ distances.farthest(mean)) ** 2
        noises = noises * population.training.noise**2 * population.thinning
        drawn = noises.mean(axis=0)
        by_batch = [edge - edges[0] for edge in edges[:-1]]
        lengths = np.diff(edges)
        return OnTheLog(
            errors=first.errors,
            weights=mean,
            pulls=np.array(pulls),
            squares=np.add.reduceat(at_worst + noises.mean(axis=1), by_batch) / lengths,
            sway=distances.radius * math.sqrt(float((away**2).mean(axis=0) @ distances.spread)),
            sway_at_worst=math.sqrt(at_worst.mean()),
            noise=math.sqrt(drawn.mean()),
            noise_error=float(drawn.std(ddof=1)) / math.sqrt(drawn.size),
            left=_late(first.starts),
        )

    def _pass(self) -> _Pass | None:
        clients, distances = self._clients, self._population.group_distances
        models = np.empty((len(self._population.recorded), distances.targets.size))
        starts, noises = np.empty((len(models), 1)), np.empty((len(models), NOISES))
        for index, (state, _) in enumerate(islice(self._states, len(models))):
            x = state["x"]
            if not np.abs(x).max() < _DIVERGED:
                return None
            models[index] = clients.weights(x)[0]
            starts[index], noises[index] = clients.start(x)[0], clients.noises(x)[0]
        # Without what is left of the start: a mean of optima, as the limit is.
        moved = np.where(starts == 1, 1, 1 - starts)
        settled = models / moved
        # The noise of so few coordinates is itself noisy: its mean stands for it in all rounds.
        noise = self._population.training.noise**2 * noises.mean() * self._population.thinning
        away = (1 - starts) * (settled - distances.targets)
        squares = starts[:, 0] ** 2 + distances.radius**2 * (away**2 @ distances.spread)
        return _Pass(settled, np.sqrt(squares + noise), starts[:, 0], noises)


@dataclass(frozen=True, eq=False)
class _Pass:
    """A record's rounds: models less start (rounds, G), errors, starts, draws of noise's square."""

    models: FloatArray
    errors: FloatArray
    starts: FloatArray
    noises: FloatArray


def _late(values: FloatArray) -> float:
    """Return the root mean square over the last quarter."""
    return float(np.sqrt((values[-max(1, values.size // 4) :] ** 2).mean()))
