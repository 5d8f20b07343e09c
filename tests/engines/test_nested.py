"""Own algorithms and wrappers in wrappers, two and three deep, against real rounds run one by one.

The truth asks nothing of the engines. Every path of participants and branches is run, on clients
that take their steps in a loop. Where a run is affine in its noise, as one of random numbers shows,
``E||x - x*||^2`` is the square without noise and those of the answers to each number alone;
elsewhere runs are drawn, and the truth is known to 7 standard errors.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strangers import KINDS, _in_round, _steps

import fltheory
from benchmarks import soundness as script
from fltheory.algorithms import (
    AveragedIterate,
    Harmonic,
    Projected,
    Scaffold,
    Scheduled,
    ServerMomentum,
    WarmStarted,
)
from fltheory.algorithms.contract import Algorithm, Clients
from fltheory.engines import Setting, exact, paths
from fltheory.evidence.truths import Sampling, truth
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, Participation, UniformSubset
from fltheory.problems import Ball
from tests.drawn import a_tenth

PACKAGE = Path(fltheory.__file__).parent
DRAWN = 4000

# ---------------------------------------------------------------- own wrappers


@dataclass(frozen=True)
class Damped:
    """Goes part of the way that a round goes."""

    algorithm: Any
    part: float

    def at(self, t):
        return _DampedRound(_in_round(self.algorithm, t), self.part)


@dataclass(frozen=True)
class _DampedRound(Algorithm):
    algorithm: Any
    part: float

    @property
    def branches(self):
        return self.algorithm.branches

    def init(self, x0, n_clients):
        return self.algorithm.init(x0, n_clients)

    def round(self, state, clients, who, branch):
        after = self.algorithm.round(state, clients, who, branch)
        return {**after, "x": state["x"] + self.part * (after["x"] - state["x"])}


@dataclass(frozen=True)
class Resting:
    """Every other round is none."""

    algorithm: Any

    def at(self, t):
        now = _in_round(self.algorithm, t)
        return now if t % 2 else _DampedRound(now, 0.0)


@dataclass(frozen=True)
class Smoothed:
    """The model is the mean of the new one and of what it was; the new one is kept beside it."""

    algorithm: Any

    def at(self, t):
        return _SmoothedRound(_in_round(self.algorithm, t))


@dataclass(frozen=True)
class _SmoothedRound(Algorithm):
    algorithm: Any

    @property
    def branches(self):
        return self.algorithm.branches

    def init(self, x0, n_clients):
        return {**self.algorithm.init(x0, n_clients), "sharp": x0}

    def round(self, state, clients, who, branch):
        inner = {name: array for name, array in state.items() if name != "sharp"}
        after = self.algorithm.round({**inner, "x": state["sharp"]}, clients, who, branch)
        return {**after, "x": (state["x"] + after["x"]) / 2, "sharp": after["x"]}


# ---------------------------------------------------------------- what is drawn

OWN = [
    "Window",
    "Momentum",
    "LatestUpdates",
    "KeepsOldModel",
    "CountsInState",
    "SumsOverClients",
    "Tosses",
]
BASES: dict[str, script.Maker] = {
    **{
        name: make
        for name, make in script.MAKERS.items()
        if name not in ("momentum", "averaged", "cancelling")
    },
    **{name: lambda d, n, lr, make=KINDS[name].make: make() for name in OWN},
    "warm": lambda d, n, lr: WarmStarted(Scaffold(lr, 2)),
}


def _ball(draw: np.random.Generator, setting: Setting, *, wide: bool) -> Ball:
    centre = setting.problem.x_star + 0.1 * draw.standard_normal(setting.problem.dim)
    return Ball(centre.round(3), 1e3 if wide else 0.5)


WRAPPERS: dict[str, Callable[[Any, np.random.Generator, Setting], Any]] = {
    "averaged": lambda a, d, s: AveragedIterate(a),
    "averaged, weighted": lambda a, d, s: AveragedIterate(a, Harmonic(1.0, offset=1.5)),
    "projected": lambda a, d, s: Projected(a, _ball(d, s, wide=False)),
    "idly projected": lambda a, d, s: Projected(a, _ball(d, s, wide=True)),
    "scheduled": lambda a, d, s: Scheduled(a, Harmonic(0.4, offset=1.0)),
    "momentum": lambda a, d, s: ServerMomentum(a, 0.5),
    "damped": lambda a, d, s: Damped(a, 0.75),
    "resting": lambda a, d, s: Resting(a),
    "smoothed": lambda a, d, s: Smoothed(a),
}


def _who(draw: np.random.Generator, n: int) -> Participation:
    p = draw.uniform(0.1, 0.9, n).round(2)
    return [
        lambda: UniformSubset(n, int(draw.integers(1, n + 1))),
        lambda: Bernoulli(p),
        lambda: Cyclic(draw.integers(1, 4, n), draw.integers(0, 3, n)),
        lambda: MarkovOnOff(p, 0.25),
    ][int(draw.integers(4))]()


def drawn(seed: int) -> tuple[str, Setting]:
    """Return a setting and what it is: wrappers, from the outermost, and an algorithm."""
    draw = np.random.default_rng(seed)
    n, dim = int(draw.integers(1, 4)), int(draw.integers(1, 3))
    problem = script._problem(draw, n, dim, lambda: 1.0)
    base = str(draw.choice(list(BASES)))
    algorithm = BASES[base](draw, n, round(float(draw.uniform(0.1, 0.9)) / problem.L, 3))
    start = (problem.x_star + draw.standard_normal(dim)).round(3)
    setting = Setting(algorithm, problem, _who(draw, n), int(draw.integers(2, 4)), start)
    names = [base]
    depth = int(draw.integers(2, 4))
    for _ in range(100):
        name = str(draw.choice(list(WRAPPERS)))
        try:
            setting = replace(setting, algorithm=WRAPPERS[name](setting.algorithm, draw, setting))
        except ValueError:  # what cannot be wrapped so says so
            continue
        names.append(name)
        if len(names) > depth:
            break
    return " of ".join(reversed(names)), setting


# ---------------------------------------------------------------- the plain truth


class LoopClients(Clients):
    """Clients that take one step after another, with numbers (rows, many) as noise."""

    def __init__(self, problem: Any, numbers: np.ndarray) -> None:
        self._problem, self._numbers, self.used = problem, numbers, 0
        self._hessians = np.broadcast_to(problem.hessians, (self.n_clients, *[problem.dim] * 2))

    @property
    def n_clients(self) -> int:
        return self._problem.n_clients

    def _noise(self, sigma: float) -> np.ndarray:
        dim = self._problem.dim
        taken = self._numbers[:, self.used : self.used + dim]
        self.used += dim
        return sigma / dim**0.5 * taken if taken.shape[1] else np.zeros(dim)

    def local_sgd(self, x, who, *, steps, lr, correction=None, proximal=0):
        problem, changes = self._problem, []
        for i in range(self.n_clients):
            y = x
            for _ in range(steps):
                gradient = (y - problem.optima[i]) @ self._hessians[i] + self._noise(problem.sigma)
                gradient = gradient + (0 if correction is None else correction[:, i])
                y = y - lr * (gradient + proximal * (y - x))
            changes.append(np.where(who[:, [i]], y - x, 0.0))
        return np.stack(changes, axis=1)

    def loss(self, x, who):
        raise NotImplementedError("no algorithm here asks for losses")

    def server_gradient(self, x):
        problem = self._problem
        away = x[:, None] - problem.optima
        each = np.einsum("iab,rib->ria", self._hessians, away)
        weights = problem.target_weights
        mean = each.mean(axis=1) if weights is None else np.einsum("i,ria->ra", weights, each)
        return mean + self._noise(problem.server_sigma)


Step = tuple[tuple[bool, ...], str]


def _every_path(setting: Setting) -> list[tuple[float, list[Step]]]:
    begun: list[tuple[float, list[Step]]] = [(1.0, [])]
    for index in range(setting.rounds):
        begun = [
            (chance * share, [*path, step])
            for chance, path in begun
            for share, step in _steps(
                setting.algorithm, setting.participation, path[-1][0] if path else None, index
            )
            if share
        ]
    return begun


def _runs(setting: Setting, path: list[Step], numbers: np.ndarray) -> tuple[np.ndarray, int]:
    """Return x - x* (rounds + 1, rows, dim) on a path, and how many numbers were used."""
    clients = LoopClients(setting.problem, numbers)
    state = _in_round(setting.algorithm, 1).init(
        np.tile(setting.x0, (len(numbers), 1)), clients.n_clients
    )
    models = [state["x"]]
    for index, (who, branch) in enumerate(path, start=1):
        present = np.tile(np.array(who, dtype=bool), (len(numbers), 1))
        now = _in_round(setting.algorithm, index)
        state = now.round(state, clients, present, branch)
        models.append(state["x"])
    return np.array(models) - setting.problem.x_star, clients.used


Plain = tuple[np.ndarray, np.ndarray]
"""``E||x_r - x*||^2`` after every round, and how far it may be off."""


def plain_truth(setting: Setting) -> Plain | None:
    """Return the truth; None where real rounds raise, as two wrappers keep one name."""
    try:
        return _averaged(setting)
    except KeyError:
        return None


def _averaged(setting: Setting) -> Plain:
    total = np.zeros(setting.rounds + 1)
    variance = np.zeros_like(total)
    rng = np.random.default_rng(0)
    noisy = setting.problem.sigma > 0 or setting.problem.server_sigma > 0
    for chance, path in _every_path(setting):
        still, many = _runs(setting, path, np.zeros((1, 0)))
        squares = (still[:, 0] ** 2).sum(axis=1)
        if noisy:
            numbers = np.concatenate([np.eye(many), rng.standard_normal((2, many))])
            found, _ = _runs(setting, path, numbers)
            answers = found - still
            foreseen = np.einsum("kn,rnd->rkd", numbers[many:], answers[:, :many])
            if np.allclose(answers[:, many:], foreseen, rtol=1e-9, atol=1e-9):
                squares = squares + (answers[:, :many] ** 2).sum(axis=(1, 2))
            else:
                found, _ = _runs(setting, path, rng.standard_normal((DRAWN, many)))
                each = (found**2).sum(axis=2)
                squares = each.mean(axis=1)
                variance += chance**2 * each.var(axis=1) / DRAWN
        total += chance * squares
    return total, 7 * np.sqrt(variance) + 1e-11 * (1 + total)


# ---------------------------------------------------------------- the engines


def _computed(engine: Callable[[Setting], Any], setting: Setting) -> tuple[Any, Any]:
    run = engine(setting)
    error = 0.0 if run.rounding_error is None else run.rounding_error.squared_distance
    return run.squared_distance - error, run.squared_distance + error


def _found(setting: Setting) -> tuple[Any, Any]:
    return truth(setting, (), Sampling(replicas=200)).interval("squared_distance")


ENGINES: dict[str, Callable[[Setting], tuple[Any, Any]]] = {
    "exact": partial(_computed, exact),
    "enclosed": partial(_computed, partial(exact, arithmetic="enclosed")),
    "paths": partial(_computed, paths),
    "truth": _found,
}


def outcome(setting: Setting, engine: str, plain: Plain | None) -> str:
    """Return "right" or "refused", or what is wrong."""
    try:
        least, most = ENGINES[engine](setting)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if isinstance(error, ValueError) and Path(last).is_relative_to(PACKAGE):
            return "refused"
        return f"a traceback: {type(error).__name__}: {error}"
    if plain is None:
        return "answered, where real rounds raise"
    value, within = plain
    wrong = np.flatnonzero(~((least <= value + within) & (value - within <= most)))
    if not wrong.size:
        return "right"
    r = wrong[0]
    return f"wrong after round {r}: {least[r]} to {most[r]}, not {value[r]} +- {within[r]}"


@cache
def outcomes(seed: int) -> dict[str, str]:
    """Return what every engine does on a setting, and the setting's name where one is wrong."""
    name, setting = drawn(seed)
    plain = plain_truth(setting)
    found = {engine: outcome(setting, engine, plain) for engine in ENGINES}
    return {e: w if w in ("right", "refused") else f"{name}: {w}" for e, w in found.items()}


SEEDS = a_tenth(range(500))


@pytest.mark.parametrize("seed", SEEDS)
def test_nested_wrappers_are_right_or_refused(seed: int) -> None:
    assert set(outcomes(seed).values()) <= {"right", "refused"}


def test_most_have_an_answer() -> None:
    """Refusals alone would be right as well: truth has to answer, some of it without a sample."""
    counts = Counter(
        pair for seed in SEEDS if not seed.marks for pair in outcomes(*seed.values).items()
    )
    assert counts["truth", "right"] > 3 * counts["truth", "refused"]
    assert all(counts[engine, "right"] >= 5 for engine in ENGINES)
