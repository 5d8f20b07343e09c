"""The algorithms that an experiment may ask for, by name, and what they are told."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fltheory import algorithms
from fltheory.algorithms import Algorithm
from fltheory.algorithms.contract import Schedule
from fltheory.algorithms.inactivity_weights import CappedLinear
from fltheory.hardware.training.strict import made
from fltheory.participation import MarkovOnOff, Participation
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Circumstances(ReadOnlyArrays):
    """What does not depend on the method; oracles are told who is how available.

    Attributes
    ----------
    client_lr : float
    local_steps : int
    assist_lr : float or None
        The step size of a round of the server, where there is one.
    rounds : int
    availability : array, (N,)
    correlation : array, (N,), or None
        Each client's second eigenvalue, where it has one.
    """

    client_lr: float
    local_steps: int
    assist_lr: float | None
    rounds: int
    availability: FloatArray
    correlation: FloatArray | None

    @property
    def steps(self) -> tuple[float, int]:
        """(client_lr, local_steps)."""
        return self.client_lr, self.local_steps

    @property
    def importance(self) -> FloatArray:
        """alpha, equal for all clients."""
        return np.full(self.availability.size, 1.0 / self.availability.size)


def circumstances(
    client_lr: float,
    local_steps: int,
    assist_lr: float | None,
    rounds: int,
    participation: Participation,
) -> Circumstances:
    """Return what methods are told of a process of participation."""
    correlation = None
    if isinstance(participation, MarkovOnOff):
        correlation = np.broadcast_to(participation.correlation, participation.n_clients)
    marginals = participation.marginals
    return Circumstances(client_lr, local_steps, assist_lr, rounds, marginals, correlation)


Maker = Callable[..., Algorithm | Schedule]


def _fedavg(given: Circumstances, *, server_lr: float = 1.0) -> Algorithm:
    return algorithms.FedAvg(*given.steps, server_lr=server_lr)


def _average_all(given: Circumstances, *, server_lr: float = 1.0) -> Algorithm:
    weights = tuple(given.importance.tolist())
    return algorithms.WeightedFedAvg(weights, *given.steps, server_lr=server_lr)


def _safari(given: Circumstances, *, q: float) -> Algorithm:
    if given.assist_lr is None:
        raise ValueError("name must not be SAFARI without a table [server]")
    return algorithms.Safari(q, given.client_lr, given.assist_lr, given.local_steps)


def _fedavg_is(given: Circumstances, *, server_lr: float = 1.0) -> Algorithm:
    known = tuple(given.availability.tolist())
    return algorithms.FedAvgIS(known, *given.steps, server_lr=server_lr)


def _fedau(given: Circumstances, *, cutoff: int = 0, server_lr: float = 1.0) -> Algorithm:
    longest = cutoff or math.inf
    return algorithms.FedAU(*given.steps, cutoff=longest, server_lr=server_lr)


def _fedar(
    given: Circumstances,
    *,
    growth: float,
    largest: float,
    cutoff: float = math.inf,
    server_lr: float = 1.0,
) -> Algorithm:
    weight = CappedLinear(growth, largest)
    return algorithms.FedAR(*given.steps, weight=weight, cutoff=cutoff, server_lr=server_lr)


def _mifa(given: Circumstances, *, start: Any = "wait", server_lr: float = 1.0) -> Algorithm:
    return algorithms.Mifa(*given.steps, start=start, server_lr=server_lr)


def _fedvarp(given: Circumstances, *, server_lr: float = 1.0) -> Algorithm:
    return algorithms.FedVarp(*given.steps, server_lr=server_lr)


def _scaffold(given: Circumstances, *, option: Any = 2, server_lr: float = 1.0) -> Algorithm:
    return algorithms.Scaffold(*given.steps, option=option, server_lr=server_lr)


def _unbiased(given: Circumstances, *, server_lr: float = 1.0) -> Algorithm:
    known = given.importance, given.availability
    return algorithms.Unbiased(*known, *given.steps, server_lr=server_lr)


def _adafed(given: Circumstances, *, server_lr: float = 1.0) -> Algorithm:
    known = given.importance, given.availability
    return algorithms.AdaFed(*known, *given.steps, server_lr=server_lr)


def _f3ast(
    given: Circumstances, *, size: int, smoothing: float = 0.0, server_lr: float = 1.0
) -> Algorithm:
    return algorithms.F3ast(
        given.importance,
        size,
        *given.steps,
        server_lr=server_lr,
        smoothing=smoothing or 1 / given.rounds,
        availability=given.availability,
    )


def _ca_fed(
    given: Circumstances,
    *,
    server_lr: float = 1.0,
    loss_smoothing: float = 0.2,
    threshold: float = 0.0,
    kappa_bar: float = 1.0,
) -> Algorithm:
    if given.correlation is None:
        raise ValueError("name must not be CA-Fed unless the participation is Markov's")
    return algorithms.CAFed(
        given.importance,
        *given.steps,
        server_lr=server_lr,
        loss_smoothing=loss_smoothing,
        threshold=threshold,
        kappa_bar=kappa_bar,
        availability=given.availability,
        correlation=given.correlation,
    )


METHODS: Mapping[str, Maker] = {
    "FedAvg": _fedavg,
    "average all": _average_all,
    "SAFARI": _safari,
    "FedAvg-IS": _fedavg_is,
    "FedAU": _fedau,
    "FedAR": _fedar,
    "MIFA": _mifa,
    "FedVARP": _fedvarp,
    "SCAFFOLD": _scaffold,
    "Unbiased": _unbiased,
    "AdaFed": _adafed,
    "F3AST": _f3ast,
    "CA-Fed": _ca_fed,
}

WITH_SERVER = ("SAFARI",)
"""Those that use the server's own images."""


@dataclass(frozen=True)
class Method:
    """An algorithm by name with options of its own; step sizes and steps come from outside.

    ``average all`` is FedAvg with weights 1/N whoever is there. The oracles FedAvg-IS, Unbiased,
    AdaFed, F3AST and CA-Fed know the availability (CA-Fed the correlation too), and all clients
    weigh alike. A ``cutoff`` of 0 is none for FedAU; ``smoothing`` of 0 is 1/rounds for F3AST.
    """

    name: str
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            known = ", ".join(METHODS)
            raise ValueError(f"algorithm.name must be one of {known}, got {self.name!r}")

    def algorithm(self, given: Circumstances) -> Algorithm | Schedule:
        """Return the algorithm; ValueError names an option that it does not take."""
        return made(partial(METHODS[self.name], given), self.options, "algorithm")
