"""Rounds as somebody else writes them, and what is right for each: data for `test_strangers`.

``plain``: pure and affine given who takes part; every engine that is named must answer. ``pure``:
a function of state, clients, participants and branch, affine or not; who answers, answers right.
``random``: a generator's state moves and nothing else; sampled, never computed. ``impure``: changes
what it was given, itself or something outside; refused, by a message that says what.

A kind's ``clean`` is a plain round of the same look, which must stay as exact as it is.
"""

# ruff: noqa: NPY002

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from fltheory.algorithms.contract import Algorithm
from fltheory.algorithms.shared.averaging import participant_average
from fltheory.engines import Setting
from fltheory.engines.clients.noise import GaussianNoise, Silence
from fltheory.engines.clients.quadratic_clients import QuadraticClients
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem

ENGINES = ("exact", "enclosed", "paths", "truth", "check")
EVERYWHERE = "alone long far some unequal chains cycle noisy noisy_some"

# ---------------------------------------------------------------- the settings


def _problem(curvatures: list[float], optima: list[float], **more: Any) -> QuadraticProblem:
    return QuadraticProblem([[[h]] for h in curvatures], [[c] for c in optima], **more)


TWO = _problem([1.0, 3.0], [0.0, 1.0], target_weights=[0.75, 0.25])
THREE = _problem([1.0, 1.0, 2.0], [0.0, 1.0, -2.0])
PLANE = QuadraticProblem([[1.0, 0.0], [0.0, 0.5]], [[0.0, 1.0]])

PARTS: dict[str, tuple[Any, Any, int, list[float]]] = {
    "alone": (_problem([1.0], [0.0]), UniformSubset(1, 1), 5, [1.0]),
    "long": (TWO, UniformSubset(2, 2), 45, [2.0]),
    "far": (PLANE, UniformSubset(1, 1), 12, [1000.0, -300.0]),
    "some": (THREE, UniformSubset(3, 2), 4, [1.0]),
    "unequal": (TWO, Bernoulli([0.5, 0.8]), 4, [2.0]),
    "chains": (TWO, MarkovOnOff([0.5, 0.6], [0.5, 0.2]), 4, [2.0]),
    "cycle": (THREE, Cyclic([2, 3, 4], [0, 1, 2]), 30, [1.0]),
    "noisy": (_problem([1.0], [0.0], sigma=0.5), UniformSubset(1, 1), 4, [1.0]),
    "noisy_some": (
        _problem([1.0, 3.0], [0.0, 1.0], sigma=0.5),
        Bernoulli([0.5, 0.8]),
        2,
        [2.0],
    ),
    "grid": (TWO, UniformSubset(2, 2), 400, [2.0]),
}


def setting_of(make: Callable[[], Any], where: str) -> Setting:
    """Return a setting on which a fresh object runs."""
    problem, participation, rounds, x0 = PARTS[where]
    return Setting(make(), problem, participation, rounds, x0)


# ---------------------------------------------------------------- the plain truth

Path = tuple[tuple[tuple[bool, ...], str], ...]
"""Who takes part in each round, and the branch."""


@dataclass(frozen=True)
class PlainTruth:
    """``E||x_r - x*||^2`` after every round, to within ``within``."""

    squared_distance: np.ndarray
    within: np.ndarray


def plain_truth(
    make: Callable[[], Any], where: str, right: str, replicas: int = 1200
) -> PlainTruth:
    """Return the truth of real rounds, one run at a time, each by a fresh object.

    Every path of participants has its probability, and noise of a plain round, of which only the
    first two moments count, is plus or minus one; what is random or noisy otherwise is averaged
    over ``replicas`` runs.
    """
    problem, participation, rounds, _ = PARTS[where]
    if right == "random" or (problem.sigma and right != "plain"):
        return _averaged(make, where, replicas, fresh=right != "random")
    total = np.zeros(rounds + 1)
    for chance, path in _paths(make, participation, rounds):
        silent = Silence()
        run = _run(make(), where, path, silent)
        if problem.sigma:
            signs = list(product((-1.0, 1.0), repeat=silent.numbers_per_replica))
            runs = [_run(make(), where, path, _Given(numbers)) for numbers in signs]
            run = np.mean(runs, axis=0)
        total += chance * run
    return PlainTruth(total, np.zeros(rounds + 1))


def _averaged(make: Callable[[], Any], where: str, replicas: int, *, fresh: bool) -> PlainTruth:
    _, participation, rounds, _ = PARTS[where]
    rng = np.random.default_rng(7)
    np.random.seed(7)
    algorithm = make()
    runs = []
    for _ in range(replicas):
        algorithm = make() if fresh else algorithm
        path = _drawn(algorithm, participation, rounds, rng)
        runs.append(_run(algorithm, where, path, GaussianNoise(rng)))
    return PlainTruth(np.mean(runs, axis=0), 6 * np.std(runs, axis=0) / replicas**0.5)


def _run(algorithm: Any, where: str, path: Path, noise: Any) -> np.ndarray:
    """Run rounds one after another and return the squared distances from x*."""
    problem, _, _, x0 = PARTS[where]
    clients = QuadraticClients(problem, noise)
    state = _in_round(algorithm, 1).init(np.array([x0]), clients.n_clients)
    distances = [((np.array(x0) - problem.x_star) ** 2).sum()]
    for index, (who, branch) in enumerate(path, start=1):
        now = _in_round(algorithm, index)
        state = now.round(state, clients, np.array([who]), branch)
        offset = np.asarray(state["x"], dtype=np.float64)[0] - problem.x_star
        distances.append((offset**2).sum())
    return np.array(distances)


def _in_round(algorithm: Any, index: int) -> Any:
    return algorithm.at(index) if hasattr(algorithm, "at") else algorithm


class _Given:
    """Noise that is written down beforehand."""

    def __init__(self, numbers: tuple[float, ...]) -> None:
        self._left = iter(numbers)

    def normal(self, rows: np.ndarray, width: int) -> np.ndarray:
        numbers = [next(self._left) for _ in range(len(rows) * width)]
        return np.array(numbers).reshape(len(rows), width)


def _sets(process: Any, last: tuple[bool, ...] | None, index: int) -> Iterator[tuple[float, Any]]:
    """Yield who may take part in a round, the first being 0, after ``last``."""
    count = process.n_clients
    if isinstance(process, UniformSubset):
        drawn = list(combinations(range(count), process.size))
        yield from ((1 / len(drawn), tuple(i in some for i in range(count))) for some in drawn)
        return
    if isinstance(process, Cyclic):
        times = zip(process.periods, process.offsets, process.active, strict=True)
        yield (
            1.0,
            tuple(bool((index + offset) % period < active) for period, offset, active in times),
        )
        return
    chances = process.availability
    if isinstance(process, MarkovOnOff) and last is not None:
        chances = process.correlation * np.array(last) + (1 - process.correlation) * chances
    for there in product((False, True), repeat=count):
        chance = prod(p if here else 1 - p for p, here in zip(chances, there, strict=True))
        if chance:
            yield chance, there


def _steps(algorithm: Any, process: Any, last: Any, index: int) -> Iterator[tuple[float, Any]]:
    for chance, who in _sets(process, last, index):
        for branch, share in _in_round(algorithm, index + 1).branches:
            yield chance * share, (who, branch)


def _paths(make: Callable[[], Any], process: Any, rounds: int) -> Iterator[tuple[float, Path]]:
    # Objects whose branches change when they are asked are impure, and have no truth here.
    algorithm = make()
    begun: list[tuple[float, Path]] = [(1.0, ())]
    for index in range(rounds):
        begun = [
            (chance * share, (*path, step))
            for chance, path in begun
            for share, step in _steps(algorithm, process, path[-1][0] if path else None, index)
        ]
    return iter(begun)


def _drawn(algorithm: Any, process: Any, rounds: int, rng: np.random.Generator) -> Path:
    path: list[Any] = []
    for index in range(rounds):
        steps = list(_steps(algorithm, process, path[-1][0] if path else None, index))
        chances = [chance for chance, _ in steps]
        path.append(steps[rng.choice(len(steps), p=chances)][1] if len(steps) > 1 else steps[0][1])
    return tuple(path)


# ---------------------------------------------------------------- the table


@dataclass(frozen=True)
class Kind:
    """A user's round: what makes it, what is right for it, and where it is tried."""

    name: str
    right: str
    make: Callable[[], Any]
    clean: str | None
    on: tuple[str, ...]
    answers: tuple[str, ...]
    names: str


KINDS: dict[str, Kind] = {}


def kind(
    right: str,
    *,
    clean: type | None = None,
    on: str = "long some unequal chains noisy",
    answers: str = "",
    names: str = "chang|twice|again|differ|same|pure",
) -> Callable[[type], type]:
    """Enter a class in the table; made without arguments, it is an algorithm.

    ``answers`` are the engines that must answer a plain round, ``names`` what a refusal of an
    impure one must say, as a regular expression.
    """

    def entered(made: type) -> type:
        twin = None if clean is None else clean.__name__
        assert twin is None or KINDS[twin].right == "plain", made
        must = (answers.split() or list(ENGINES)) if right == "plain" else []
        KINDS[made.__name__] = Kind(
            made.__name__, right, made, twin, tuple(on.split()), tuple(must), names
        )
        return made

    return entered


def mean_update(clients: Any, x: Any, who: Any, lr: float = 0.25) -> Any:
    """One local step each, averaged over who is there: what most labs begin with."""
    return clients.summed_local_sgd(x, who, participant_average(who, x), steps=1, lr=lr)


# ---------------------------------------------------------------- casts


@kind("plain", on=EVERYWHERE)
class Plain(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who)}


@kind("plain")
class QuantisedWeights(Algorithm):
    """What is cast is no function of the model: eighths of the participants' shares."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        xp = array_namespace(x)
        whole = xp.astype(participant_average(who, x) * 8, xp.int64)
        weights = xp.astype(whole, x.dtype) / 8
        return {"x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.25)}


@kind("pure", clean=QuantisedWeights)
@dataclass(frozen=True)
class QuantisedUpdate(Algorithm):
    grid: float = 0.125

    def round(self, state, clients, who, branch):
        x, g = state["x"], self.grid
        xp = array_namespace(x)
        u = mean_update(clients, x, who)
        return {"x": x + xp.astype(xp.astype(u / g, xp.int64), x.dtype) * g}


@kind("pure", clean=QuantisedWeights)
class ModelOnGrid(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        y = (x + mean_update(clients, x, who)) * 1024
        xp = array_namespace(y)
        return {"x": xp.astype(xp.astype(y, xp.int32), x.dtype) / 1024}


@kind("pure", clean=QuantisedWeights, on="grid")
class FineGrid(Algorithm):
    """Each round loses less than 2^-31, below what a comparison of few rounds sees."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        y = (x + mean_update(clients, x, who, lr=0.01)) * 2**31
        xp = array_namespace(y)
        return {"x": xp.astype(xp.astype(y, xp.int64), x.dtype) / 2**31}


@kind("pure", clean=QuantisedWeights)
class HalfPrecisionMessage(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who, lr=0.3).astype(np.float16)}


@kind("pure", clean=QuantisedWeights)
class SinglePrecisionMessage(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        xp = array_namespace(x)
        u = xp.asarray(mean_update(clients, x, who, lr=0.3), dtype=xp.float32)
        return {"x": x + xp.astype(u, xp.float64)}


# ---------------------------------------------------------------- in place


@kind("impure", clean=Plain, names=r"\bx\b|state")
class AddsInPlace(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        x += mean_update(clients, x, who)
        return {"x": x}


@kind("plain")
class KeepsOldModel(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "old": x0}

    def round(self, state, clients, who, branch):
        x = state["x"]
        new = x + mean_update(clients, x, who) + (x - state["old"]) / 4
        return {"x": new, "old": x}


@kind("impure", clean=KeepsOldModel, names=r"\bx\b|\bold\b|state")
class KeepsOldModelInPlace(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0.copy(), "old": x0.copy()}

    def round(self, state, clients, who, branch):
        x, old = state["x"], state["old"]
        before = x
        x += mean_update(clients, x, who) + (x - old) / 4
        return {"x": x, "old": before}


# ---------------------------------------------------------------- generators


@kind("plain", answers="exact paths truth check")
class FixedDither(Algorithm):
    """A generator made afresh with the same seed moves nothing outside."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        shift = np.random.default_rng(5).normal(size=x.shape[1])
        return {"x": x + mean_update(clients, x, who) + shift / 8}


@kind("random", clean=FixedDither, on="alone unequal noisy")
@dataclass(frozen=True)
class DifferentiallyPrivate(Algorithm):
    """FedAvg that draws its noise in the round."""

    scale: float = 0.5

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who) + np.random.normal(0, self.scale, x.shape)}


@kind("random", clean=FixedDither, on="alone unequal noisy")
class OwnGenerator(Algorithm):
    def __init__(self):
        self.rng = np.random.default_rng(3)

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who) + self.rng.normal(0, 0.5, x.shape)}


# ---------------------------------------------------------------- memory on self


@kind("plain", on="long some chains noisy")
class FallingStep:
    """The round's number comes from the schedule."""

    def at(self, t):
        return _Step(0.5 / t)


@dataclass(frozen=True)
class _Step(Algorithm):
    lr: float

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who, lr=self.lr)}


@kind("impure", clean=FallingStep, names=r"\bt\b")
class CountsOnSelf(Algorithm):
    def __init__(self):
        self.t = 0

    def round(self, state, clients, who, branch):
        self.t += 1
        x = state["x"]
        return {"x": x + mean_update(clients, x, who, lr=0.5 / self.t)}


@kind("impure", clean=FallingStep, on="long cycle", names=r"\bt\b")
class FallsAfterTwenty(Algorithm):
    def __init__(self):
        self.t = 0

    def round(self, state, clients, who, branch):
        self.t += 1
        x = state["x"]
        lr = 0.25 if self.t <= 20 else 0.025
        return {"x": x + mean_update(clients, x, who, lr=lr)}


@kind("impure", clean=FallingStep, names=r"lr|at\(")
class OneChangedObject:
    """A schedule that hands out the same object in every round."""

    def __init__(self):
        self.inner = _Changeable(0.5)

    def at(self, t):
        self.inner.lr = 0.5 / t
        return self.inner


class _Changeable(Algorithm):
    def __init__(self, lr):
        self.lr = lr

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who, lr=self.lr)}


@kind("pure", clean=FallingStep)
class EqualThoughStepsDiffer:
    def at(self, t):
        return _Uncompared(0.5 / t)


@dataclass(frozen=True)
class _Uncompared(Algorithm):
    lr: float = field(compare=False)

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who, lr=self.lr)}


# ---------------------------------------------------------------- nonlinear


@kind("pure", clean=Plain)
class ClipThatMayFail(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        u = mean_update(clients, x, who)
        with suppress(ValueError):
            u = np.clip(u, -0.1, 0.1)
        return {"x": x + u}
