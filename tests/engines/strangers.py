"""Rounds as somebody else writes them, and what is right for each: data for `test_strangers`.

``plain``
    Pure and affine given who takes part: every engine that is named must answer, and be right.
``pure``
    A function of state, clients, participants and branch, affine or not: who answers is right.
``random``
    NumPy's generator, or one of its own, moves and nothing else: sampled, never computed.
``chance``
    Random in a way that nobody can seed, or by one draw for a batch: as random, or refused.
``impure``
    Changes what it was given, itself or something outside, or is no algorithm: refused, by a
    message that says what.

A kind's ``clean`` is a plain round of the same look, which must stay as exact as it is.
"""

# ruff: noqa: NPY002

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import pickle
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, partial, singledispatch
from itertools import combinations, count, product
from math import prod
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from array_api_compat import array_namespace

from fltheory.algorithms import (
    AveragedIterate,
    FedAU,
    FedAvg,
    Harmonic,
    Projected,
    Safari,
    Scaffold,
    Scheduled,
    ServerMomentum,
    WarmStarted,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import Algorithm
from fltheory.algorithms.shared.averaging import participant_average
from fltheory.engines import Setting
from fltheory.engines.clients.analytic_clients import GaussianNoise, QuadraticClients
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset
from fltheory.problems import Ball, QuadraticProblem
from tests.engines.impulses import CountedSilence

LOG = logging.getLogger(__name__)
ENGINES = ("exact", "enclosed", "paths", "truth", "check")
EVERYWHERE = "alone long far some unequal chains cycle noisy noisy_some"

# ---------------------------------------------------------------- the settings


def _problem(curvatures: list[float], optima: list[float], **more: Any) -> QuadraticProblem:
    return QuadraticProblem([[[h]] for h in curvatures], [[c] for c in optima], **more)


# Numbers that are not round: on a tie, what is cast or rounded would go by the last bit.
ONE = _problem([1.0], [0.13])
TWO = _problem([1.0, 2.9], [0.07, 1.03], target_weights=[0.75, 0.25])
THREE = _problem([1.0, 1.3, 1.9], [0.17, 1.03, -1.91])
SIX = _problem([1.0, 1.1, 1.2, 1.3, 1.4, 1.5], [0.1, 0.2, 0.3, -0.4, -0.5, 0.6])
PLANE = QuadraticProblem([[1.0, 0.0], [0.0, 0.5]], [[0.1, 0.93]])
LOUD = _problem([1.0], [0.13], sigma=0.5, server_sigma=0.5)
LOUD_TWO = _problem([1.0, 2.9], [0.07, 1.03], sigma=0.5)

PARTS: dict[str, tuple[Any, Any, int, list[float]]] = {
    "alone": (ONE, UniformSubset(1, 1), 5, [1.0718281]),
    "long": (TWO, UniformSubset(2, 2), 45, [2.1314159]),
    "far": (PLANE, UniformSubset(1, 1), 12, [1000.3717, -300.7291]),
    "some": (THREE, UniformSubset(3, 2), 4, [1.2371828]),
    "unequal": (TWO, Bernoulli([0.5, 0.8]), 4, [2.1314159]),
    "chains": (TWO, MarkovOnOff([0.5, 0.6], [0.5, 0.2]), 4, [2.1314159]),
    "cycle": (THREE, Cyclic([2, 3, 4], [0, 1, 2]), 30, [1.2371828]),
    "noisy": (LOUD, UniformSubset(1, 1), 4, [1.0718281]),
    "noisy_some": (LOUD_TWO, Bernoulli([0.5, 0.8]), 2, [2.1314159]),
    "served": (LOUD, UniformSubset(1, 1), 3, [1.0718281]),
    "grid": (TWO, UniformSubset(2, 2), 400, [2.1314159]),
    "rare": (TWO, Bernoulli([0.01, 0.004]), 4, [2.1314159]),
    "rare_chains": (TWO, MarkovOnOff([0.01, 0.004], [0.5, 0.2]), 4, [2.1314159]),
    "few_of_six": (SIX, Bernoulli([0.1] * 6), 2, [2.1314159]),
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


def plain_truth(make: Callable[[], Any], where: str, right: str, replicas: int = 100) -> PlainTruth:
    """Return the truth of real rounds, one run at a time, each by a fresh object.

    Every path of participants has its probability, and noise of a plain round, of which only the
    first two moments count, is plus or minus one; what is random or noisy otherwise is averaged
    over ``replicas`` runs.
    """
    problem, participation, rounds, _ = PARTS[where]
    chance = right in ("random", "chance")
    if chance or (problem.sigma and right != "plain"):
        return _averaged(make, where, replicas, fresh=not chance)
    total = np.zeros(rounds + 1)
    for chance, path in _paths(make, participation, rounds):
        silent = CountedSilence()
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
    models = [np.array(state["x"][0], dtype=np.float64)]
    for index, (who, branch) in enumerate(path, start=1):
        now = _in_round(algorithm, index)
        state = now.round(state, clients, np.array([who]), branch)
        models.append(np.array(state["x"][0], dtype=np.float64))
    return ((np.array(models) - problem.x_star) ** 2).sum(axis=1)


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
    n = process.n_clients
    if isinstance(process, UniformSubset):
        drawn = list(combinations(range(n), process.size))
        yield from ((1 / len(drawn), tuple(i in some for i in range(n))) for some in drawn)
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
    for there in product((False, True), repeat=n):
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
    on: str = "long some unequal noisy",
    answers: str = "",
    names: str = "chang|twice|again|differ|same|pure",
) -> Callable[[Any], Any]:
    """Enter a class in the table; made without arguments, it is an algorithm.

    ``answers`` are the engines that must answer a plain round, ``names`` what a refusal of an
    impure one must say, as a regular expression.
    """

    def entered(made: Any) -> Any:
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


def stepped(state: Any, clients: Any, who: Any, lr: float = 0.25) -> Any:
    x = state["x"]
    return {"x": x + mean_update(clients, x, who, lr)}


def per_client(clients: Any, x: Any, who: Any, lr: float = 0.25) -> Any:
    return clients.local_sgd(x, who, steps=1, lr=lr)


def nothing(x0: Any, *shape: int) -> Any:
    """Zeros for every replica, in the backend's own numbers."""
    return array_namespace(x0).zeros((x0.shape[0], *shape), dtype=x0.dtype)


# ---------------------------------------------------------------- plain rounds


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


@kind("plain")
class ThereAndBack(Algorithm):
    """Twin of rounding by a large number: eight is not large."""

    def round(self, state, clients, who, branch):
        return {"x": (stepped(state, clients, who)["x"] + 8) - 8}


@kind("plain")
class KeepsOldModel(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "old": x0}

    def round(self, state, clients, who, branch):
        x = state["x"]
        new = x + mean_update(clients, x, who) + (x - state["old"]) / 4
        return {"x": new, "old": x}


@kind("plain")
class StartsHalfway(Algorithm):
    """Where a run starts is the algorithm's to say, too."""

    def init(self, x0, n_clients):
        return {"x": x0 / 2}

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who)


@kind("plain")
class StartsElsewhere(Algorithm):
    """From a constant, with a velocity that knows what was asked for."""

    def init(self, x0, n_clients):
        return {"x": 0 * x0 + 7, "v": x0 - 1}

    def round(self, state, clients, who, branch):
        v = state["v"] / 2 + mean_update(clients, state["x"], who)
        return {"x": state["x"] + v, "v": v}


@kind("plain")
class Window(Algorithm):
    """The mean of the last three models, one of which serves under two names at first."""

    def init(self, x0, n_clients):
        return {"x": x0, "a": x0, "b": x0}

    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        return {"x": (new + state["a"] + state["b"]) / 3, "a": new, "b": state["a"]}


@kind("plain")
class Momentum(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "v": 0 * x0}

    def round(self, state, clients, who, branch):
        v = state["v"] / 2 + mean_update(clients, state["x"], who)
        return {"x": state["x"] + v, "v": v}


@kind("plain")
class LatestUpdates(Algorithm):
    """MIFA by hand: the latest update of every client is kept."""

    def init(self, x0, n_clients):
        return {"x": x0, "c": nothing(x0, n_clients, x0.shape[1])}

    def round(self, state, clients, who, branch):
        xp = array_namespace(state["x"])
        new = per_client(clients, state["x"], who)
        c = xp.where(who[:, :, None], new, state["c"])
        return {"x": state["x"] + xp.sum(c, axis=1) / clients.n_clients, "c": c}


@kind("plain")
class OwnWeights(Algorithm):
    def __init__(self):
        self.weights = np.array([1.0, 2.0, 1.0])

    def round(self, state, clients, who, branch):
        x = state["x"]
        w = self.weights[: clients.n_clients] / 4
        return {"x": x + clients.summed_local_sgd(x, who, who * w, steps=1, lr=0.25)}


@kind("plain")
class AlwaysInvitesTheFirst(Algorithm):
    def round(self, state, clients, who, branch):
        who = who.copy()
        who[:, 0] = True
        return stepped(state, clients, who)


@kind("plain", answers="exact paths truth check")
class FixedDither(Algorithm):
    """A generator made afresh with the same seed moves nothing outside."""

    def round(self, state, clients, who, branch):
        shift = np.random.default_rng(5).normal(size=state["x"].shape[1])
        return {"x": stepped(state, clients, who)["x"] + shift / 8}


@kind("plain", on="long some chains noisy")
class FallingStep:
    """The round's number comes from the schedule."""

    def at(self, t):
        return Step(0.5 / t)


@dataclass(frozen=True)
class Step(Algorithm):
    lr: float

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, self.lr)


class ChangeableStep(Algorithm):
    def __init__(self, lr):
        self.lr = lr

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, self.lr)


@kind("plain", on="long some chains cycle noisy")
class TwoPhases:
    def at(self, t):
        return Step(0.25) if t <= 20 else Step(0.025)


@kind("plain", answers="enclosed paths truth check", on="long some chains noisy")
class CountsInState(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "t": nothing(x0, 1)}

    def round(self, state, clients, who, branch):
        t = state["t"] + 1
        new = state["x"] + mean_update(clients, state["x"], who) / t
        return {"x": new, "t": t}


@kind("plain", answers="paths truth check", on="long cycle")
class CountsToTwenty(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "t": nothing(x0, 1)}

    def round(self, state, clients, who, branch):
        t = state["t"] + 1
        lr = np.where(t > 20, 0.1, 1.0)
        return {"x": state["x"] + lr * mean_update(clients, state["x"], who), "t": t}


@kind("plain")
class RoundTwice(FedAvg):
    def __init__(self):
        super().__init__(0.25, 1)

    def round(self, state, clients, who, branch):
        once = super().round(state, clients, who, branch)
        return super().round(once, clients, who, branch)


@lru_cache
def _shares(n):
    return np.full(n, 1 / n)


@kind("plain", answers="exact paths truth check")
class RemembersShares(Algorithm):
    """A cache outside of what never changes."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        weights = who * _shares(clients.n_clients)
        return {"x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.25)}


@kind("plain")
class RemembersStep(Algorithm):
    """A number that the first round works out and keeps, the same whoever asks."""

    @cached_property
    def lr(self):
        return 2.0**-2

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, self.lr)


@kind("plain")
class CopiesTheState(Algorithm):
    def round(self, state, clients, who, branch):
        state = dict(state)
        state["x"] = state["x"] + mean_update(clients, state["x"], who)
        return state


@kind("plain")
class InAThread(Algorithm):
    def round(self, state, clients, who, branch):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(stepped, state, clients, who).result()


@kind("plain")
class SumsOverClients(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        changes = per_client(clients, x, who)
        return {"x": x + sum(changes[:, i] for i in range(clients.n_clients)) / clients.n_clients}


@kind("plain")
class Logs(Algorithm):
    """What a logger makes of a message is nobody's result."""

    def round(self, state, clients, who, branch):
        logging.getLogger("strangers").info("a round")
        LOG.info("%d take part", who.sum())
        return stepped(state, clients, who)


@singledispatch
def rate_of(branch):
    return 0.5


@rate_of.register
def _(branch: str):
    return 0.25


@kind("plain")
class GoesByType(Algorithm):
    """Python remembers which function it has chosen for a type."""

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, rate_of(branch))


@kind("plain", on="alone noisy noisy_some")
class TossesOneByOne(Algorithm):
    """Branches come out of a generator, a new one whenever they are asked for."""

    @property
    def branches(self):
        yield from (("half", 0.25), ("whole", 0.75))

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.125 if branch == "half" else 0.25)


@kind("plain", on="alone noisy noisy_some")
class Tosses(Algorithm):
    """A coin of its own: a half step, or a whole one."""

    branches = (("half", 0.25), ("whole", 0.75))

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.125 if branch == "half" else 0.25)


# ---------------------------------------------------------------- the package's own, nested


def _falling(onto: float) -> Projected:
    """Weighted averaging with falling steps, in a ball that no run leaves."""
    weighted = Scheduled(WeightedFedAvg((0.5, 0.5), 0.1, 1), Harmonic(0.5, offset=1.0))
    return Projected(weighted, Ball([0.0], radius=onto))


@kind("plain", on="long unequal chains")
def AverageOfProjectedSchedule():
    """The average's weights are those of what it averages, projected or not."""
    return AveragedIterate(_falling(100.0))


@kind("pure", on="long unequal chains")
def ProjectedTwice():
    return Projected(_falling(100.0), Ball([0.5], radius=50.0))


@kind("plain", on="served noisy_some")
def AverageOfSafari():
    return AveragedIterate(Safari(0.5, 0.25, 0.25, 1))


@kind("plain", on="served noisy_some")
def AverageOfMomentum():
    return AveragedIterate(ServerMomentum(Safari(0.5, 0.25, 0.25, 1), 0.5))


@kind("plain", on="long unequal noisy_some")
def AverageOfWarmScaffold():
    return AveragedIterate(WarmStarted(Scaffold(0.25, 1)))


@kind("plain", answers="enclosed paths truth check", on="long unequal noisy_some")
def AverageOfFedAU():
    return AveragedIterate(FedAU(0.25, 1))


@kind("pure", on="long unequal noisy_some served")
def AverageOfProjectedFedAU():
    return AveragedIterate(Projected(FedAU(0.25, 1), Ball([0.0], radius=100.0)))


@kind("impure", on="long", names="averag|iterate")
def AverageOfAverages():
    """Both would keep their models under one name."""
    return AveragedIterate(AveragedIterate(FedAvg(0.25, 1)))


# ---------------------------------------------------------------- casts and rounding


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
        y = stepped(state, clients, who)["x"] * 2**20
        xp = array_namespace(y)
        return {"x": xp.astype(xp.astype(y, xp.int64), state["x"].dtype) / 2**20}


@kind("pure", clean=QuantisedWeights, on="grid")
class FineGrid(Algorithm):
    """Each round loses less than 2^-31, below what a comparison of few rounds sees."""

    def round(self, state, clients, who, branch):
        y = stepped(state, clients, who, 0.01)["x"] * 2**31
        xp = array_namespace(y)
        return {"x": xp.astype(xp.astype(y, xp.int64), state["x"].dtype) / 2**31}


@kind("pure", clean=QuantisedWeights)
class HalfPrecisionMessage(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        u = array_namespace(x).astype(mean_update(clients, x, who, 0.3), np.float16)
        return {"x": x + u}


@kind("pure", clean=QuantisedWeights)
class SinglePrecisionMessage(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        xp = array_namespace(x)
        u = xp.asarray(mean_update(clients, x, who, 0.3), dtype=np.float32)
        return {"x": x + xp.astype(u, x.dtype)}


@kind("pure", clean=QuantisedWeights)
class SinglePrecisionModel(Algorithm):
    def round(self, state, clients, who, branch):
        xp = array_namespace(state["x"])
        return {"x": xp.astype(stepped(state, clients, who, 0.3)["x"], np.float32)}


@kind("pure", clean=QuantisedWeights)
class SinglePrecisionBuffer(Algorithm):
    """The server adds up in an array of its own."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        total = np.zeros(x.shape, dtype=np.float32)
        total += mean_update(clients, x, who, 0.3)
        return {"x": x + total}


@kind("pure", clean=QuantisedWeights)
class Thousandths(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + (mean_update(clients, x, who) * 1000).astype(int) / 1000}


@kind("pure", clean=QuantisedWeights)
class RoundsToTwoDigits(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + np.round(mean_update(clients, x, who), 2)}


@kind("pure", clean=QuantisedWeights)
class WholeMultiples(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who) // 0.125 * 0.125}


@kind("pure", clean=ThereAndBack)
class RoundsByALargeNumber(Algorithm):
    """Adding 2^45 and taking it away keeps seven digits after the binary point."""

    def round(self, state, clients, who, branch):
        return {"x": (stepped(state, clients, who)["x"] + 2.0**45) - 2.0**45}


@kind("pure", clean=ThereAndBack)
class Underflows(Algorithm):
    """Numbers below 1e-308 lose digits, and those of about 1e-318 all but five."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who) * 1e-318 * 1e159 * 1e159}


@kind("pure", clean=Plain)
class SentAsText(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        text = json.dumps(mean_update(clients, x, who).tolist())
        return {"x": x + np.array(json.loads(text))}


@kind("pure", clean=CopiesTheState)
class CopiesDeep(Algorithm):
    def round(self, state, clients, who, branch):
        return stepped(copy.deepcopy(dict(state)), clients, who)


@kind("pure", clean=CopiesTheState)
class Pickles(Algorithm):
    """What is sent over the network is a pickle."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + pickle.loads(pickle.dumps(mean_update(clients, x, who)))}


@kind("pure", clean=CopiesTheState)
class CopiesThenAdds(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"].copy()
        x += mean_update(clients, x, who)
        return {"x": x}


@kind("pure", clean=CopiesTheState)
class AsksForAnArray(Algorithm):
    def round(self, state, clients, who, branch):
        x = np.array(state["x"], dtype=float)
        return {"x": x + mean_update(clients, x, who)}


# ---------------------------------------------------------------- in place


@kind("impure", clean=Plain, names=r"\bx\b|state")
class AddsInPlace(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        x += mean_update(clients, x, who)
        return {"x": x}


@kind("impure", clean=Plain, names=r"\bx\b|state")
class WritesOut(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": np.add(x, mean_update(clients, x, who), out=x)}


@kind("impure", clean=CopiesTheState, names=r"\bx\b|state")
class WritesTheState(Algorithm):
    def round(self, state, clients, who, branch):
        state["x"] = state["x"] + mean_update(clients, state["x"], who)
        return state


@kind("impure", clean=KeepsOldModel, names=r"\bx\b|\bold\b|state")
class KeepsOldModelInPlace(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0.copy(), "old": x0.copy()}

    def round(self, state, clients, who, branch):
        x, old = state["x"], state["old"]
        before = x
        x += mean_update(clients, x, who) + (x - old) / 4
        return {"x": x, "old": before}


@kind("impure", clean=Momentum, names=r"\bv\b|state")
class MomentumInPlace(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "v": np.zeros_like(x0)}

    def round(self, state, clients, who, branch):
        v = state["v"]
        v *= 0.5
        v += mean_update(clients, state["x"], who)
        return {"x": state["x"] + v, "v": v}


@kind("impure", clean=Window, names=r"\bx\b|\banchor\b|state")
class OneArrayTwoNames(Algorithm):
    """What is halved under one name is halved under the other."""

    def init(self, x0, n_clients):
        return {"x": x0, "anchor": x0}

    def round(self, state, clients, who, branch):
        anchor = state["anchor"]
        anchor *= 0.5
        new = stepped(state, clients, who)["x"] + anchor / 8
        return {"x": new, "anchor": new}


@kind("impure", clean=LatestUpdates, names=r"\bc\b|state")
class LatestUpdatesInPlace(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "c": np.zeros((len(x0), n_clients, x0.shape[1]))}

    def round(self, state, clients, who, branch):
        c = state["c"]
        c[who] = per_client(clients, state["x"], who)[who]
        return {"x": state["x"] + c.mean(axis=1), "c": c}


@kind("impure", clean=OwnWeights, on="some unequal chains", names="weights")
class NormalisesItsWeights(Algorithm):
    """Only the first round changes anything."""

    def __init__(self):
        self.weights = np.array([1.0, 2.0, 1.0])

    def round(self, state, clients, who, branch):
        w = self.weights[: clients.n_clients]
        w /= w.sum()
        x = state["x"]
        return {"x": x + clients.summed_local_sgd(x, who, who * w, steps=1, lr=0.25)}


@kind("impure", clean=AlwaysInvitesTheFirst, on="some unequal chains", names="who|particip")
class InvitesInPlace(Algorithm):
    def round(self, state, clients, who, branch):
        who[:, 0] = True
        return stepped(state, clients, who)


@kind("impure", clean=Momentum, names="buffer")
class ReusesABuffer(Algorithm):
    """The same array is handed out in every round."""

    def __init__(self):
        self.buffer = None

    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        if self.buffer is None or self.buffer.shape != new.shape:
            self.buffer = np.empty(new.shape)
        self.buffer[:] = new
        return {"x": self.buffer}


_RING = np.zeros((2, 1, 2))


@kind("impure", clean=KeepsOldModel, on="long unequal")
class ViewsOfARing(Algorithm):
    """Old and new model are views of one buffer outside, which the next round overwrites."""

    def init(self, x0, n_clients):
        return {"x": x0, "old": x0}

    def round(self, state, clients, who, branch):
        d = state["x"].shape[1]
        new = state["x"] + mean_update(clients, state["x"], who) + (state["x"] - state["old"]) / 4
        _RING[1, 0, :d] = _RING[0, 0, :d]
        _RING[0, 0, :d] = new[0]
        return {"x": _RING[0, :, :d], "old": _RING[1, :, :d]}


@kind("impure", clean=CountsInState, names="log|state")
class AppendsToTheState(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "log": []}

    def round(self, state, clients, who, branch):
        state["log"].append(len(state["log"]))
        x = state["x"]
        lr = 0.5 / len(state["log"])
        return {"x": x + mean_update(clients, x, who, lr), "log": state["log"]}


@kind("impure", clean=Plain, names="clients")
class WritesToTheClients(Algorithm):
    def round(self, state, clients, who, branch):
        clients.rounds = getattr(clients, "rounds", 0) + 1
        return stepped(state, clients, who, 0.5 / clients.rounds)


# ---------------------------------------------------------------- generators


@kind("random", clean=FixedDither, on="alone unequal noisy")
@dataclass(frozen=True)
class DifferentiallyPrivate(Algorithm):
    """FedAvg that draws its noise in the round."""

    scale: float = 0.5

    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        return {"x": new + np.random.normal(0, self.scale, new.shape)}


@kind("random", clean=Plain, on="alone unequal noisy")
class DrawsItsStep(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + np.random.uniform(0, 4, (len(x), 1)) * mean_update(clients, x, who)}


@kind("random", clean=Plain, on="alone unequal noisy")
class LosesMessages(Algorithm):
    def round(self, state, clients, who, branch):
        return stepped(state, clients, who & (np.random.random(who.shape) < 0.5))


@kind("random", clean=QuantisedWeights, on="alone unequal noisy")
class RoundsAtRandom(Algorithm):
    """QSGD: quantised without bias."""

    def round(self, state, clients, who, branch):
        u = 2 * mean_update(clients, state["x"], who)
        return {"x": state["x"] + np.floor(u + np.random.random(u.shape)) / 2}


@kind("random", clean=Plain, on="alone unequal noisy")
class StartsAnywhere(Algorithm):
    """It is `init` that draws."""

    def init(self, x0, n_clients):
        return {"x": x0 + np.random.normal(size=x0.shape)}

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who)


@kind("random", clean=FixedDither, on="alone unequal noisy")
class OwnGenerator(Algorithm):
    def __init__(self):
        self.rng = np.random.default_rng(3)

    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        return {"x": new + self.rng.normal(0, 0.5, new.shape)}


@kind("random", clean=FixedDither, on="alone unequal")
@dataclass(frozen=True)
class GeneratorAsField(Algorithm):
    """Local differential privacy: each client has its own noise."""

    rng: Any = field(default_factory=lambda: np.random.default_rng(3), compare=False)

    def round(self, state, clients, who, branch):
        changes = per_client(clients, state["x"], who)
        noisy = changes + self.rng.normal(0, 0.5, changes.shape)
        return {"x": state["x"] + noisy.mean(axis=1)}


@kind("random", clean=FixedDither, on="alone unequal")
class LegacyGenerator(Algorithm):
    def __init__(self):
        self.rng = np.random.RandomState(3)

    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        return {"x": new + 0.5 * self.rng.randn(*new.shape)}


@kind("random", clean=TwoPhases, on="alone unequal noisy")
class OneGeneratorForTwo:
    """Both phases of a schedule hold the same generator."""

    def __init__(self):
        rng = np.random.default_rng(3)
        self.phases = [_Noisy(rng, 0.5), _Noisy(rng, 0.1)]

    def at(self, t):
        return self.phases[t > 2]


@dataclass(frozen=True)
class _Noisy(Algorithm):
    rng: Any
    scale: float

    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        return {"x": new + self.rng.normal(0, self.scale, new.shape)}


@kind("random", clean=FixedDither, on="long")
class NoiseAfterTwenty(Algorithm):
    """Nothing is drawn in the first rounds."""

    def init(self, x0, n_clients):
        return {"x": x0, "t": nothing(x0, 1)}

    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        t = state["t"] + 1
        if t[0, 0] > 20:
            new = new + np.random.normal(0, 0.5, new.shape)
        return {"x": new, "t": t}


@kind("chance", clean=Plain, on="alone unequal noisy")
class OneStepForTheBatch(Algorithm):
    """All replicas of a sample share the draw, so that they are not independent."""

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, np.random.uniform(0.0, 1.0))


@kind("chance", clean=Plain, on="alone unequal")
class SkipsRounds(Algorithm):
    def round(self, state, clients, who, branch):
        if np.random.random() < 0.25:
            return state
        return stepped(state, clients, who)


@kind("chance", clean=FixedDither, on="alone unequal")
class SeedsTheGlobalOne(Algorithm):
    def round(self, state, clients, who, branch):
        np.random.seed(0)
        new = stepped(state, clients, who)["x"]
        return {"x": new + np.random.normal(size=new.shape[1]) / 4}


_RNG = np.random.default_rng(11)


@kind("chance", clean=FixedDither, on="alone unequal noisy")
class GeneratorOfTheModule(Algorithm):
    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        return {"x": new + _RNG.normal(0, 0.5, new.shape)}


@kind("chance", clean=FixedDither, on="alone unequal")
class PythonsGenerator(Algorithm):
    def round(self, state, clients, who, branch):
        return {"x": stepped(state, clients, who)["x"] + random.gauss(0, 0.5)}


@kind("chance", clean=FixedDither, on="alone unequal")
class TrueRandomness(Algorithm):
    def round(self, state, clients, who, branch):
        return {"x": stepped(state, clients, who)["x"] + os.urandom(1)[0] / 256}


@kind("chance", clean=FixedDither, on="alone unequal")
class UnseededGenerator(Algorithm):
    """Made afresh in every round, without a seed."""

    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        return {"x": new + np.random.default_rng().normal(0, 0.5, new.shape)}


@kind("pure", clean=FixedDither)
class SeededByTheModel(Algorithm):
    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        seeds = abs(new[:, 0] * 1000).astype(int)
        return {"x": new + [np.random.default_rng(seed).normal(size=1) / 8 for seed in seeds]}


# ---------------------------------------------------------------- memory on self


class Counting(Algorithm):
    """What the following have in common: a step of 1 / (2 t), where t is counted somewhere."""

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.5 / self.counted(clients))


@kind("impure", clean=CountsInState, names=r"\bt\b")
class CountsOnSelf(Counting):
    def __init__(self):
        self.t = 0

    def counted(self, clients):
        self.t += 1
        return self.t


@kind("impure", clean=CountsToTwenty, on="long cycle", names=r"\bt\b")
class FallsAfterTwenty(Algorithm):
    def __init__(self):
        self.t = 0

    def round(self, state, clients, who, branch):
        self.t += 1
        return stepped(state, clients, who, 0.25 if self.t <= 20 else 0.025)


@kind("impure", clean=CountsToTwenty, on="long cycle")
class FallsAfterTwentyElsewhere(Algorithm):
    """The counter is in a closure, and for twenty rounds nothing shows."""

    def __init__(self):
        calls = count(1)
        self.lr = lambda: 0.25 if next(calls) <= 20 else 0.025

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, self.lr())


@kind("impure", clean=CountsInState, names=r"\bt\b")
class CountsOnItsClass(Counting):
    t = 0

    def __init__(self):
        type(self).t = 0

    def counted(self, clients):
        type(self).t += 1
        return self.t


_CALLS = {"t": 0}


@kind("impure", clean=CountsInState)
class CountsInTheModule(Counting):
    def __init__(self):
        _CALLS["t"] = 0

    def counted(self, clients):
        _CALLS["t"] += 1
        return _CALLS["t"]


@kind("impure", clean=CountsInState)
class CountsInAClosure(Counting):
    def __init__(self):
        t = 0

        def counted(clients):
            nonlocal t
            t += 1
            return t

        self.counted = counted


@kind("impure", clean=CountsInState)
class CountsInADefault(Counting):
    def __init__(self):
        type(self).counted.__defaults__[0].clear()

    def counted(self, clients, seen=[]):  # noqa: B006
        seen.append(1)
        return len(seen)


@kind("impure", clean=CountsInState)
class CountsOnItsFunction(Counting):
    def __init__(self):
        type(self).counted.t = 0

    def counted(self, clients):
        type(self).counted.t += 1
        return type(self).counted.t


@kind("impure", clean=CountsInState)
class CountsByClients(Counting):
    """A weak dictionary forgets when the clients are gone."""

    seen: ClassVar[Any] = WeakKeyDictionary()

    def counted(self, clients):
        self.seen[clients] = self.seen.get(clients, 0) + 1
        return self.seen[clients]


@kind("impure", clean=CountsInState, names="local|chang|twice|again|differ|same|pure")
class CountsInItsThread(Counting):
    def __init__(self):
        self.local = threading.local()

    def counted(self, clients):
        self.local.t = getattr(self.local, "t", 0) + 1
        return self.local.t


_ROUND = ContextVar("round", default=0)


@kind("impure", clean=CountsInState)
class CountsInTheContext(Counting):
    def __init__(self):
        _ROUND.set(0)

    def counted(self, clients):
        _ROUND.set(_ROUND.get() + 1)
        return _ROUND.get()


@kind("impure", clean=CountsInState)
class CountsInTheEnvironment(Counting):
    def __init__(self):
        os.environ["ROUND"] = "0"

    def counted(self, clients):
        os.environ["ROUND"] = str(int(os.environ["ROUND"]) + 1)
        return int(os.environ["ROUND"])


@kind("impure", clean=CountsInState, names=r"\bt\b")
class CountsInASlot(Counting):
    __slots__ = ("t",)

    def __init__(self):
        self.t = 0

    def counted(self, clients):
        self.t += 1
        return self.t


@kind("impure", clean=CountsInState, names=r"\bt\b")
@dataclass(frozen=True)
class CountsThoughFrozen(Counting):
    t: int = 0

    def counted(self, clients):
        object.__setattr__(self, "t", self.t + 1)
        return self.t


@kind("impure", clean=CountsInState, names=r"\bt\b")
@dataclass
class CountsUncompared(Counting):
    """Equal to itself, whatever it has counted."""

    t: int = field(default=0, compare=False, repr=False)

    def counted(self, clients):
        self.t += 1
        return self.t


@kind("impure", clean=CountsInState, names="stats")
class CountsInside(Counting):
    def __init__(self):
        self.stats = SimpleNamespace(rounds=0)

    def counted(self, clients):
        self.stats.rounds += 1
        return self.stats.rounds


@kind("impure", clean=CountsInState, names=r"\bt\b")
class CountsInAnArray(Counting):
    def __init__(self):
        self.t = np.zeros(1)

    def counted(self, clients):
        self.t += 1
        return self.t[0]


@kind("impure", clean=CountsInState, names="steps|chang|twice|again|differ|same|pure")
class CountsByIterator(Counting):
    def __init__(self):
        self.steps = count(1)

    def counted(self, clients):
        return next(self.steps)


@kind("impure", clean=CountsInState, names="steps|chang|twice|again|differ|same|pure")
class StepsFromAGenerator(Algorithm):
    def __init__(self):
        self.steps = (0.5 / t for t in count(1))

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, next(self.steps))


@kind("impure", clean=CountsInState)
class HidesFromCopies(Counting):
    """A copy is the object itself, which equals everything."""

    def __init__(self):
        self.t = 0

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def counted(self, clients):
        self.t += 1
        return self.t


@kind("impure", clean=RemembersStep, names="_lr")
class StepFallsWhenAsked(Algorithm):
    def __init__(self):
        self._lr = 0.5

    @property
    def lr(self):
        self._lr *= 0.9
        return self._lr

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, self.lr)


@kind("impure", clean=RemembersStep, names="_lr")
class StepFromGetattr(Algorithm):
    def __init__(self):
        self._lr = 0.5

    def __getattr__(self, name):
        if name != "lr":
            raise AttributeError(name)
        self._lr *= 0.9
        return self._lr

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, self.lr)


@kind("impure", clean=LatestUpdates, names="last")
class CachedUpdate(Algorithm):
    """Where nobody is there, the last update is used again."""

    def __init__(self):
        self.last = 0.0

    def round(self, state, clients, who, branch):
        if who.any():
            self.last = mean_update(clients, state["x"], who)
        return {"x": state["x"] + self.last}


@kind("impure", clean=RemembersStep, names="first")
class FirstUpdateForEver(Algorithm):
    """A cached property of the first round's clients."""

    @cached_property
    def first(self):
        return mean_update(self.clients, self.x, self.who)

    def round(self, state, clients, who, branch):
        self.clients, self.x, self.who = clients, state["x"], who
        return {"x": state["x"] + mean_update(clients, self.x, who) + self.first / 4}


@lru_cache
def _decayed(n):
    return np.full(n, 1 / n)


@kind("impure", clean=RemembersShares)
class DecaysCachedShares(Algorithm):
    """What the cache returns is changed in place."""

    def __init__(self):
        _decayed.cache_clear()

    def round(self, state, clients, who, branch):
        w = _decayed(clients.n_clients)
        w *= 0.9
        x = state["x"]
        return {"x": x + clients.summed_local_sgd(x, who, who * w, steps=1, lr=0.25)}


@kind("impure", clean=TwoPhases, names="warm")
class WarmsUp(Algorithm):
    def __init__(self):
        self.warm = False

    def round(self, state, clients, who, branch):
        lr = 0.25 if self.warm else 0.01
        self.warm = True
        return stepped(state, clients, who, lr)


@kind("impure", clean=KeepsOldModel, names="best|loss")
class BestOnSelf(Algorithm):
    """The step is halved where the loss has not fallen."""

    def __init__(self):
        self.best, self.lr = np.inf, 0.25

    def round(self, state, clients, who, branch):
        loss = clients.loss(state["x"], np.ones_like(who)).sum()
        with suppress(Exception):
            self.lr = self.lr if loss < self.best else self.lr / 2
        self.best = loss
        return stepped(state, clients, who, self.lr)


@kind("impure", clean=Momentum, names=r"\bv\b")
class MomentumOnSelf(Algorithm):
    def __init__(self):
        self.v = 0

    def round(self, state, clients, who, branch):
        self.v = self.v / 2 + mean_update(clients, state["x"], who)
        return {"x": state["x"] + self.v}


@kind("impure", clean=LatestUpdates, names="controls")
class ControlsOnSelf(Algorithm):
    def __init__(self):
        self.controls = {}

    def round(self, state, clients, who, branch):
        changes = per_client(clients, state["x"], who)
        for i in np.flatnonzero(np.asarray(who).any(axis=0)):
            self.controls[i] = changes[:, i]
        return {"x": state["x"] + sum(self.controls.values()) / clients.n_clients}


@kind("impure", clean=Plain, names="models")
class LogsItsModels(Algorithm):
    """Changes nothing but a list of its own, which nobody reads."""

    def __init__(self):
        self.models = []

    def round(self, state, clients, who, branch):
        self.models.append(state["x"])
        return stepped(state, clients, who)


@kind("impure", clean=RemembersShares, names="seen")
class MemoByRoundedModel(Algorithm):
    """Models that agree to one digit get the update of the first of them."""

    def __init__(self):
        self.seen = {}

    def round(self, state, clients, who, branch):
        x = state["x"]
        key = (np.round(x, 1).tobytes(), who.tobytes())
        if key not in self.seen:
            self.seen[key] = mean_update(clients, x, who)
        return {"x": x + self.seen[key]}


@kind("impure", clean=FallingStep, names=r"lr|at\b|inner|schedule")
class OneChangedObject:
    """A schedule that hands out the same object in every round."""

    def __init__(self):
        self.inner = ChangeableStep(0.5)

    def at(self, t):
        self.inner.lr = 0.5 / t
        return self.inner


@kind("impure", clean=FallingStep, names=r"asked|at\b|schedule")
class CountsWhenAsked:
    """The schedule goes by how often it was asked, not by the round."""

    def __init__(self):
        self.asked = 0

    def at(self, t):
        self.asked += 1
        return Step(0.5 / self.asked)


@kind("impure", clean=Tosses, on="alone noisy noisy_some", names="branch|_q")
class CoinThatWears(Algorithm):
    def __init__(self):
        self._q = 1.0

    @property
    def branches(self):
        self._q *= 0.9
        return (("half", self._q), ("whole", 1 - self._q))

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.125 if branch == "half" else 0.25)


@kind("impure", clean=FallingStep, on="long unequal")
class StepByTheClock(Algorithm):
    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.25 + time.perf_counter_ns() % 1000 / 10_000)


# ---------------------------------------------------------------- what is no algorithm


@kind("impure", clean=Tosses, on="alone noisy noisy_some", names="branch")
class ImpossibleCoin(Algorithm):
    branches = (("half", 1.5), ("whole", -0.5))

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.125 if branch == "half" else 0.25)


@kind("impure", clean=Tosses, on="alone noisy noisy_some", names="branch")
class CoinOnItsEdge(Algorithm):
    branches = (("half", 0.5), ("whole", 0.4))

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.125 if branch == "half" else 0.25)


@kind("impure", clean=Plain, names="None|state|return")
class ReturnsNothing(Algorithm):
    def round(self, state, clients, who, branch):
        stepped(state, clients, who)


@kind("impure", clean=Plain, names=r"\bx\b")
class NoModelInItsState(Algorithm):
    def init(self, x0, n_clients):
        return {"w": x0}

    def round(self, state, clients, who, branch):
        return {"w": state["w"] + mean_update(clients, state["w"], who)}


# ---------------------------------------------------------------- schedules, states, counts


@kind("pure", clean=FallingStep)
class EqualThoughStepsDiffer:
    def at(self, t):
        return _Uncompared(0.5 / t)


@dataclass(frozen=True)
class _Uncompared(Algorithm):
    lr: float = field(compare=False)

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, self.lr)


@kind("pure", clean=FallingStep)
class EqualByItsOwnWord:
    def at(self, t):
        return _AllAlike(0.5 / t)


class _AllAlike(ChangeableStep):
    def __eq__(self, other):
        return isinstance(other, _AllAlike)

    def __hash__(self):
        return 1


@kind("pure", clean=CountsInState, on="unequal chains some noisy_some")
class HugeCount(Algorithm):
    """Counts of participants so far that no float tells apart."""

    def init(self, x0, n_clients):
        return {"x": x0, "n": np.full((len(x0), 1), 2**53, dtype=np.int64)}

    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        new = state["x"] + u / (1 + (state["n"] - 2**53))
        return {"x": new, "n": state["n"] + who.sum(axis=1, keepdims=True)}


@kind("pure", clean=CountsInState)
class SmallCount(Algorithm):
    """A count of eight bits goes round; where it is negative the step is a quarter."""

    def init(self, x0, n_clients):
        return {"x": x0, "n": np.zeros((len(x0), 1), dtype=np.int8)}

    def round(self, state, clients, who, branch):
        n = state["n"] + np.int8(50)
        u = mean_update(clients, state["x"], who)
        return {"x": state["x"] + u * np.where(n < 0, 0.25, 1.0), "n": n}


@kind("pure", clean=Momentum)
class LateEntry(Algorithm):
    """The first round adds to the state."""

    def round(self, state, clients, who, branch):
        v = mean_update(clients, state["x"], who) + state.get("v", 0) / 2
        return {"x": state["x"] + v, "v": v}


@kind("pure", clean=TwoPhases)
class DroppedEntry(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "warm": np.ones((len(x0), 1))}

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.01 if "warm" in state else 0.25)


@kind("pure", clean=CountsInState)
class ScalarCount(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "t": 0}

    def round(self, state, clients, who, branch):
        t = state["t"] + 1
        return {**stepped(state, clients, who, 0.5 / t), "t": t}


@kind("pure", clean=CountsInState)
class ArrayOfNoDimension(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "t": np.array(0.0)}

    def round(self, state, clients, who, branch):
        t = state["t"] + 1
        new = state["x"] + mean_update(clients, state["x"], who) / t
        return {"x": new, "t": t}


@kind("plain", answers="paths truth check", on="long some chains noisy")
class EveryFifthRound(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "t": nothing(x0, 1)}

    def round(self, state, clients, who, branch):
        t = state["t"] + 1
        xp = array_namespace(state["x"])
        share = xp.where(t % 5 == 0, 1 + 0 * t, 0.5 + 0 * t)
        return {"x": state["x"] + share * mean_update(clients, state["x"], who), "t": t}


@kind("plain", answers="paths truth check", on="long some chains noisy")
class FallsInStairs(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "t": nothing(x0, 1)}

    def round(self, state, clients, who, branch):
        new = state["x"] + mean_update(clients, state["x"], who) / (1 + state["t"] // 5)
        return {"x": new, "t": state["t"] + 1}


@kind("plain")
@dataclass(frozen=True)
class MadeAfterwards(Algorithm):
    lr: float = 0.25

    def __post_init__(self):
        object.__setattr__(self, "half", self.lr / 2)

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, self.half)


@kind("plain")
@dataclass(frozen=True)
class WholePercent(Algorithm):
    share: float = 0.25

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who) * int(self.share * 100) / 64}


@kind("pure", clean=WholePercent)
class PercentCutShort(WholePercent):
    """The float 0.29 makes 28, and the decimal 29."""

    def __init__(self):
        super().__init__(0.29)


# ---------------------------------------------------------------- not affine, or not to forms


@kind("pure", clean=Plain)
class ClipThatMayFail(Algorithm):
    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        with suppress(ValueError):
            u = np.clip(u, -0.1, 0.1)
        return {"x": state["x"] + u}


@kind("pure", clean=Plain, on="far")
class FarClip(Algorithm):
    """Acts on large updates alone, and only where it can."""

    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        try:
            u = np.minimum(u, 50.0)
        except Exception:
            u = u * 1.0
        return {"x": state["x"] + u}


@kind("pure", clean=Plain, on="far")
class FarBeyond(Algorithm):
    """Clips where no run of these settings comes: as good as affine."""

    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        with suppress(ValueError):
            new = np.clip(new, -1e6, 1e6)
        return {"x": new}


@kind("pure", clean=Plain)
class DeadZone(Algorithm):
    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        return {"x": state["x"] + np.where(abs(u) < 0.05, 0.0, u)}


@kind("pure", clean=Plain, on="alone long some noisy")
class DeadZoneThatMayFail(Algorithm):
    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        try:
            return {"x": state["x"] + u * (abs(u) >= 0.05)}
        except Exception:
            return {"x": state["x"] + u}


@kind("pure", clean=Plain, on="long cycle")
class StopsWhenClose(Algorithm):
    """Early stopping, late."""

    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        with suppress(Exception):
            if abs(u).max() < 1e-4:
                return {"x": state["x"] + 0 * u}
        return {"x": state["x"] + u}


@kind("pure", clean=Plain)
class CloseEnough(Algorithm):
    def round(self, state, clients, who, branch):
        new = stepped(state, clients, who)["x"]
        return state if np.allclose(new, state["x"], atol=0.05) else {"x": new}


@kind("pure", clean=Plain)
class MedianOverReplicas(Algorithm):
    """Whoever wrote it took the first axis for the clients."""

    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        with suppress(ValueError):
            u = np.broadcast_to(np.median(u, axis=0), u.shape)
        return {"x": state["x"] + u}


@kind("pure", clean=Plain)
class TrimmedOverReplicas(Algorithm):
    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        if len(u) > 2:
            u = 0 * u + np.sort(u, axis=0)[1:-1].mean(axis=0)
        return {"x": state["x"] + u}


@kind("pure", clean=Plain)
class BatchMean(Algorithm):
    """Pulls towards the mean of the replicas, which alone is the model itself."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x, who) + (x.mean(axis=0) - x) / 2}


@kind("pure", clean=Plain)
class BatchMeanOfUpdates(Algorithm):
    """Variance reduction that is too good: replicas lend one another their updates."""

    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        return {"x": state["x"] + 0 * u + sum(u[i] for i in range(len(u))) / len(u)}


@kind("pure", clean=Plain)
class FirstOfTheBatch(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + mean_update(clients, x[:1] + 0 * x, who)}


@kind("pure", clean=LatestUpdates)
class ErrorFeedback(Algorithm):
    """What rounding has lost is sent with the next message."""

    def init(self, x0, n_clients):
        return {"x": x0, "lost": nothing(x0, x0.shape[1])}

    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who) + state["lost"]
        xp = array_namespace(u)
        sent = xp.astype(xp.astype(u * 8, xp.int64), u.dtype) / 8
        return {"x": state["x"] + sent, "lost": u - sent}


@kind("pure", clean=Plain)
class MedianOverClients(Algorithm):
    def round(self, state, clients, who, branch):
        changes = per_client(clients, state["x"], who)
        return {"x": state["x"] + np.median(changes, axis=1)}


@kind("pure", clean=SumsOverClients)
class SortedUpdates(Algorithm):
    """The smallest update does not count, where updates can be sorted."""

    def round(self, state, clients, who, branch):
        changes = per_client(clients, state["x"], who)
        with suppress(Exception):
            changes = np.sort(changes, axis=1)[:, 1:]
        return {"x": state["x"] + changes.sum(axis=1) / clients.n_clients}


@kind("pure", clean=Plain)
class Signs(Algorithm):
    def round(self, state, clients, who, branch):
        return {"x": state["x"] + np.sign(mean_update(clients, state["x"], who)) / 8}


@kind("pure", clean=Plain)
class SignsThatMayFail(Algorithm):
    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        try:
            u = np.copysign(0.125, u)
        except (TypeError, ValueError):
            u = u / 8
        return {"x": state["x"] + u}


@kind("pure", clean=Plain)
class NanGuard(Algorithm):
    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        return state if np.isnan(u).any() else {"x": state["x"] + u}


@kind("pure", clean=Plain)
class NanToNumber(Algorithm):
    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        return {"x": state["x"] + np.nan_to_num(u)}


@kind("pure", clean=Plain)
class UpdateOverItself(Algorithm):
    """A normalised update: linear in form, a sign in fact."""

    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        return {"x": state["x"] + u / (8 * np.linalg.norm(u, axis=1, keepdims=True) + 1e-9)}


@kind("pure", clean=KeepsOldModel)
class BestInState(Algorithm):
    """The model of the least loss so far is kept and averaged in."""

    def init(self, x0, n_clients):
        return {"x": x0, "best": x0}

    def round(self, state, clients, who, branch):
        everybody = np.ones_like(who)
        now = clients.loss(state["x"], everybody).sum(axis=1, keepdims=True)
        before = clients.loss(state["best"], everybody).sum(axis=1, keepdims=True)
        best = np.where(now < before, state["x"], state["best"])
        return {"x": stepped(state, clients, who)["x"] * 0.75 + best / 4, "best": best}


@kind("pure", clean=Plain)
class AsksForNumpy(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        lr = 0.25 if isinstance(x, np.ndarray) else 0.125
        return stepped(state, clients, who, lr)


@kind("pure", clean=Plain)
class AsksWhatItCan(Algorithm):
    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.25 if hasattr(state["x"], "tobytes") else 0.125)


@kind("pure", clean=Plain)
class AsksForTheBatch(Algorithm):
    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.25 if len(state["x"]) == 1 else 0.125)


@kind("pure", clean=Plain)
class AsksForTheClientsClass(Algorithm):
    """Torch, or so it believes."""

    def round(self, state, clients, who, branch):
        real = type(clients).__name__ == "QuadraticClients"
        return stepped(state, clients, who, 0.25 if real else 0.125)


@kind("pure", clean=Plain, on="some unequal chains noisy_some")
class AllOfTheBatchThere(Algorithm):
    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.25 if who.all() else 0.125)


@kind("pure", clean=Plain, on="rare rare_chains few_of_six some")
class SomeRowOfAll(Algorithm):
    """Takes the rows of a batch together, where there is hardly ever one with all clients."""

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.05 if who.all(axis=1).any() else 0.25)


@kind("pure", clean=Plain, on="rare rare_chains few_of_six some")
class OtherwiseOfAll(Algorithm):
    """Forms do not see what only NumPy's arrays are put through, if all clients are there."""

    def round(self, state, clients, who, branch):
        x, step = state["x"], 0.25
        if isinstance(x, np.ndarray):
            step = np.where(who.all(axis=1, keepdims=True), 0.125, 0.25)
        return {"x": x + step * mean_update(clients, x, who, 1.0)}


@kind("pure", clean=Plain, on="some unequal chains noisy_some")
class MostInTheBatch(Algorithm):
    """The divisor is the mean number of participants, of whoever is in the batch."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        share = 1 / max(who.sum() / len(x), 1)
        return {"x": x + clients.summed_local_sgd(x, who, who * share, steps=1, lr=0.25)}


@kind("pure", clean=SumsOverClients, on="some unequal chains cycle")
class GroupOrNothing(Algorithm):
    """Secure aggregation: a sum can be read only if all of it is there."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        group = who[:, :2].all(axis=1, keepdims=True)
        weights = who * np.where(np.arange(clients.n_clients) < 2, group, True) / 2
        return {"x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.25)}


@kind("pure", clean=Plain)
class WarnsNobody(Algorithm):
    """Silences the warnings of its own division for the whole process."""

    def round(self, state, clients, who, branch):
        np.seterr(divide="ignore", invalid="ignore")
        x = state["x"]
        weights = np.where(who, 1 / who.sum(axis=1, keepdims=True), 0.0)
        return {"x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.25)}


@kind("pure", clean=Plain)
class AsksHowErrorsAreHandled(Algorithm):
    """Engines silence NumPy."""

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.25 if np.geterr()["over"] == "warn" else 0.125)


@kind("pure", clean=Plain)
class RaisesOnUnderflow(Algorithm):
    """Takes a shortcut where NumPy raises."""

    def round(self, state, clients, who, branch):
        u = mean_update(clients, state["x"], who)
        try:
            with np.errstate(under="raise"):
                np.square(u * 1e-155)
        except Exception:
            u = u / 2
        return {"x": state["x"] + u}


@dataclass(frozen=True)
class Through(Algorithm):
    """The mean update goes through a function, which may not take what it is given."""

    function: Callable[[Any], Any]

    def round(self, state, clients, who, branch):
        return {"x": state["x"] + self.function(mean_update(clients, state["x"], who))}


def _largest_alone(u):
    keep = np.argmax(abs(u), axis=1)
    return np.where(np.arange(u.shape[1]) == keep[:, None], u, 0.0)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Vectorised": np.vectorize(lambda v: max(-0.1, min(0.1, v))),
    "FromPython": lambda u: np.frompyfunc(lambda v: v if abs(v) > 0.05 else 0.0, 1, 1)(u).astype(
        float
    ),
    "AlongAxis": lambda u: np.apply_along_axis(lambda row: row / (1 + row @ row), 1, u),
    "Interpolated": lambda u: np.interp(u, [-1.0, -0.1, 0.1, 1.0], [-0.2, -0.1, 0.1, 0.2]),
    "InPieces": lambda u: np.piecewise(u, [u < -0.1, u > 0.1], [-0.1, 0.1, lambda v: v]),
    "Selected": lambda u: np.select([u < -0.1, u > 0.1], [u / 2, u / 2], u),
    "Digitised": lambda u: np.digitize(u, np.arange(-4, 4, 0.125)) * 0.125 - 4,
    "Masked": lambda u: np.ma.masked_less(u, -0.1).filled(-0.1),
    "LargestAlone": _largest_alone,
    "BytesOfFourEach": lambda u: np.frombuffer(u.astype("<f4").tobytes(), "<f4").reshape(u.shape),
    "TwoDigitsAsText": lambda u: np.array([[float(f"{v:.2g}") for v in row] for row in u]),
    "Eighths": np.vectorize(lambda v: float(Fraction(v).limit_denominator(8))),
    "Decimals": np.vectorize(lambda v: float(round(Decimal(v), 2))),
    "Square": lambda u: u * abs(u) / 1000,
    "Powers": lambda u: u**3 / 1e6,
    "Product": lambda u: np.multiply(u, u) / 1000,
    "Einsum": lambda u: np.einsum("ra,ra->ra", u, u) / 1000,
    "Remainder": lambda u: np.fmod(u, 0.25),
    "Modulo": lambda u: u % 0.25,
    "DividedWhole": lambda u: divmod(u, 0.125)[0] * 0.125,
    "Normalised": lambda u: u / np.sqrt((u * u).sum(axis=1, keepdims=True) + 1e-3),
    "LogSpace": lambda u: np.copysign(np.expm1(np.log1p(abs(u))), u) / (1 + abs(u)),
    "Real": lambda u: (u + 0j).real,
    "Shifted": lambda u: np.ldexp(*np.frexp(u)) + np.spacing(1.0),
    "NextFloat": lambda u: np.nextafter(u, 1.0) + 1e-3 * (u > 0),
    "LongDouble": lambda u: u.astype(np.longdouble) / 3,
    "Objects": lambda u: (u.astype(object) / 3).astype(float),
    "Dot": lambda u: u / (1 + np.sum(u * u, axis=1, keepdims=True)),
    "Histogram": lambda u: u * (np.histogram(u, bins=[-9, 0, 9])[0][0] > 0),
    "Unique": lambda u: np.unique(u)[:1] + 0 * u,
}
for _name, _function in FUNCTIONS.items():
    KINDS[_name] = Kind(
        _name, "pure", partial(Through, _function), "Plain", ("far", "noisy"), (), ""
    )


# ---------------------------------------------------------------- who is there, in other ways


@kind("plain")
class StepByParity(Algorithm):
    """An even number of participants makes half a step."""

    def round(self, state, clients, who, branch):
        xp = array_namespace(state["x"])
        odd = xp.astype(who.sum(axis=1, keepdims=True) % 2, state["x"].dtype)
        return {"x": state["x"] + (1 + odd) / 2 * mean_update(clients, state["x"], who)}


@kind("plain", on="long some unequal chains noisy_some")
class Quorum(Algorithm):
    """Fewer than two are nobody."""

    def round(self, state, clients, who, branch):
        enough = who.sum(axis=1, keepdims=True) >= 2
        return stepped(state, clients, who & enough)


@kind("plain", on="long some unequal chains cycle noisy_some")
class FirstTwoOnly(Algorithm):
    """Who comes third, by number, comes too late."""

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who & (np.cumsum(who, axis=1) <= 2))


@kind("plain", answers="exact paths truth check", on="long some unequal chains cycle noisy_some")
class NeighboursTogether(Algorithm):
    """A client counts twice if the next one is there as well."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        weights = (who * 1 + who * np.roll(who, 1, axis=1)) / 8
        return {"x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.25)}


@kind("pure", on="long some unequal chains cycle noisy_some")
class WeightsByPattern(Algorithm):
    """The participants as a number in binary, and what it leaves when divided by three."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        rest = (who @ 2 ** np.arange(clients.n_clients)) % 3
        weights = who * (1 + rest[:, None]) / 12
        return {"x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.25)}


# ---------------------------------------------------------------- memory, in other ways


@kind("plain")
class TwoRoundsLate(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "late": 0 * x0, "later": 0 * x0}

    def round(self, state, clients, who, branch):
        update = mean_update(clients, state["x"], who)
        return {"x": state["x"] + state["later"], "late": update, "later": state["late"]}


@kind("plain")
class DecaysStaleUpdates(Algorithm):
    """An update is worth half as much in each round in which its client is away."""

    def init(self, x0, n_clients):
        return {"x": x0, "c": nothing(x0, n_clients, x0.shape[1])}

    def round(self, state, clients, who, branch):
        xp = array_namespace(state["x"])
        c = xp.where(who[:, :, None], per_client(clients, state["x"], who), state["c"] / 2)
        return {"x": state["x"] + xp.sum(c, axis=1) / clients.n_clients, "c": c}


@kind("plain")
class MomentumOfClients(Algorithm):
    """Each client has a momentum of its own, which rests while it is away."""

    def init(self, x0, n_clients):
        return {"x": x0, "m": nothing(x0, n_clients, x0.shape[1])}

    def round(self, state, clients, who, branch):
        xp = array_namespace(state["x"])
        there, m = who[:, :, None], state["m"]
        m = xp.where(there, m / 2 + per_client(clients, state["x"], who), m)
        return {"x": state["x"] + xp.sum(m * there, axis=1) / clients.n_clients, "m": m}


@kind("plain")
class SwapsModels(Algorithm):
    """Two models take turns: one is shown, the other trained."""

    def init(self, x0, n_clients):
        return {"x": x0, "y": x0}

    def round(self, state, clients, who, branch):
        return {"x": stepped({"x": state["y"]}, clients, who)["x"], "y": state["x"]}


@kind("plain")
class RollsARing(Algorithm):
    """The last three models in one array, the newest first."""

    def init(self, x0, n_clients):
        xp = array_namespace(x0)
        return {"x": x0, "ring": xp.stack([x0, x0, x0], axis=1)}

    def round(self, state, clients, who, branch):
        xp = array_namespace(state["x"])
        new = stepped(state, clients, who)["x"]
        ring = xp.concat([new[:, None], state["ring"][:, :2]], axis=1)
        return {"x": xp.sum(ring, axis=1) / 3, "ring": ring}


@kind("pure")
class Preconditioned(Algorithm):
    """A matrix of its own, solved for the mean update."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        matrix = np.eye(x.shape[1]) + np.ones((x.shape[1], x.shape[1]))
        return {"x": x + np.linalg.solve(matrix, mean_update(clients, x, who)[:, :, None])[:, :, 0]}


@kind("pure", on="long far some noisy")
class HalvesWhenWorse(Algorithm):
    """A step size that halves, for ever, when a step leads away from zero."""

    def init(self, x0, n_clients):
        return {"x": x0, "lr": nothing(x0, 1) + 1.0}

    def round(self, state, clients, who, branch):
        x, lr = state["x"], state["lr"]
        new = x + lr * mean_update(clients, x, who)
        worse = (new**2).sum(axis=1, keepdims=True) > (x**2).sum(axis=1, keepdims=True)
        return {"x": new, "lr": np.where(worse, lr / 2, lr)}


@kind("pure", on="long some noisy")
class ExactlyOneModel(Algorithm):
    """One float alone is treated in another way: no run of numbers comes by it."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": np.where(x == 0.5, -x, x) + mean_update(clients, x, who)}


# ---------------------------------------------------------------- counts, in other ways


@kind("plain", answers="enclosed paths truth check", on="long some chains cycle noisy")
class OneOverVisits(Algorithm):
    """A client's update counts for less each time that it comes."""

    def init(self, x0, n_clients):
        return {"x": x0, "visits": nothing(x0, n_clients)}

    def round(self, state, clients, who, branch):
        x, visits = state["x"], state["visits"] + who
        weights = who / (1 + visits)
        return {
            "x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.25),
            "visits": visits,
        }


@kind("plain", answers="enclosed paths truth check", on="long some chains cycle noisy_some")
class Streaks(Algorithm):
    """A client counts for more after three rounds on end."""

    def init(self, x0, n_clients):
        return {"x": x0, "streak": nothing(x0, n_clients)}

    def round(self, state, clients, who, branch):
        x = state["x"]
        xp = array_namespace(x)
        streak = (state["streak"] + 1) * who
        weights = xp.where(streak >= 3, 2 * who, who) / 8
        return {
            "x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.25),
            "streak": streak,
        }


@kind("plain", answers="enclosed paths truth check", on="long some chains noisy")
class RestartsEveryFourth(Algorithm):
    """Back to where it began, with half of what was learnt."""

    def init(self, x0, n_clients):
        return {"x": x0, "begun": x0, "t": nothing(x0, 1)}

    def round(self, state, clients, who, branch):
        xp = array_namespace(state["x"])
        t, new = state["t"] + 1, stepped(state, clients, who)["x"]
        return {
            "x": xp.where(t % 4 == 0, (new + state["begun"]) / 2, new),
            "begun": state["begun"],
            "t": t,
        }


@kind("pure", on="long grid some noisy")
class CountsInAByte(Algorithm):
    """After 127 comes -128, and steps go the other way."""

    def init(self, x0, n_clients):
        return {"x": x0, "t": np.zeros((x0.shape[0], 1), dtype=np.int8)}

    def round(self, state, clients, who, branch):
        t = state["t"] + np.int8(1)
        step = np.where(t > 0, 0.1, -0.001)
        return {"x": state["x"] + step * mean_update(clients, state["x"], who), "t": t}


@kind("pure", on="long grid some noisy")
class RoundsLeftInAByte(Algorithm):
    """From 40 rounds down to none, and then to 255."""

    def init(self, x0, n_clients):
        return {"x": x0, "left": np.full((x0.shape[0], 1), 40, dtype=np.uint8)}

    def round(self, state, clients, who, branch):
        left = state["left"] - np.uint8(1)
        return {"x": state["x"] + left / 1024 * mean_update(clients, state["x"], who), "left": left}


@kind("pure", on="long some chains noisy")
class TimeInSinglePrecision(Algorithm):
    """A tenth of a second a round, in a number of 24 bits."""

    def init(self, x0, n_clients):
        return {"x": x0, "time": np.zeros((x0.shape[0], 1), dtype=np.float32)}

    def round(self, state, clients, who, branch):
        time = state["time"] + np.float32(0.1)
        return {
            "x": state["x"] + mean_update(clients, state["x"], who) / (1 + time),
            "time": time,
        }


@kind("pure", on="long grid some noisy")
class Fibonacci(Algorithm):
    """Steps by the remainder of numbers that soon have more digits than a float."""

    def init(self, x0, n_clients):
        ones = np.ones((x0.shape[0], 1), dtype=np.int64)
        return {"x": x0, "a": ones, "b": ones}

    def round(self, state, clients, who, branch):
        a, b = state["b"], state["a"] + state["b"]
        return {
            "x": state["x"] + (a % 7 + 1) / 32 * mean_update(clients, state["x"], who),
            "a": a,
            "b": b,
        }


@kind("pure", on="long some chains noisy")
class CongruentialSteps(Algorithm):
    """Steps by a generator that is part of the state, whose products take 62 bits."""

    def init(self, x0, n_clients):
        return {"x": x0, "seed": np.full((x0.shape[0], 1), 123456789, dtype=np.int64)}

    def round(self, state, clients, who, branch):
        seed = (state["seed"] * 1103515245 + 12345) % 2**31
        step = 0.5 * seed / 2**31
        return {"x": state["x"] + step * mean_update(clients, state["x"], who), "seed": seed}


@kind("pure", on="long some chains noisy")
class Toggles(Algorithm):
    def init(self, x0, n_clients):
        return {"x": x0, "on": np.zeros((x0.shape[0], 1), dtype=bool)}

    def round(self, state, clients, who, branch):
        on = ~state["on"]
        step = np.where(on, 1.0, 0.25)
        return {"x": state["x"] + step * mean_update(clients, state["x"], who), "on": on}


@kind("pure", on="long some chains noisy")
class NamedStages(Algorithm):
    """What comes next is written in words."""

    def init(self, x0, n_clients):
        return {"x": x0, "stage": np.full((x0.shape[0], 1), "warm")}

    def round(self, state, clients, who, branch):
        step = np.where(state["stage"] == "warm", 0.25, 1.0)
        stage = np.where(state["stage"] == "warm", "cold", "warm")
        return {"x": state["x"] + step * mean_update(clients, state["x"], who), "stage": stage}


@kind("pure", on="long some chains noisy")
class TurningPhase(Algorithm):
    """A step that goes round a circle."""

    def init(self, x0, n_clients):
        return {"x": x0, "z": np.full((x0.shape[0], 1), 1 + 0j)}

    def round(self, state, clients, who, branch):
        z = state["z"] * (0.6 + 0.8j)
        step = 0.5 + z.real / 4
        return {"x": state["x"] + step * mean_update(clients, state["x"], who), "z": z}


# ---------------------------------------------------------------- hidden in other ways


@kind("plain", answers="exact paths truth check")
class InAnEventLoop(Algorithm):
    def round(self, state, clients, who, branch):
        async def step():
            return stepped(state, clients, who)

        return asyncio.run(step())


@kind("plain", on="long some unequal noisy")
class ReadOnlyState(Algorithm):
    def round(self, state, clients, who, branch):
        return MappingProxyType(stepped(state, clients, who))


@kind("plain", on="alone some noisy noisy_some")
class BranchThatNeverComes(Algorithm):
    branches = (("never", 0.0), ("always", 1.0))

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who, 0.25 if branch == "always" else 1e9)


class _Token:
    def __init__(self, owner):
        self.owner = owner

    def __del__(self):
        self.owner.t += 1


@kind("impure", clean=Plain)
class CountsWhatIsCollected(Algorithm):
    """The count goes up when an object of the round before is thrown away."""

    def __init__(self):
        self.t = 1

    def round(self, state, clients, who, branch):
        lr = 0.5 / self.t
        _Token(self)
        return stepped(state, clients, who, lr)


@kind("impure", clean=Plain)
class CountsInAFile(Algorithm):
    def __init__(self):
        handle, self.path = tempfile.mkstemp()
        os.close(handle)

    def round(self, state, clients, who, branch):
        with open(self.path, "a") as counted:
            counted.write(".")
        return stepped(state, clients, who, 0.5 / os.path.getsize(self.path))

    def __del__(self):
        with suppress(OSError):
            os.remove(self.path)


# Kept, so that every new one lies elsewhere: mostly beside the last.
_LYING: list[object] = []


@kind("chance", clean=Plain)
class StepByTheAddress(Algorithm):
    """Where memory happens to lie decides."""

    def round(self, state, clients, who, branch):
        _LYING.append(object())
        return stepped(state, clients, who, 0.25 if id(_LYING[-1]) // 16 % 2 else 0.125)


# ---------------------------------------------------------------- starts, and where entries stand


@kind("impure", clean=KeepsOldModel, names="another order")
class ReadsByPlace(Algorithm):
    """Engines keep entries by name, in an order of their own."""

    def init(self, x0, n_clients):
        return {"x": x0, "old": x0}

    def round(self, state, clients, who, branch):
        x, old = state.values()
        return {"x": x + mean_update(clients, x, who) + (x - old) / 4, "old": x}


@kind("impure", clean=StartsHalfway, names="init gives a replica another 'x'")
class StartsOnAGrid(Algorithm):
    """A start of its own for each replica, so that a batch covers many."""

    def init(self, x0, n_clients):
        return {"x": x0 + np.arange(len(x0))[:, None]}

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who)


@kind("impure", clean=StartsElsewhere, names="init gives a replica another 'share'")
class SharesByReplicas(Algorithm):
    """Mistakes the replicas for clients."""

    def init(self, x0, n_clients):
        return {"x": x0, "share": np.full((len(x0), 1), 1 / len(x0))}

    def round(self, state, clients, who, branch):
        x, share = state["x"], state["share"]
        return {"x": x + share * mean_update(clients, x, who), "share": share}


@kind("chance", clean=StartsHalfway)
class StartsUnseeded(Algorithm):
    """From a generator that nobody can seed."""

    def init(self, x0, n_clients):
        return {"x": x0 + np.random.default_rng().normal(size=x0.shape)}

    def round(self, state, clients, who, branch):
        return stepped(state, clients, who)


# ---------------------------------------------------------------- chances that are rarely seen

RARE = 2.0**-30
FRESH = "operating system"


def lost(state: Any, clients: Any, who: Any, chance: float) -> Any:
    """Lose the model if a number drawn is small: so seldom that no two runs will differ."""
    return {"x": stepped(state, clients, who)["x"] + (1e9 if chance < RARE else 0)}


@kind("impure", clean=Plain, names=FRESH)
class RarelyByNumPy(Algorithm):
    def round(self, state, clients, who, branch):
        return lost(state, clients, who, np.random.default_rng().random())


@kind("impure", clean=Plain, names=FRESH)
class RarelyByPython(Algorithm):
    def round(self, state, clients, who, branch):
        return lost(state, clients, who, random.Random().random())


@kind("impure", clean=Plain, names=FRESH)
class RarelyBySystem(Algorithm):
    def round(self, state, clients, who, branch):
        return lost(state, clients, who, random.SystemRandom().random())


@kind("impure", clean=Plain, names=FRESH)
class RarelyByBytes(Algorithm):
    def round(self, state, clients, who, branch):
        return lost(state, clients, who, int.from_bytes(os.urandom(4), "big") / 2**32)


@kind("impure", clean=FallingStep, on="long some chains noisy", names=FRESH)
class RarelyLargerStep:
    """It is the schedule that draws."""

    def at(self, t):
        return Step(0.5 / t + (1 if np.random.default_rng().random() < RARE else 0))


# ---------------------------------------------------------------- what happens in one round


class AtTwentySeven(Algorithm):
    """Counts to a round that is neither one of the first nor of the last."""

    def init(self, x0, n_clients):
        return {"x": x0, "t": nothing(x0, 1)}

    def round(self, state, clients, who, branch):
        t = state["t"] + 1
        x = stepped(state, clients, who)["x"]
        return {"x": self.then(x) if (t == 27).any() else x, "t": t}


@kind("impure", clean=CountsInState, on="long cycle", names=FRESH)
class DrawsFreshThen(AtTwentySeven):
    def then(self, x):
        return x + np.random.default_rng().normal()


@kind("random", clean=CountsInState, on="long cycle")
class DrawsThen(AtTwentySeven):
    def then(self, x):
        return x + np.random.normal(size=x.shape)


@kind("impure", clean=CountsInState, on="long cycle")
class ChangesThen(AtTwentySeven):
    step = 1.0

    def then(self, x):
        self.step = self.step / 2
        return x * self.step
