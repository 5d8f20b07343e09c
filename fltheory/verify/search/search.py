"""The loop of every search: try settings within the budget, and simplify a refutation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from fltheory import validation
from fltheory.engines import Setting
from fltheory.learnability.system import FederatedSystem, LearningSetting, TailCase, UniformPair
from fltheory.problems.base import gradients_at
from fltheory.validation import FloatArray

Found = TypeVar("Found")
Place = TypeVar("Place")


class Search(ABC, Generic[Found]):
    """A search that counts settings and keeps the best.

    Parameters
    ----------
    budget : int
        Settings to try.
    seed : int

    Attributes
    ----------
    tried, applicable : int
        Number of settings so far, and number of those that met every hypothesis.
    best_ratio : float
        The largest truth/bound among settings where all hypotheses held; -inf if there were none.
    """

    def __init__(self, budget: int, seed: int) -> None:
        self._budget = validation.whole_number("budget", budget, at_least=1)
        self._seed = validation.seed_number("seed", seed)
        self._rng = np.random.default_rng(self._seed)
        self.tried = self.applicable = 0
        self.best_ratio = -math.inf

    @property
    @abstractmethod
    def best(self) -> Found | None:
        """The setting with the largest truth/bound; None if the statement applied nowhere."""

    @abstractmethod
    def try_more(self) -> None:
        """Try a setting, or several."""

    def attempts(self) -> Iterator[int]:
        """Try settings until the budget is spent, yielding the number tried so far."""
        while self.tried < self._budget:
            self.try_more()
            yield self.tried

    @abstractmethod
    def refutation(self, *, simple: bool) -> Found | None:
        """Return a refutation, simplified or as it was found, if there is one."""


def simplified(
    found: Found,
    places: Callable[[Found], Sequence[Place]],
    simpler: Callable[[Found, Place], Iterable[Found | None]],
    remains: Callable[[Found, Found], bool],
    most: float = float("inf"),
) -> Found:
    """Return a finding with every number at the simplest value that keeps it a finding.

    Parameters
    ----------
    found : Found
    places : callable
        Returns the places of the finding's numbers.
    simpler : callable
        Called with the finding and a place; yields variants with simpler values at that place, the
        simplest first, or None for a value without a setting. It does not yield the finding itself.
    remains : callable
        Called with a variant and the current finding; returns whether the variant may replace it.
    most : float
        Maximal number of variants tried; the place at which it is reached is still completed.

    Examples
    --------
    >>> def smaller(pair, place):
    ...     for value in range(pair[place]):
    ...         yield (value, pair[1]) if place == 0 else (pair[0], value)
    >>> simplified((3, 4), lambda pair: (0, 1), smaller, lambda option, before: sum(option) > 5)
    (2, 4)
    """
    tried, settled = 0, False
    while not settled:
        settled = True
        for place in places(found):
            for option in simpler(found, place):
                tried += 1
                if option is not None and remains(option, found):
                    found, settled = option, False
                    break
            if tried >= most:
                return found
    return found


# ------------------------------------------------------------ what makes a setting unnatural

LEAST_ROUNDS = 100
LEAST, LARGEST = 0.01, 100.0
RAREST = 0.05
LEAST_COUNT = 10
LEAST_DELTA = 1e-9
RULE = (
    f"at least two clients, not all identical, {LEAST_ROUNDS} rounds, gradient noise unless a "
    f"projection is to be followed exactly, probabilities of {RAREST:g} to {1 - RAREST:g} unless "
    "certain, client steps of at most 1/L, and curvatures, distances, noise and the server's step "
    f"size of {LEAST:g} to {LARGEST:g}"
)
_SMALL_ERROR = 1e-9


def oddities(setting: Setting | LearningSetting) -> tuple[str, ...]:
    """Return the ways in which a setting looks artificial; empty for a natural one.

    A natural setting (see ``RULE``) has at least two clients that are not all identical, at least
    100 rounds, gradient noise, probabilities from 0.05 to 0.95 (or 0 or 1), client steps of at most
    1/L, and curvatures, distances, noise and the server's step size from 0.01 to 100. If models are
    projected, a run with noise cannot be computed exactly, so exact gradients do not count as odd.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import Bernoulli
    >>> from fltheory.problems import QuadraticProblem
    >>> problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0)
    >>> oddities(Setting(FedAvg(0.1, 5), problem, Bernoulli([0.5, 0.3]), 200, [3.0]))
    ()
    >>> oddities(Setting(FedAvg(0.1, 5), problem, Bernoulli([0.5, 0.3]), 2, [3.0]))
    ('2 rounds',)
    """
    return tuple(_oddities(setting) if isinstance(setting, Setting) else _of_learning(setting))


def _of_learning(problem: LearningSetting) -> Iterator[str]:
    """Yield the ways in which a learning problem looks artificial."""
    if isinstance(problem, FederatedSystem):
        if min(problem.M, problem.n) < LEAST_COUNT:
            yield f"{problem.M} clients with {problem.n} samples"
        yield from _outside("a capacity", np.array([problem.m / problem.M]), RAREST, 1 - RAREST)
    if isinstance(problem, TailCase) and (problem.m < LEAST_ROUNDS or problem.delta < LEAST_DELTA):
        yield f"delta = {float(problem.delta):.3g} with {problem.m} samples"
    if isinstance(problem, UniformPair) and problem.target in (problem.c, problem.d):
        yield "a target at the end of a support"


def _oddities(setting: Setting) -> Iterator[str]:
    problem, x0 = setting.problem, np.asarray(setting.x0, dtype=np.float64)
    layers = _layers(setting)
    projects = any(hasattr(layer, "onto") for layer in layers)
    if problem.n_clients < 2:
        yield "one client"
    elif _alike(setting):
        yield "clients that are all identical"
    if setting.rounds < LEAST_ROUNDS:
        yield f"{setting.rounds} rounds"
    if max(problem.sigma, problem.server_sigma) == 0 and not projects:
        yield "no gradient noise"
    chances = np.asarray(setting.participation.marginals)
    uncertain = chances[(chances > _SMALL_ERROR) & (chances < 1 - _SMALL_ERROR)]
    yield from _outside("a probability", uncertain, RAREST, 1 - RAREST)
    sizes = {
        "a curvature": np.array([problem.L, problem.mu]),
        "a distance": np.array([np.linalg.norm(x0 - problem.x_star), _spread(setting)]),
        "noise": np.array([problem.sigma, problem.server_sigma]),
        "a server step size": np.array(getattr(layers[-1], "server_lr", 1.0)).ravel(),
    }
    for name, values in sizes.items():
        yield from _outside(name, values[values > _SMALL_ERROR], LEAST, LARGEST)
    if getattr(layers[-1], "q", 0.5) in (0, 1):
        yield "one kind of round alone"
    step = getattr(layers[-1], "client_lr", 0.0) * problem.L
    if step > 1 + _SMALL_ERROR:
        yield f"a client step of {step:.3g}/L"


def _outside(name: str, values: FloatArray, low: float, high: float) -> Iterator[str]:
    """Yield a text on the first of some numbers that is out of a range."""
    out = values[(values < low * (1 - _SMALL_ERROR)) | (values > high * (1 + _SMALL_ERROR))]
    if out.size:
        yield f"{name} of {out[0]:.3g}"


def _alike(setting: Setting) -> bool:
    """Return whether all clients have the same gradient, at x0 and next to it."""
    x0 = np.asarray(setting.x0, dtype=np.float64)
    for x in (x0, x0 + 1.0):
        gradients = gradients_at(setting.problem, x)
        if not np.allclose(gradients, gradients[0], rtol=_SMALL_ERROR, atol=_SMALL_ERROR):
            return False
    return True


def _spread(setting: Setting) -> float:
    """Return the largest distance of a client's minimiser from w*; 0 if none is known."""
    optima = getattr(setting.problem, "optima", None)
    if optima is None:
        return 0.0
    return float(np.linalg.norm(optima - setting.problem.x_star, axis=-1).max())


def _layers(setting: Setting) -> tuple[object, ...]:
    """Return the algorithm and the algorithms that it wraps, the innermost last."""
    layers: list[object] = []
    layer: object = setting.algorithm
    while layer is not None:
        layers.append(layer)
        layer = getattr(layer, "algorithm", getattr(layer, "scaffold", None))
    return tuple(layers)
