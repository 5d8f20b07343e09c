"""Advice on which algorithm a deployment should use, from a log of who was online."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.advice.algorithm_advice import (
    AlgorithmAdvice,
    Bias,
    FollowedAlgorithm,
    bias_of,
    limit_weights,
)
from fltheory.advice.kept_advice import Kept
from fltheory.advice.measured_clients import MeasuredClients
from fltheory.advice.population import MOST_GROUPS, ClientPopulation
from fltheory.algorithms.table import ALGORITHMS
from fltheory.fedau import best_cutoff
from fltheory.logs import AvailabilityLog, describe
from fltheory.logs.description import LogDescription
from fltheory.long_work.progress import Progress
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray
from fltheory.weights.client_weights import Training, checked_sizes

_NOTHING_TO_MEND = 1e-9
_AS_GOOD = 1.05
_NEAR = 2.0
_CURVATURES = 1
# Factor on the assumed condition at which the advice is computed again.
_STEEPER = 10.0


@dataclass(frozen=True, eq=False)
class Advice(ReadOnlyArrays):
    """The advice that a log gives about the algorithms.

    Attributes
    ----------
    population : ClientPopulation
    algorithms : tuple of AlgorithmAdvice
    within : float
        Rounds are counted until the distance from the optimum falls to this fraction of the
        initial distance.
    measured : MeasuredClients or None
        Clients as measured by their gradients, if they were measured.
    steeper : Advice or None
        The same advice for clients whose curvatures differ more, at the same step sizes, only for
        algorithms close to the best one.
    description : LogDescription
        A description of the log; its tests check the assumptions of the advice.
    """

    population: ClientPopulation
    algorithms: tuple[AlgorithmAdvice, ...]
    within: float
    measured: MeasuredClients | None = None
    steeper: Advice | None = None
    _: KW_ONLY
    description: LogDescription

    def named(self, name: str) -> AlgorithmAdvice:
        """Return the advice on an algorithm by its name in the package's table."""
        return next(found for found in self.algorithms if found.name == name)

    @cached_property
    def best(self) -> AlgorithmAdvice:
        """The algorithm to use if the server has no data of its own."""
        return self.best_if(1.0, 1.0)

    @cached_property
    def fallback(self) -> AlgorithmAdvice:
        """The algorithm to use if there are also no vectors per client and no known facts."""
        return self.best_if(1.0, 1.0, frugal=True)

    def best_if(self, radius: float, noise: float, *, frugal: bool = False) -> AlgorithmAdvice:
        """Return the best algorithm with the optima's spread and the noise scaled by these factors.

        Errors are taken late in the log and include the remaining initial error. Each algorithm
        uses its own best step for that number of rounds. So steps are chosen by the same criterion
        by which algorithms are compared, and a small change of the step changes the comparison only
        slightly. Without the initial error, ever shorter steps would look better.

        Of the algorithms within 5% of the smallest error, the one that needs least is returned. If
        plain FedAvg has neither bias nor sway, FedAvg is returned, because the others then differ
        only in their step.
        """
        plain = self.named("fedavg")
        if max(plain.log.at_worst, plain.sway) < _NOTHING_TO_MEND:
            return plain
        able = [found for found in self.algorithms if not found.needs.server_data]
        if frugal:
            able = [f for f in able if not f.needs.vectors and not f.needs.facts]
        least = min(found.error_if(radius, noise) for found in able)
        good = [f for f in able if f.error_if(radius, noise) <= _AS_GOOD * least]
        return min(good, key=lambda found: (found.needs.rank, found.error_if(radius, noise)))

    @cached_property
    def exclusion(self) -> Bias:
        """The bias that clients never seen cause in any algorithm without server data."""
        population = self.population
        weights = population.among_all(population.distances.targets[population.ever])
        return bias_of(population.distances, weights)

    @property
    def rare_below(self) -> float:
        """Half the mean availability of the clients seen at least once."""
        return float(self.population.chains.availability.mean()) / 2

    @cached_property
    def rare(self) -> ClientIndices:
        """Indices of the clients that are seen, but less often than ``rare_below``."""
        shares = self.population.log.marginals
        return np.flatnonzero((shares > 0) & (shares < self.rare_below))

    @cached_property
    def fedavg_parts(self) -> tuple[float, float]:
        """The parts of plain FedAvg's largest bias due to rare and to never seen clients."""
        population = self.population
        parts = population.group_distances.parts(self.named("fedavg").weights)
        shares = population.group_chains.availability
        rare = parts[: shares.size][shares < self.rare_below]
        return float(rare.sum()), float(parts[shares.size :].sum())

    @cached_property
    def grouping_error(self) -> float | None:
        """The error of biases due to grouping, relative to the largest bias; None without groups.

        It is the largest change of any bias (unrelated or worst case) by grouping, over the
        algorithms whose limit has a closed form with and without groups.
        """
        population = self.population
        if population.shown.size == population.ever.size:
            return None
        off, largest = [], []
        for found in self.algorithms:
            grouped = limit_weights(found.name, population, found.step, found.options, grouped=True)
            if grouped is not None and found.process is not None:
                bias = bias_of(population.group_distances, grouped)
                off.append(abs(bias.unrelated - found.process.unrelated))
                off.append(abs(bias.at_worst - found.process.at_worst))
                largest.append(found.process.at_worst)
        return max(off) / max(largest)

    def in_short(self) -> dict[str, Any]:
        """Return the advised algorithms, and each algorithm's error."""
        return {
            "condition": self.population.training.condition,
            "use": self.best.name,
            "else": self.fallback.name,
            "errors": {found.name: _number(found.error) for found in self.algorithms},
        }

    def document(self) -> dict[str, Any]:
        """Return all numbers in a form for JSON."""
        population, training = self.population, self.population.training
        log = population.log
        return {
            "clients": log.n_clients,
            "rounds": log.n_rounds,
            "groups": int(population.shown.size),
            "grouping_error": self.grouping_error,
            "rounds_followed": len(population.recorded),
            "drifts": population.drifts,
            "rejected": [fit.model for fit in self.description.fits if fit.rejected],
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
                "part_of_fedavg": self.fedavg_parts[0],
            },
            "algorithms": [
                {
                    "name": found.name,
                    "options": dict(found.options),
                    "needs": vars(found.needs),
                    "step": found.step,
                    **{
                        name: None if bias is None else _finite(vars(bias))
                        for name, bias in (("process", found.process), ("log", found.log))
                    },
                    **_finite({name: getattr(found, name) for name in _PARTS}),
                    "interval": [_number(bound) for bound in found.interval],
                    "usual_error": _number(found.usual_error),
                    "end_error": _number(found.errors[-1]),
                    "rounds": found.rounds,
                }
                for found in self.algorithms
            ],
        }


_PARTS = ("sway", "sway_at_worst", "noise", "left", "error")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: _number(value) for name, value in values.items()}


def _options(population: ClientPopulation, cutoff: float) -> dict[str, Mapping[str, Any]]:
    """Return the algorithms considered, with their options."""
    count = population.shown.size
    chosen: dict[str, Mapping[str, Any]] = {
        "fedau": {"cutoff": cutoff},
        "mifa": {"start": "zero"},
        "f3ast": {**ALGORITHMS["f3ast"].example(count), "availability": None},
        "ca-fed": {"availability": None, "correlation": None},
        "safari": ALGORITHMS["safari"].example(count),
    }
    if population.weighted:
        sizes = tuple(population.group_facts["target_weights"].tolist())
        chosen["fedavg"] = {"proximal": 0.0, "client_weights": sizes}
    names = ("fedavg", "fedau", "fedar", "mifa", "fedvarp", "scaffold", "fedavg-is", "unbiased")
    return {name: chosen.get(name, {}) for name in (*names, "adafed", "f3ast", "safari", "ca-fed")}


def advise(
    log: AvailabilityLog,
    sizes: ArrayLike | None = None,
    *,
    training: Training | None = None,
    measured: MeasuredClients | None = None,
    description: LogDescription | None = None,
    within: float = 0.1,
    most_groups: int = MOST_GROUPS,
    seed: int = 0,
    progress: Progress | None = None,
    store: Path | None = None,
) -> Advice:
    """Return the errors to expect of each algorithm if clients come and go as in a log.

    Parameters
    ----------
    log : AvailabilityLog
    sizes : array, (N,), optional
        Positive numbers, to which the targets are proportional. Equal by default. With sizes,
        algorithms are weighted by data: FedAvg as in McMahan et al. (2017), and others that weight
        clients equally by multiplying each client's loss by its target.
    training : Training, optional
        Local steps, noise, dissimilarity and condition.
    measured : MeasuredClients, optional
        Measured clients, if ``training`` comes from gradients; the advice then reports their
        intervals.
    description : LogDescription, optional
        The description of this log, if already computed.
    within : float
        Rounds are counted until the distance from the optimum falls to this fraction of the
        initial distance.
    most_groups : int
        The largest number of groups of clients for computing rounds; more groups take longer.
    seed : int
        Random seed for gradient noise, and for curvatures if the condition is above 1.
    progress : callable, optional
        Called with (algorithms done, number of algorithms, the last one and its error).
    store : path, optional
        A file that stores each algorithm's results as they finish. The same call with the same file
        resumes; results for other logs, sizes or assumptions are not used.

    Raises
    ------
    ValueError
        If an argument is out of range, or nobody is ever online in the log.
    """
    validation.positive("within", within)
    validation.whole_number("most_groups", most_groups, at_least=1)
    known = description or describe(_fit_for_advice(log), seed=seed)
    population = replace(
        _population(log, sizes, training or Training(), seed, most_groups),
        period=known.period,
        drifts=known.drifts,
    )
    if progress is not None:
        progress(0, 0, "looking for a cut-off")
    best = best_cutoff(log).best.cutoff
    considered = _options(population, best if math.isinf(best) else int(best))
    kept = Kept(store, population, within, seed)
    first = kept.followed(
        [FollowedAlgorithm("fedavg", considered["fedavg"], population, within, seed)]
    )
    halvings = round(math.log2(population.training.step / first["fedavg"].step))
    # CA-Fed takes longest, so it starts first. It is FedAvg on the clients that it keeps, at the
    # step of FedAvg.
    step = {"ca-fed": first["fedavg"].step}
    tasks = [
        FollowedAlgorithm(
            name, considered[name], population, within, seed, step.get(name), halvings
        )
        for name in reversed(considered)
        if name != "fedavg"
    ]
    found = first | kept.followed(tasks, progress)
    others = _steeper(population, measured, seed)
    ordered = tuple(found[name] for name in considered)
    advice = Advice(population, ordered, within, measured, description=known)
    compared = {one.name for one in (advice.best, advice.fallback, found["fedavg"])}
    compared |= {one.name for one in ordered if one.error <= _NEAR * advice.best.error}
    again = kept.followed(
        [
            FollowedAlgorithm(name, considered[name], others, within, seed, found[name].step)
            for name in considered
            if name in compared
        ],
        progress,
    )
    steeper = tuple(again[name] for name in considered if name in again)
    return replace(advice, steeper=Advice(others, steeper, within, description=known))


def _steeper(
    population: ClientPopulation, measured: MeasuredClients | None, seed: int
) -> ClientPopulation:
    """Return the clients with a larger condition: its interval's upper end, or ten times it."""
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


def _fit_for_advice(log: AvailabilityLog) -> AvailabilityLog:
    """Return a log of two or more rounds with somebody online; refuse others."""
    if not log.rounds_present.any():
        raise ValueError("log must have at least one client online in at least one round, got none")
    if log.n_rounds < 2:
        raise ValueError("log must have at least 2 rounds, got 1")
    return log


def _population(
    log: AvailabilityLog,
    sizes: ArrayLike | None,
    training: Training,
    seed: int,
    most_groups: int,
) -> ClientPopulation:
    count, size = log.n_clients, checked_sizes(sizes, log.clients)
    alpha = size / size.max()
    curvatures = _curvatures(training.condition, count, seed)
    weighted = bool(np.ptp(size) > 0)
    return ClientPopulation(log, alpha / alpha.sum(), curvatures, training, most_groups, weighted)
