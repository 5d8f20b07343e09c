"""The errors of one algorithm if clients come and go as in a log, and its requirements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fltheory.advice.population import ClientPopulation, Distances
from fltheory.advice.rounds import LogRounds, OnTheLog
from fltheory.algorithms.contract import SERVER, Algorithm, KnownLimit
from fltheory.algorithms.table import ALGORITHMS, Listed
from fltheory.decimals import how_many
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_COUNTED = 3


@dataclass(frozen=True)
class Needs:
    """The resources that an algorithm requires.

    Attributes
    ----------
    vectors, numbers : int
        Memory per client: vectors as long as the model, and single numbers.
    facts : tuple of str
        Facts about clients that must be known beforehand, e.g. ``availability``.
    server_data : bool
        Whether the server needs data representative of all clients.
    """

    vectors: int
    numbers: int
    facts: tuple[str, ...]
    server_data: bool

    @classmethod
    def of(cls, algorithm: Algorithm, facts: Iterable[str], n_clients: int = _COUNTED) -> Needs:
        """Return an algorithm's needs, read off its state and its branches.

        Parameters
        ----------
        algorithm : Algorithm
        facts : iterable of str
            Facts about clients that it takes.
        n_clients : int
            Number of clients that it is made for.
        """
        # With as many coordinates as clients, the server's vectors would look like clients'
        # numbers.
        dim = n_clients + 1
        state = algorithm.init(np.zeros((1, dim)), n_clients)
        shapes = [np.shape(array) for name, array in state.items() if name != "x"]
        return cls(
            vectors=shapes.count((1, n_clients, dim)),
            numbers=shapes.count((1, n_clients)),
            facts=tuple(facts),
            server_data=any(name == SERVER for name, _ in algorithm.branches),
        )

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """A sort key by the hardest requirement: server data, vectors, facts, numbers."""
        return self.server_data, self.vectors, len(self.facts), self.numbers

    def __str__(self) -> str:
        parts = ["server data"] if self.server_data else []
        parts += [f"{how_many(self.vectors, 'vector')} per client"] if self.vectors else []
        parts += [f"known {' and '.join(self.facts)}"] if self.facts else []
        parts += [f"{how_many(self.numbers, 'number')} per client"] if self.numbers else []
        return ", ".join(parts) or "nothing"


# Steps tried are the longest one, halved this many times.
_MOST_HALVINGS, FIRST_HALVINGS = 6, 4
_DRAWS, _MISSED, _NORMAL = 400, 0.05, 1.96
_SHARED = 4


@dataclass(frozen=True)
class Bias:
    """The limiting distance of the mean model from the optimum, in units of ``||w_0 - w*||``.

    Attributes
    ----------
    unrelated : float
        Root mean square over optima unrelated to availability.
    at_worst : float
        Maximum over all optima at the given distance.
    low, high : float
        95% interval of ``at_worst``, which is uncertain because the same clients might have
        produced other logs. Both ends equal ``at_worst`` if it comes from a formula.
    """

    unrelated: float
    at_worst: float
    low: float
    high: float


_NOWHERE = Bias(math.inf, math.inf, math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class AlgorithmAdvice(ReadOnlyArrays):
    """The errors to expect of one algorithm, which are infinite if it diverges at every step tried.

    Attributes
    ----------
    name, title : str
    options : mapping
        Its hyper-parameters besides step sizes and facts.
    needs : Needs
    step : float
        The step size, in units of 1/L.
    process : Bias or None
        The bias from a formula, for clients that come and go as in the log but independently of
        each other; None if there is no formula.
    log : Bias
        The bias along the log; for algorithms that take its availability, in further rounds like
        the log's.
    sway, sway_at_worst, noise : float
        Root-mean-square errors due to the coming and going of clients (for unrelated and for the
        worst optima) and due to gradient noise.
    left : float
        The initial error that remains late in the log: root mean square over its last quarter.
    chance : float
        Standard error of the combined square of ``sway``, ``noise`` and ``left``, because the log
        is one of many possible logs.
    weights : array, (G,)
        Weights of the groups' optima in the mean model along the log.
    errors : array
        Root-mean-square error after each round of the log, from the start.
    rounds : int or None
        The number of rounds after which the error stays within the requested distance.
    """

    name: str
    title: str
    options: Mapping[str, Any]
    needs: Needs
    step: float
    process: Bias | None
    log: Bias
    sway: float
    sway_at_worst: float
    noise: float
    left: float
    chance: float
    weights: FloatArray
    errors: FloatArray
    rounds: int | None

    @property
    def error(self) -> float:
        """Root-mean-square error late in the log, for the worst optima."""
        return self.error_if(1.0, 1.0)

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of `error`."""
        if not math.isfinite(self.error):
            return self.error, self.error
        square, found = self.log.at_worst**2, self.error**2
        below, above = (
            math.hypot(end**2 - square, _NORMAL * self.chance)
            for end in (self.log.low, self.log.high)
        )
        return math.sqrt(max(found - below, 0.0)), math.sqrt(found + above)

    def error_if(self, radius: float, noise: float) -> float:
        """Return the error for optima ``radius`` times as far apart, ``noise`` times the noise."""
        worst = (radius * self.log.at_worst, radius * self.sway_at_worst)
        return math.hypot(*worst, noise * self.noise, self.left)

    @property
    def usual_error(self) -> float:
        """Root-mean-square error late in the log, if optima are unrelated to availability."""
        return math.hypot(self.log.unrelated, self.sway, self.noise, self.left)

    @property
    def called(self) -> str:
        """Title, with the cut-off if there is one."""
        cutoff = self.options.get("cutoff")
        return self.title if cutoff is None else f"{self.title} with cut-off {cutoff:g}"


def _listed(name: str, options: Mapping[str, Any]) -> Listed:
    # FedAvg weighted by data, as in McMahan et al. (2017), is FedProx without its proximal term.
    return ALGORITHMS["fedprox" if "client_weights" in options else name]


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
    return _listed(name, options).among(circumstances, **options)


@dataclass(frozen=True)
class FollowedAlgorithm:
    """An algorithm to run along the log, at a given step or, after a search, at the best one."""

    name: str
    options: Mapping[str, Any]
    population: ClientPopulation
    within: float
    seed: int
    step: float | None = None
    halvings: int = FIRST_HALVINGS


def advice_on(task: FollowedAlgorithm) -> AlgorithmAdvice:
    """Return the errors to expect of an algorithm."""
    name, options, population, seed = task.name, task.options, task.population, task.seed
    if options.keys() & {"client_weights"} or "target_weights" in ALGORITHMS[name].told:
        population = replace(population, weighted=False)

    def follow(step: float) -> LogRounds:
        made = _made(name, options, population, step, population.group_facts)
        return LogRounds(made, population, seed)

    if task.step is None:
        step, run = _best_step(population.training.step, follow, task.halvings)
    else:
        step, run = task.step, follow(task.step)
    log = run.on_the_log()
    limit = limit_weights(name, population, step, options)
    algorithm = _made(name, options, population, step, population.group_facts)
    known = ALGORITHMS[name].facts_required
    return AlgorithmAdvice(
        name=name,
        title=ALGORITHMS[name].title,
        options=options,
        needs=Needs.of(algorithm, known, population.shown.size),
        step=step,
        process=None if limit is None else bias_of(population.distances, limit),
        log=_NOWHERE if log is None else _bias_along(population.group_distances, log, bool(known)),
        sway=math.inf if log is None else log.sway,
        sway_at_worst=math.inf if log is None else log.sway_at_worst,
        noise=math.inf if log is None else log.noise,
        left=math.inf if log is None else log.left,
        chance=math.inf if log is None else math.hypot(_scatter(log.squares), log.drawn_error),
        weights=population.group_distances.targets if log is None else log.weights,
        errors=np.full(len(population.recorded), math.inf) if log is None else log.errors,
        rounds=None if log is None else log.rounds_within(task.within),
    )


def limit_weights(
    name: str,
    population: ClientPopulation,
    step: float,
    options: Mapping[str, Any],
    *,
    grouped: bool = False,
) -> FloatArray | None:
    """Return the weights of all clients' optima in an algorithm's limit, or None if unknown.

    Parameters
    ----------
    name : str
        Name in the package's table.
    population : ClientPopulation
    step : float
        The step size of local SGD, in units of 1/L.
    options : mapping
        Its hyper-parameters besides step sizes and facts.
    grouped : bool
        Whether to treat groups as clients; the weights are then those of the groups' optima.
    """
    if not isinstance(_listed(name, options).algorithm, KnownLimit):
        return None
    facts = population.group_facts if grouped else population.facts
    algorithm = _made(name, options, population, step, facts)
    assert isinstance(algorithm, KnownLimit)
    if not grouped:
        return population.among_all(algorithm.limit_pulls(population.chains, population.moves))
    pulls = algorithm.limit_pulls(population.group_chains, population.group_moves)
    never = population.group_distances.targets.size - pulls.size
    return np.append(pulls / pulls.sum(), np.zeros(never))


def _best_step(
    longest: float, follow: Callable[[float], LogRounds], halvings: int
) -> tuple[float, LogRounds]:
    """Return the step with the smallest error late in the log, and its run.

    Shorter steps are tried as long as they improve the error. If no shorter step does, longer steps
    are tried.
    """
    at, best = halvings, follow(longest / 2**halvings)
    for direction in (1, -1):
        while 0 <= at + direction <= _MOST_HALVINGS:
            run = follow(longest / 2 ** (at + direction))
            if not run.late_error < best.late_error:
                break
            at, best = at + direction, run
        if at != halvings:
            break
    return longest / 2**at, best


def bias_of(distances: Distances, weights: FloatArray) -> Bias:
    """Return the bias of given weights."""
    worst = distances.at_worst(weights)
    return Bias(distances.unrelated(weights), worst, worst, worst)


def _factors(count: int) -> FloatArray:
    """Return bootstrap factors (draws, B) for the deviations of batches.

    Neighbouring batches share normal factors, so that cycles and memory longer than a batch are
    accounted for (dependent wild bootstrap, Shao 2010).
    """
    shared = min(_SHARED, max(1, count // 4))
    normal = np.random.default_rng(0).standard_normal((_DRAWS, count + shared - 1))
    factors = np.sum([normal[:, lag : lag + count] for lag in range(shared)], axis=0)
    return np.asarray(factors / math.sqrt(shared * count * max(count - 1, 1)))


def _scatter(of_batches: FloatArray) -> float:
    """Return the standard error of the mean of the batches' means (B,)."""
    return float((_factors(of_batches.size) @ (of_batches - of_batches.mean())).std())


def _bias_along(distances: Distances, log: OnTheLog, told: bool) -> Bias:
    """Return the bias in further rounds like the log's, from its batches' pulls.

    Other logs of the same clients would give other mean weights. Draws of these are the mean plus
    the batches' deviations times `_factors`, which preserves correlations between clients. An
    algorithm that takes the availability of this log (``told``) has no apparent bias along the log
    itself; its error is the difference between further rounds and the log, which these draws have,
    too. For the other algorithms, the log's own distance is the estimate, and the draws only give
    its scatter. (Subtracting the contribution of chance from the square was tried, but F3AST and
    FedAU compensate for chance as they go, and came out unbiased.)
    """
    factors = _factors(len(log.pulls))
    draws = log.weights + factors @ (log.pulls - log.pulls.mean(axis=0))
    worst = np.array([distances.at_worst(weights) for weights in draws])
    low, high = np.quantile(worst, (_MISSED / 2, 1 - _MISSED / 2)).tolist()
    if told:
        squares = np.array([distances.squares(weights).sum() for weights in draws])
        unrelated = distances.radius * math.sqrt(squares.mean())
        return Bias(unrelated, math.sqrt((worst**2).mean()), low, high)
    found, middle = distances.at_worst(log.weights), float(worst.mean())
    low, high = max(found + middle - high, 0.0), found + middle - low
    return Bias(distances.unrelated(log.weights), found, low, high)
