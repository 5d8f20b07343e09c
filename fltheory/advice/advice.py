"""Which algorithm a deployment should use, from a log of who was online."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.advice.measured_clients import MeasuredClients
from fltheory.advice.population import ClientPopulation, Distances
from fltheory.advice.rounds import LogRounds, OnTheLog, along_the_process
from fltheory.algorithms.contract import Algorithm, KnownLimit
from fltheory.algorithms.needs import Needs
from fltheory.algorithms.table import ALGORITHMS
from fltheory.fedau import best_cutoff
from fltheory.logs import AvailabilityLog
from fltheory.parallel import as_they_come
from fltheory.progress import Progress
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray
from fltheory.weights.deployment import Training

# Steps that are tried, relative to the longest.
_STEPS, _FIRST_TRIED = (1.0, 1 / 4, 1 / 16, 1 / 64), 2
_NOTHING_TO_MEND = 1e-9
_AS_GOOD = 1.05
# Where the limit has a closed form, draws show sway and noise alone.
_FEW_DRAWS, _DRAWS = 4, 16
_WORTH_PROCESSES = 2**15
_CURVATURES = 1
_CUTOFF_CLIENTS, _CUTOFF_ROUNDS = 6, 1000


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
        Standard error of both where the model was drawn; 0 in closed form, or on the log.
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
    errors: FloatArray
    rounds: int | None

    @property
    def error(self) -> float:
        """Root-mean-square error in the long run at the worst optima, the larger of the two."""
        return self.error_if(1.0, 1.0)

    def error_if(self, radius: float, noise: float) -> float:
        """Return the error if optima were so many times as far apart, and gradients as noisy."""
        bias = max(bias.at_worst for bias in self._counted)
        return math.hypot(radius * bias, radius * self.sway, noise * self.noise)

    @property
    def usual_error(self) -> float:
        """The same for optima unrelated to who is there."""
        return math.hypot(max(bias.unrelated for bias in self._counted), self.sway, self.noise)

    @property
    def _counted(self) -> tuple[Bias, ...]:
        return (self.process, self.log) if self.whole else (self.process,)

    @property
    def called(self) -> str:
        """Title, with the cut-off where it has one."""
        cutoff = self.options.get("cutoff")
        return self.title if cutoff is None else f"{self.title} with cut-off {cutoff:g}"


@dataclass(frozen=True, eq=False)
class Advice(ReadOnlyArrays):
    """What a log says of the algorithms.

    Attributes
    ----------
    population : ClientPopulation
    algorithms : tuple of AlgorithmAdvice
    within : float
        The distance that rounds are counted to.
    measured : MeasuredClients or None
        Where clients' gradients were measured.
    """

    population: ClientPopulation
    algorithms: tuple[AlgorithmAdvice, ...]
    within: float
    measured: MeasuredClients | None = None

    def named(self, name: str) -> AlgorithmAdvice:
        """Return an algorithm's line by the name in the package's table."""
        return next(found for found in self.algorithms if found.name == name)

    @cached_property
    def best(self) -> AlgorithmAdvice:
        """What to use if the server has no data of its own."""
        return self.best_if(1.0, 1.0)

    @cached_property
    def fallback(self) -> AlgorithmAdvice:
        """What to use if, beside, no vector a client can be kept and nothing is known of them."""
        return self.best_if(1.0, 1.0, frugal=True)

    def best_if(self, radius: float, noise: float, *, frugal: bool = False) -> AlgorithmAdvice:
        """Return the best if optima were so many times as far apart, and gradients as noisy.

        Of the algorithms within 5% of the least error it is the one that needs least. Where plain
        FedAvg has neither bias nor sway there is nothing to mend: others differ in their step.
        """
        plain = self.named("fedavg")
        if plain.error_if(1.0, 0.0) < _NOTHING_TO_MEND:
            return plain
        able = [found for found in self.algorithms if not found.needs.server_data]
        if frugal:
            able = [f for f in able if not f.needs.vectors and not f.needs.facts]
        least = min(found.error_if(radius, noise) for found in able)
        good = [f for f in able if f.error_if(radius, noise) <= _AS_GOOD * least]
        return min(good, key=lambda found: (found.needs.rank, found.error_if(radius, noise)))

    @cached_property
    def exclusion(self) -> Bias:
        """What clients never there cost any algorithm without server data."""
        population = self.population
        weights = population.among_all(population.distances.targets[population.ever])
        return _bias(population.distances, weights)

    @property
    def rare_below(self) -> float:
        """Half the mean availability of those ever there."""
        return float(self.population.chains.availability.mean()) / 2

    @cached_property
    def rare(self) -> ClientIndices:
        """Clients that are there, but less than that: places in the log."""
        shares = self.population.log.marginals
        return np.flatnonzero((shares > 0) & (shares < self.rare_below))

    @cached_property
    def fedavg_parts(self) -> FloatArray:
        """What each client adds to plain FedAvg's largest bias, (N,)."""
        weights = limit_weights("fedavg", self.population, self.named("fedavg").step, {})
        assert weights is not None
        return self.population.distances.parts(weights)

    def document(self) -> dict[str, Any]:
        """Return all figures, as JSON has them."""
        population, training = self.population, self.population.training
        log = population.log
        return {
            "clients": log.n_clients,
            "rounds": log.n_rounds,
            "groups": int(population.shown.size),
            "rounds_followed": len(population.recorded),
            "never_there": [log.clients[client] for client in population.never],
            "lost_target": float(population.importance[population.never].sum()),
            "assumed": {
                "dissimilarity": training.dissimilarity,
                "noise": training.noise,
                "condition": training.condition,
                "local_steps": training.local_steps,
                "longest_step": training.step,
            },
            "measured": None if self.measured is None else asdict(self.measured),
            "within": self.within,
            "use": self.best.name,
            "else": self.fallback.name,
            "exclusion": vars(self.exclusion),
            "rare": {
                "below": self.rare_below,
                "clients": int(self.rare.size),
                "part_of_fedavg": float(self.fedavg_parts[self.rare].sum()),
            },
            "algorithms": [
                {
                    "name": found.name,
                    "options": dict(found.options),
                    "needs": vars(found.needs),
                    "step": found.step,
                    "closed_form": found.closed_form,
                    **{name: _finite(vars(getattr(found, name))) for name in _PLACES},
                    **_finite({"sway": found.sway, "noise": found.noise, "error": found.error}),
                    "usual_error": _number(found.usual_error),
                    "end_error": _number(found.errors[-1]),
                    "rounds": found.rounds,
                }
                for found in self.algorithms
            ],
        }


_PLACES = ("process", "drawn", "log")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: _number(value) for name, value in values.items()}


def _options(n_groups: int, cutoff: float) -> dict[str, Mapping[str, Any]]:
    """Return the algorithms that are considered, with their options."""
    chosen: dict[str, Mapping[str, Any]] = {
        "fedau": {"cutoff": cutoff},
        "mifa": {"start": "zero"},
        "f3ast": {**ALGORITHMS["f3ast"].example(n_groups), "availability": None},
        "ca-fed": {"availability": None, "correlation": None},
        "safari": ALGORITHMS["safari"].example(n_groups),
    }
    names = ("fedavg", "fedau", "fedar", "mifa", "fedvarp", "scaffold", "fedavg-is", "unbiased")
    return {name: chosen.get(name, {}) for name in (*names, "adafed", "f3ast", "safari", "ca-fed")}


def advise(
    log: AvailabilityLog,
    sizes: ArrayLike | None = None,
    *,
    training: Training | None = None,
    measured: MeasuredClients | None = None,
    within: float = 0.1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Advice:
    """Return what to expect of each algorithm, with clients that come and go as in a log.

    Parameters
    ----------
    log : AvailabilityLog
    sizes : array, (N,), optional
        Positive numbers; the targets are in proportion to them. Equal by default.
    training : Training, optional
        Local steps, noise, dissimilarity and condition.
    measured : MeasuredClients, optional
        Where `training` is from measured gradients: the advice says so, with their intervals.
    within : float
        Distance from the optimum to count rounds to, in units of the start's.
    seed : int
        For what is drawn: gradients' noise, the process, and curvatures if the condition is
        above 1.
    progress : callable, optional
        Called with (algorithms done, algorithms, the last).

    Raises
    ------
    ValueError
        For arguments out of range, or a log with nobody ever there.
    """
    population = _population(log, sizes, training or Training(), seed)
    validation.positive("within", within)
    if progress is not None:
        progress(0, 0, "looking for a cut-off")
    considered = _options(population.shown.size, _cutoff(population))
    # CA-Fed takes longest, so it begins first.
    tasks = [(name, considered[name], population, within, seed) for name in reversed(considered)]
    processes = None if population.recorded.size >= _WORTH_PROCESSES else 1
    found: dict[str, AlgorithmAdvice] = {}
    for one in as_they_come(_advice_on, tasks, processes):
        found[one.name] = one
        if progress is not None:
            progress(len(found), len(considered), one.title)
    return Advice(population, tuple(found[name] for name in considered), within, measured)


def _cutoff(population: ClientPopulation) -> float:
    """Return FedAU's best cut-off for a few clients, from rare to usual, that stand for all."""
    quantiles = (np.arange(_CUTOFF_CLIENTS) + 0.5) / _CUTOFF_CLIENTS
    there = np.quantile(population.chains.availability, quantiles, method="nearest")
    rounds = max(2, min(population.log.n_rounds, _CUTOFF_ROUNDS))
    best = best_cutoff(np.unique(there), rounds).best.cutoff
    return best if math.isinf(best) else int(best)


def _population(
    log: AvailabilityLog, sizes: ArrayLike | None, training: Training, seed: int
) -> ClientPopulation:
    count = log.n_clients
    raw = np.ones(count) if sizes is None else sizes
    size = validation.real_array("sizes", raw, shape=f"({count},)")
    if size.shape != (count,):
        raise ValueError(f"sizes must have shape ({count},), got {size.shape}")
    if (size <= 0).any():
        place = int(np.flatnonzero(size <= 0)[0])
        raise ValueError(f"sizes must be positive, got {size[place]:g} for {log.clients[place]!r}")
    if not log.rounds_present.any():
        raise ValueError("log must have somebody there, got nobody in all rounds")
    if log.n_rounds < 2:
        raise ValueError("log must have at least 2 rounds, got 1")
    alpha = size / size.max()
    rng = np.random.default_rng([seed, _CURVATURES])
    curvatures = training.condition ** -rng.random(count)
    return ClientPopulation(log, alpha / alpha.sum(), curvatures, training)


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


def _advice_on(
    task: tuple[str, Mapping[str, Any], ClientPopulation, float, int],
) -> AlgorithmAdvice:
    name, options, population, within, seed = task

    def made(step: float) -> Algorithm:
        return _made(name, options, population, step, population.group_facts)

    step, log = _best_step(
        population.training.step, lambda step: LogRounds(made(step), population, seed)
    )
    algorithm = made(step)
    known = isinstance(algorithm, KnownLimit)
    draws = _FEW_DRAWS if known else _DRAWS
    drawn = None if log is None else along_the_process(algorithm, population, step, seed, draws)
    of_drawn = _NOWHERE if drawn is None else _drawn_bias(population.group_distances, drawn.weights)
    limit = limit_weights(name, population, step, options)
    process = of_drawn if limit is None else _bias(population.distances, limit)
    return AlgorithmAdvice(
        name=name,
        title=ALGORITHMS[name].title,
        options=options,
        needs=Needs.of(algorithm, ALGORITHMS[name].facts_required, population.shown.size),
        step=step,
        closed_form=limit is not None,
        whole=len(population.recorded) == population.log.n_rounds,
        process=_NOWHERE if drawn is None else process,
        drawn=of_drawn,
        log=_NOWHERE if log is None else _bias(population.group_distances, log.weights),
        sway=max(math.inf if run is None else run.sway for run in (log, drawn)),
        noise=max(math.inf if run is None else run.noise for run in (log, drawn)),
        errors=np.full(len(population.recorded), math.inf) if log is None else log.errors,
        rounds=None if log is None else log.rounds_within(within),
    )


def limit_weights(
    name: str, population: ClientPopulation, step: float, options: Mapping[str, Any]
) -> FloatArray | None:
    """Return the weights (N,) of all clients' optima in an algorithm's limit, if it knows them.

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


def _best_step(
    longest: float, follow: Callable[[float], LogRounds]
) -> tuple[float, OnTheLog | None]:
    """Return the step whose error is least late in the log, and its run.

    From the second shortest, longer steps are tried as long as they are better, else shorter.
    """
    at = _FIRST_TRIED
    best = follow(_STEPS[at] * longest)
    for direction in (-1, 1):
        before = at
        while 0 <= at + direction < len(_STEPS):
            run = follow(_STEPS[at + direction] * longest)
            if run.late_error >= best.late_error:
                break
            at, best = at + direction, run
        if at != before:
            break
    return _STEPS[at] * longest, best.on_the_log()


def _bias(distances: Distances, weights: FloatArray) -> Bias:
    return Bias(distances.unrelated(weights), distances.at_worst(weights))


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
