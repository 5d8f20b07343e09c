"""What to expect of one algorithm, with clients that come and go as in a log."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fltheory.advice.needs import Needs
from fltheory.advice.population import ClientPopulation, Distances
from fltheory.advice.rounds import LogRounds, OnTheLog, along_the_process
from fltheory.algorithms.contract import Algorithm, KnownLimit
from fltheory.algorithms.table import ALGORITHMS
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

# Steps that are tried are the longest, halved so often; by four first, then by two beside the best.
_MOST_HALVINGS, _FIRST_TRIED = 6, 4
# Where the limit has a closed form, draws show sway and noise alone.
_FEW_DRAWS, _DRAWS = 4, 16


@dataclass(frozen=True)
class Bias:
    """How far the mean model stays from the optimum, in units of ``||w_0 - w*||``.

    Attributes
    ----------
    unrelated : float
        Root mean square over optima that have nothing to do with who is there.
    at_worst : float
        The largest, over all optima at the given distance.
    error : float
        Standard error of both where the model was drawn, or a round's branch; else 0.
    """

    unrelated: float
    at_worst: float
    error: float = 0.0


_NOWHERE = Bias(math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class AlgorithmAdvice(ReadOnlyArrays):
    """What is to be expected of one algorithm; infinite where it diverges at every step tried.

    Attributes
    ----------
    name, title : str
    options : mapping
        Its hyper-parameters beside step sizes and facts.
    needs : Needs
    step : float
        The step size, in units of 1/L.
    closed_form : bool
        Whether the bias of the process is the formula's.
    process, drawn, log : Bias
        Of the fitted process; of draws of it; and of the log, over and over.
    whole : bool
        Whether all rounds of the log were followed. If not, its bias is that of a part, in which
        rare clients may be missing, and does not count.
    sway, noise : float
        What the coming and going of clients and gradients' noise add: root mean squares, the
        larger of process and log.
    left : float
        Of the start, late in the log: root mean square over its last quarter.
    errors : array
        Root-mean-square error after each round of the log, from the start.
    rounds : int or None
        When the error comes, and stays, within the distance asked for.
    """

    name: str
    title: str
    options: Mapping[str, Any]
    needs: Needs
    step: float
    closed_form: bool
    whole: bool
    process: Bias
    drawn: Bias
    log: Bias
    sway: float
    noise: float
    left: float
    errors: FloatArray
    rounds: int | None

    @property
    def error(self) -> float:
        """Root-mean-square error late in the log at the worst optima, of log or process."""
        return self.error_if(1.0, 1.0)

    def error_if(self, radius: float, noise: float) -> float:
        """Return the error if optima were so many times as far apart, and gradients as noisy."""
        bias = max(bias.at_worst for bias in self._counted)
        return math.hypot(radius * bias, radius * self.sway, noise * self.noise, self.left)

    @property
    def usual_error(self) -> float:
        """The same for optima unrelated to who is there."""
        return math.hypot(
            max(bias.unrelated for bias in self._counted), self.sway, self.noise, self.left
        )

    @property
    def _counted(self) -> tuple[Bias, ...]:
        return (self.process, self.log) if self.whole else (self.process,)

    @property
    def called(self) -> str:
        """Title, with the cut-off where it has one."""
        cutoff = self.options.get("cutoff")
        return self.title if cutoff is None else f"{self.title} with cut-off {cutoff:g}"


def _made(
    name: str,
    options: Mapping[str, Any],
    population: ClientPopulation,
    step: float,
    facts: Mapping[str, Any],
) -> Algorithm:
    training = population.training
    circumstances = {
        "client_lr": step,
        "assist_lr": step * training.local_steps,
        "local_steps": training.local_steps,
        **facts,
    }
    return ALGORITHMS[name].among(circumstances, **options)


@dataclass(frozen=True)
class Task:
    """An algorithm to be followed.

    At the best step or at one that is given; along draws of the process always, or only where its
    limit has no closed form.
    """

    name: str
    options: Mapping[str, Any]
    population: ClientPopulation
    within: float
    seed: int
    step: float | None = None
    always_drawn: bool = True


def advice_on(task: Task) -> AlgorithmAdvice:
    """Return what to expect of an algorithm."""
    name, options, population, seed = task.name, task.options, task.population, task.seed

    def made(step: float) -> Algorithm:
        return _made(name, options, population, step, population.group_facts)

    def follow(step: float) -> LogRounds:
        return LogRounds(made(step), population, seed)

    if task.step is None:
        step, log = _best_step(population.training.step, follow)
    else:
        step, log = task.step, follow(task.step).on_the_log()
    algorithm = made(step)
    limit = limit_weights(name, population, step, options)
    drawn = None
    if log is not None and (limit is None or task.always_drawn):
        draws = _DRAWS if limit is None else _FEW_DRAWS
        drawn = along_the_process(algorithm, population, step, seed, draws)
        log = None if drawn is None else log
    of_drawn = _NOWHERE if drawn is None else _drawn_bias(population.group_distances, drawn.weights)
    process = of_drawn if limit is None else bias_of(population.distances, limit)
    runs = [run for run in (log, drawn) if run is not None]
    return AlgorithmAdvice(
        name=name,
        title=ALGORITHMS[name].title,
        options=options,
        needs=Needs.of(algorithm, ALGORITHMS[name].facts_required, population.shown.size),
        step=step,
        closed_form=limit is not None,
        whole=len(population.recorded) == population.log.n_rounds,
        process=process if runs else _NOWHERE,
        drawn=of_drawn,
        log=_NOWHERE if log is None else _bias_along(population.group_distances, log),
        sway=max((run.sway for run in runs), default=math.inf),
        noise=max((run.noise for run in runs), default=math.inf),
        left=math.inf if log is None else log.left,
        errors=np.full(len(population.recorded), math.inf) if log is None else log.errors,
        rounds=None if log is None else log.rounds_within(task.within),
    )


def limit_weights(
    name: str, population: ClientPopulation, step: float, options: Mapping[str, Any]
) -> FloatArray | None:
    """Return the weights (N,) of all clients' optima in an algorithm's limit, if it knows them.

    `grouped_limit_weights` are the same from groups alone, of the groups' optima.

    Parameters
    ----------
    name : str
        In the package's table.
    population : ClientPopulation
    step : float
        Of local SGD, in units of 1/L.
    options : mapping
        Its hyper-parameters beside step sizes and facts.
    """
    if not isinstance(ALGORITHMS[name].algorithm, KnownLimit):
        return None
    algorithm = _made(name, options, population, step, population.facts)
    assert isinstance(algorithm, KnownLimit)
    return population.among_all(algorithm.limit_pulls(population.chains, population.moves))


def grouped_limit_weights(
    name: str, population: ClientPopulation, step: float, options: Mapping[str, Any]
) -> FloatArray | None:
    """Return the weights of groups' optima in the limit, as if groups were clients."""
    if not isinstance(ALGORITHMS[name].algorithm, KnownLimit):
        return None
    algorithm = _made(name, options, population, step, population.group_facts)
    assert isinstance(algorithm, KnownLimit)
    pulls = algorithm.limit_pulls(population.group_chains, population.group_moves)
    weights = np.zeros(population.group_distances.targets.size)
    weights[: pulls.size] = pulls / pulls.sum()
    return weights


def _best_step(
    longest: float, follow: Callable[[float], LogRounds]
) -> tuple[float, OnTheLog | None]:
    """Return the step whose error is least late in the log, and its run.

    Steps longer by four are tried as long as they are better, else shorter ones; then half and
    double the best of these.
    """
    best = follow(longest / 2**_FIRST_TRIED)
    at = _FIRST_TRIED

    def is_better(halvings: int) -> bool:
        nonlocal at, best
        if not 0 <= halvings <= _MOST_HALVINGS:
            return False
        run = follow(longest / 2**halvings)
        if not run.late_error < best.late_error:
            return False
        at, best = halvings, run
        return True

    for direction in (-2, 2):
        before = at
        while is_better(at + direction):
            pass
        if at != before:
            break
    found = at
    if not is_better(found - 1):
        is_better(found + 1)
    return longest / 2**at, best.on_the_log()


def bias_of(distances: Distances, weights: FloatArray) -> Bias:
    """Return how far weights are off."""
    return Bias(distances.unrelated(weights), distances.at_worst(weights))


def _bias_along(distances: Distances, log: OnTheLog) -> Bias:
    return replace(bias_of(distances, log.weights), error=log.error)


def _drawn_bias(distances: Distances, weights: FloatArray) -> Bias:
    """Return the bias of draws (R, G), without what their scatter would add to a square."""
    count = len(weights)
    mean = weights.mean(axis=0)
    scatter = float(distances.squares(weights - mean + distances.targets).sum()) / (count - 1)
    square = float(distances.squares(mean).sum()) - scatter / count
    return Bias(
        distances.radius * math.sqrt(max(square, 0.0)),
        distances.at_worst(mean),
        distances.radius * math.sqrt(scatter / count),
    )
