"""An algorithm's own rounds along a record, in terms of the clients' weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice, pairwise

import numpy as np

from fltheory.advice.orthogonal_clients import NOISES
from fltheory.advice.population import ClientPopulation
from fltheory.algorithms.contract import Algorithm
from fltheory.engines.simulation import simulate
from fltheory.logs import AvailabilityLog
from fltheory.logs.played_log import PlayedLog
from fltheory.participation.base import Masks
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_DIVERGED = 1e6
# Together, their last quarters cover the whole record.
_RUNS = 4
# For an error from so few runs, Student's 95% quantile with three degrees of freedom is 3.18, not
# 1.96.
_STUDENT = 1.62


@dataclass(frozen=True, eq=False)
class OnTheLog(ReadOnlyArrays):
    """The results of an algorithm's rounds along the record.

    Attributes
    ----------
    errors : array, (rounds,)
        Root-mean-square distance from the optimum after each round, over the runs, the directions
        of optima and initial model, and gradient noise.
    weights : array, (G,)
        The mean model late in a run, as weights of the groups' optima.
    pulls : array, (B, G)
        The mean of optima, as weights, towards which clients pulled in each of B batches.
    squares : array, (B,)
        Combined mean squares of sway, for the worst optima, and noise, in each batch.
    sway, sway_at_worst : float
        Root-mean-square movement of the model about that mean due to the coming and going of
        clients: over unrelated optima, and for the optima that are worst for the mean.
    noise : float
        Root-mean-square movement of the model due to gradient noise.
    left : float
        The initial error that remains over a run's last quarter, root mean square.
    drawn_error : float
        Standard error of the squares of ``noise`` and ``left``, due to the few draws and starts.
    """

    errors: FloatArray
    weights: FloatArray
    pulls: FloatArray
    squares: FloatArray
    sway: float
    sway_at_worst: float
    noise: float
    left: float
    drawn_error: float

    def rounds_within(self, distance: float) -> int | None:
        """Return the number of rounds after which the error stays within a distance, or None."""
        above = np.flatnonzero(~(self.errors <= distance))
        last = int(above[-1]) + 1 if above.size else 0
        return last + 1 if last < self.errors.size else None


@dataclass(frozen=True, eq=False)
class _Runs(PlayedLog):
    """A record replayed in a loop, starting from several of its rounds."""

    begins: tuple[int, ...] = ()

    def masks(self, rng: np.random.Generator | None, replicas: int) -> Iterator[Masks]:
        """Yield the participants of successive rounds, one row per starting round."""
        there, begins = self.log.present(), np.array(self.begins)
        yield from (there[(number + begins) % len(there)] for number in count())


class LogRounds:
    """An algorithm's rounds along the record, in four runs, each starting at another quarter.

    So the late behaviour of a run is known for every round of the record, even for clients who
    first appear late. If availability drifts, all runs begin at the beginning of the record.

    Parameters
    ----------
    algorithm : Algorithm
    population : ClientPopulation
    seed : int
    """

    def __init__(self, algorithm: Algorithm, population: ClientPopulation, seed: int) -> None:
        self._population, recorded = population, population.recorded
        apart = 0 if population.drifts else len(recorded)
        self._begins = np.arange(_RUNS) * apart // _RUNS
        clients, rng = population.clients(seed), np.random.default_rng(seed)
        states = simulate(
            algorithm,
            clients,
            _Runs(AvailabilityLog.from_masks(recorded), begins=tuple(self._begins.tolist())),
            clients.at_start(_RUNS),
            participation_rng=rng,
            branch_rng=rng,
        )
        self._diverged = False
        rounds, groups = len(recorded), population.group_distances.targets.size
        models = np.empty((rounds, _RUNS, groups))
        starts, noises = np.empty((rounds, _RUNS, 1)), np.empty((rounds, _RUNS, NOISES))
        for index, (state, _) in enumerate(islice(states, 1, rounds + 1)):
            x = state["x"]
            if not np.abs(x).max() < _DIVERGED:
                self._diverged = True
                return
            models[index], noises[index] = clients.weights(x), clients.noises(x)
            starts[index, :, 0] = clients.start(x)
        # The remaining weight of the initial model is left out, so that this is a mean of optima,
        # like the limit.
        self._models = models / np.where(starts == 1, 1, 1 - starts)
        self._starts = starts[..., 0]
        self._noises = noises * population.training.noise**2 * population.thinning

    @property
    def late_error(self) -> float:
        """Root-mean-square error over a run's last quarter; infinite if it diverges."""
        if self._diverged:
            return math.inf
        return math.sqrt((self._late(self._errors_by_round()) ** 2).mean())

    def _errors_by_round(self) -> FloatArray:
        distances = self._population.group_distances
        away = (1 - self._starts[..., None]) * (self._models - distances.targets)
        squares = self._starts**2 + distances.radius**2 * (away**2 @ distances.spread)
        # Noise from so few coordinates is itself noisy, so its mean is used in all rounds.
        return np.asarray(np.sqrt(squares.mean(axis=1) + self._drawn_squares().mean()))

    def _drawn_squares(self) -> FloatArray:
        """Return mean squares of the drawn noise over the late rounds, (runs, draws)."""
        # Noise has settled by the middle of a run, unless availability drifts.
        late = 4 if self._population.drifts else 2
        return np.asarray(self._late(self._noises, late).mean(axis=0))

    @staticmethod
    def _late(values: FloatArray, parts: int = 4) -> FloatArray:
        """Return the last quarter of the values, or the last of ``parts`` parts."""
        return values[-max(1, len(values) // parts) :]

    def on_the_log(self) -> OnTheLog | None:
        """Return the results of all rounds; None if the algorithm diverges."""
        if self._diverged:
            return None
        distances = self._population.group_distances
        rounds, starts = len(self._models), self._late(self._starts) ** 2
        # The mean pull of a batch is the model's mean plus its change over the batch, divided by
        # its rate of movement. Unlike models, pulls have no memory from batch to batch.
        pull = 1 - max(math.sqrt((self._starts[-1] ** 2).mean()), 1e-300) ** (1 / rounds)
        counted, noises, pulls = [], [], []
        for begin, end in pairwise(self._population.batches):
            ages = (begin - self._begins) % rounds
            run = int(np.argmax(np.where(ages + end - begin <= rounds, ages, -1)))
            age = int(ages[run]) + np.arange(-1, end - begin)
            before = self._models[np.maximum(age, 0), run]
            went = (before[-1] - before[0]) / ((end - begin) * pull)
            pulls.append(before[:-1].mean(axis=0) + went)
            counted.append(before[1:])
            noises.append(self._noises[age[1:], run].mean())
        models = np.concatenate(counted)
        mean = models.mean(axis=0)
        away = models - mean
        worst = distances.farthest(mean)
        left, drawn = starts.mean(axis=0), self._drawn_squares()
        by_run = left + drawn.mean(axis=1)
        return OnTheLog(
            errors=self._errors_by_round(),
            weights=mean,
            pulls=np.array(pulls),
            squares=np.array([(((part - mean) @ worst) ** 2).mean() for part in counted]) + noises,
            sway=distances.radius * math.sqrt(float((away**2).mean(axis=0) @ distances.spread)),
            sway_at_worst=math.sqrt(((away @ worst) ** 2).mean()),
            noise=math.sqrt(drawn.mean()),
            left=math.sqrt(left.mean()),
            drawn_error=math.hypot(_error_of_mean(drawn), _STUDENT * _error_of_mean(by_run)),
        )


def _error_of_mean(values: FloatArray) -> float:
    return float(values.std(ddof=1)) / math.sqrt(values.size)
