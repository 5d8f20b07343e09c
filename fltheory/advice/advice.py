"""Which algorithm a deployment should use, from a log of who was online."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.advice.algorithm_advice import (
    AlgorithmAdvice,
    Bias,
    Task,
    advice_on,
    bias_of,
    grouped_limit_weights,
    limit_weights,
)
from fltheory.advice.measured_clients import MeasuredClients
from fltheory.advice.population import MOST_GROUPS, ClientPopulation
from fltheory.algorithms.table import ALGORITHMS
from fltheory.fedau import best_cutoff
from fltheory.logs import AvailabilityLog
from fltheory.long_work.parallel import as_they_come
from fltheory.long_work.progress import Progress
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray
from fltheory.weights.deployment import Training

_NOTHING_TO_MEND = 1e-9
_AS_GOOD = 1.05
_WORTH_PROCESSES = 2**15
_CURVATURES = 1
_CUTOFF_CLIENTS, _CUTOFF_ROUNDS = 6, 1000
# What condition the advice is tried at, beside the one assumed.
_STEEPER = 10.0


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
    steeper : Advice or None
        The same for clients whose curvatures differ more, with the same steps.
    """

    population: ClientPopulation
    algorithms: tuple[AlgorithmAdvice, ...]
    within: float
    measured: MeasuredClients | None = None
    steeper: Advice | None = None

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

        Errors are those late in the log, with what is left of the start, each algorithm at its
        own best step for so many rounds. A step is then chosen by what algorithms are compared
        by, so that a slightly other step changes the comparison slightly; without the start, a
        shorter step would look better the shorter it is.

        Of the algorithms within 5% of the least error it is the one that needs least. Where plain
        FedAvg has neither bias nor sway there is nothing to mend: others differ in their step.
        """
        plain = self.named("fedavg")
        if max(plain.process.at_worst, plain.sway) < _NOTHING_TO_MEND:
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
        return bias_of(population.distances, weights)

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

    @cached_property
    def grouping_error(self) -> float | None:
        """What grouping does to biases, as a part of the largest; None where nothing is grouped.

        It is known where the limit has a closed form, for groups as for all clients: the most
        that any of these biases is off, unrelated or at worst.
        """
        population = self.population
        if population.shown.size == population.ever.size:
            return None
        off, largest = [], []
        for found in self.algorithms:
            grouped = grouped_limit_weights(found.name, population, found.step, found.options)
            if grouped is not None:
                bias = bias_of(population.group_distances, grouped)
                off.append(abs(bias.unrelated - found.process.unrelated))
                off.append(abs(bias.at_worst - found.process.at_worst))
                largest.append(found.process.at_worst)
        return max(off) / max(largest)

    def in_short(self) -> dict[str, Any]:
        """Return what would be advised, and each algorithm's error."""
        return {
            "condition": self.population.training.condition,
            "use": self.best.name,
            "else": self.fallback.name,
            "errors": {found.name: _number(found.error) for found in self.algorithms},
        }

    def document(self) -> dict[str, Any]:
        """Return all figures, as JSON has them."""
        population, training = self.population, self.population.training
        log = population.log
        return {
            "clients": log.n_clients,
            "rounds": log.n_rounds,
            "groups": int(population.shown.size),
            "grouping_error": self.grouping_error,
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
            "steeper": None if self.steeper is None else self.steeper.in_short(),
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
                    **_finite({name: getattr(found, name) for name in _PARTS}),
                    "usual_error": _number(found.usual_error),
                    "end_error": _number(found.errors[-1]),
                    "rounds": found.rounds,
                }
                for found in self.algorithms
            ],
        }


_PLACES = ("process", "drawn", "log")
_PARTS = ("sway", "noise", "left", "error")


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
    most_groups: int = MOST_GROUPS,
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
    most_groups : int
        Rounds are followed with so many groups of clients at most: more take longer.
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
    validation.positive("within", within)
    validation.whole_number("most_groups", most_groups, at_least=1)
    population = _population(log, sizes, training or Training(), seed, most_groups)
    if progress is not None:
        progress(0, 0, "looking for a cut-off")
    considered = _options(population.shown.size, _cutoff(population))
    total = 2 * len(considered)
    # CA-Fed takes longest, so it begins first.
    tasks = [
        Task(name, considered[name], population, within, seed) for name in reversed(considered)
    ]
    found: dict[str, AlgorithmAdvice] = {}
    for one in _followed(tasks):
        found[one.name] = one
        if progress is not None:
            progress(len(found), total, one.title)
    others = _steeper(population, measured, seed)
    again: dict[str, AlgorithmAdvice] = {}
    for one in _followed(
        [
            replace(task, population=others, step=found[task.name].step, always_drawn=False)
            for task in tasks
        ]
    ):
        again[one.name] = one
        if progress is not None:
            condition = others.training.condition
            progress(total // 2 + len(again), total, f"{one.title}, condition {condition:g}")
    return Advice(
        population,
        tuple(found[name] for name in considered),
        within,
        measured,
        Advice(others, tuple(again[name] for name in considered), within),
    )


def _followed(tasks: Sequence[Task]) -> Iterator[AlgorithmAdvice]:
    worth = tasks[0].population.recorded.size >= _WORTH_PROCESSES
    return as_they_come(advice_on, tasks, None if worth else 1)


def _steeper(
    population: ClientPopulation, measured: MeasuredClients | None, seed: int
) -> ClientPopulation:
    """Return the clients with another condition: an interval's upper end, or ten times it."""
    training = population.training
    condition = _STEEPER * training.condition
    known = None if measured is None else measured.condition
    if known is not None and known.value == training.condition < known.high:
        condition = known.high
    return replace(
        population,
        curvatures=_curvatures(condition, population.log.n_clients, seed),
        training=replace(training, condition=condition),
    )


def _curvatures(condition: float, count: int, seed: int) -> FloatArray:
    return np.asarray(condition ** -np.random.default_rng([seed, _CURVATURES]).random(count))


def _cutoff(population: ClientPopulation) -> float:
    """Return FedAU's best cut-off for a few clients, from rare to usual, that stand for all."""
    quantiles = (np.arange(_CUTOFF_CLIENTS) + 0.5) / _CUTOFF_CLIENTS
    there = np.quantile(population.chains.availability, quantiles, method="nearest")
    rounds = max(2, min(population.log.n_rounds, _CUTOFF_ROUNDS))
    best = best_cutoff(np.unique(there), rounds).best.cutoff
    return best if math.isinf(best) else int(best)


def _population(
    log: AvailabilityLog,
    sizes: ArrayLike | None,
    training: Training,
    seed: int,
    most_groups: int,
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
    curvatures = _curvatures(training.condition, count, seed)
    return ClientPopulation(log, alpha / alpha.sum(), curvatures, training, most_groups)
