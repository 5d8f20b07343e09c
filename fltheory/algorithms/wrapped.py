"""Wrappers of algorithms: schedules, projections, averages, momentum, a warm start."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import (
    CLIENTS,
    Algorithm,
    Array,
    Clients,
    Schedule,
    State,
    checked_algorithm,
    in_round,
)
from fltheory.algorithms.scaffold import Scaffold
from fltheory.algorithms.shared.client_constants import on_backend
from fltheory.algorithms.shared.step_sizes import Constant, StepSizes, checked_step_sizes
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.exact_or_float import is_exact
from fltheory.problems.ball import Ball
from fltheory.read_only import read_only
from fltheory.validation import FloatArray, shown


@dataclass(frozen=True)
class _Around:
    """Base of wrappers that add something to the rounds of an algorithm."""

    algorithm: Algorithm

    @property
    def branches(self) -> tuple[tuple[str, float], ...]:
        """The branches of the wrapped algorithm."""
        return self.algorithm.branches

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the wrapped algorithm's state before the first round."""
        return self.algorithm.init(x0, n_clients)


@dataclass(frozen=True)
class Scheduled:
    """An algorithm with ``client_lr = step_sizes.at(t)`` in round t, counted from 1.

    Parameters
    ----------
    algorithm : Algorithm
        An algorithm with a hyper-parameter ``client_lr``, whose value is replaced.
    step_sizes : StepSizes

    Raises
    ------
    ValueError
        If ``algorithm`` has no ``client_lr`` to replace, or ``step_sizes`` are not step sizes.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg, Harmonic
    >>> Scheduled(FedAvg(0.1, 5), Harmonic(1.0, offset=1.0)).at(3).client_lr
    0.25
    """

    algorithm: Algorithm
    step_sizes: StepSizes

    def __post_init__(self) -> None:
        algorithm: Any = self.algorithm
        if not is_dataclass(algorithm) or "client_lr" not in {f.name for f in fields(algorithm)}:
            raise ValueError(
                f"algorithm must have a client_lr to schedule, got {validation.shown(algorithm)}"
            )
        checked_algorithm(algorithm, scheduled=False)
        checked_step_sizes("step_sizes", self.step_sizes)

    def at(self, round_index: int) -> Algorithm:
        """Return the algorithm of a round, counted from 1."""
        client_lr = self.step_sizes.at(round_index)
        if not is_exact(client_lr):
            return cast(Algorithm, replace(cast(Any, self.algorithm), client_lr=client_lr))
        # Replaced without the constructor, whose checks would convert the value to a float.
        scheduled = copy(self.algorithm)
        object.__setattr__(scheduled, "client_lr", client_lr)
        return scheduled


_ITERATE = "iterate"
_FEWEST_TOTALS = 64


@dataclass(frozen=True)
class AveragedIterate:
    """An algorithm whose model is the average ``sum_t eta_t w_t / sum_t eta_t``.

    ``w_t`` is the averaged algorithm's model before round t, for t = 1, ..., T. The average is
    kept up to date by ``x <- x + (eta_t / sum_{s<=t} eta_s) (w_t - x)``, which is affine in ``(x,
    w_t)``, so engines compute its errors like those of any algorithm. Before the first round, it is
    the initial model.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
        Makes the models ``w_t``; it continues from ``w_t``, not from the average.
    weights : StepSizes, optional
        eta; by default the step sizes of a `Scheduled` algorithm, and equal weights for others.

    Raises
    ------
    ValueError
        If ``algorithm`` is not an algorithm, or ``weights`` are not step sizes.

    Notes
    -----
    CA-Fed, below equation (12).

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> AveragedIterate(FedAvg(client_lr=0.1, local_steps=5))
    AveragedIterate(algorithm=FedAvg(client_lr=0.1, local_steps=5, server_lr=1.0), weights=None)
    """

    algorithm: Algorithm | Schedule
    weights: StepSizes | None = None

    def __post_init__(self) -> None:
        checked_algorithm(self.algorithm)
        if self.weights is not None:
            checked_step_sizes("weights", self.weights)

    def at(self, round_index: int) -> Algorithm:
        """Return the algorithm of a round, counted from 1."""
        weights = self.used_weights
        value, total = self._weight_and_total(weights, round_index)
        return _AveragingRound(in_round(self.algorithm, round_index), value, total)

    @property
    def used_weights(self) -> StepSizes:
        """eta: the given weights, or otherwise the step sizes of the averaged algorithm."""
        if self.weights is not None:
            return self.weights
        return self.algorithm.step_sizes if isinstance(self.algorithm, Scheduled) else Constant(1)

    def _weight_and_total(self, weights: StepSizes, round_index: int) -> tuple[Any, Any]:
        """Return eta_t and ``sum_{s<=t} eta_s``."""
        value: Any = weights.at(round_index)
        if is_exact(value):
            for t in range(len(self._exact_totals) + 1, round_index + 1):
                before = self._exact_totals[-1] if self._exact_totals else 0
                self._exact_totals.append(weights.at(t) + before)
            return value, self._exact_totals[round_index - 1]
        upto = max(_FEWEST_TOTALS, 1 << (round_index - 1).bit_length())
        total = float(_totals(weights, upto)[round_index - 1])
        return value, int(total) if isinstance(value, int) else total

    @cached_property
    def _exact_totals(self) -> list[Any]:
        """Cached partial sums eta_1, eta_1 + eta_2, ..."""
        return []


@dataclass(frozen=True)
class _AveragingRound(_Around):
    """A round that adds its initial model to the average, with share ``weight / total``."""

    weight: float
    total: float

    def init(self, x0: Array, n_clients: int) -> State:
        return {**super().init(x0, n_clients), _ITERATE: x0}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        before = {name: array for name, array in state.items() if name != _ITERATE}
        average, iterate = state["x"], state[_ITERATE]
        after = self.algorithm.round({**before, "x": iterate}, clients, who, branch)
        return {
            **after,
            "x": average + self.weight * (iterate - average) / self.total,
            _ITERATE: after["x"],
        }


@lru_cache
def _totals(weights: StepSizes, upto: int) -> FloatArray:
    """Return eta_1, eta_1 + eta_2, ..., summed in extended precision."""
    values = np.array([weights.at(t) for t in range(1, upto + 1)], dtype=np.longdouble)
    return read_only(np.asarray(np.cumsum(values), dtype=np.float64))


@dataclass(frozen=True)
class Projected:
    """An algorithm whose model is projected onto a ball W whenever a round takes it outside.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
    onto : Ball
        W; the initial model is not projected.

    Raises
    ------
    ValueError
        If ``algorithm`` is not an algorithm, or ``onto`` is not a ball.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.problems import Ball
    >>> Projected(FedAvg(client_lr=0.1, local_steps=5), Ball([0.0, 0.0], radius=2.0)).onto.radius
    2.0
    """

    algorithm: Algorithm | Schedule
    onto: Ball

    def __post_init__(self) -> None:
        checked_algorithm(self.algorithm)
        validation.instance_of("onto", self.onto, Ball, "a Ball")

    def at(self, round_index: int) -> Algorithm:
        """Return the algorithm of a round, counted from 1."""
        return _ProjectedRound(in_round(self.algorithm, round_index), self.onto)


@dataclass(frozen=True)
class _ProjectedRound(_Around):
    onto: Ball

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        after = self.algorithm.round(state, clients, who, branch)
        x = after["x"]
        xp = array_namespace(x)
        centre = on_backend(self.onto.centre, x)
        distance = xp.sqrt(xp.sum((x - centre) ** 2, axis=1, keepdims=True))
        outside = distance > self.onto.radius
        factor = self.onto.radius / xp.where(outside, distance, xp.ones_like(distance))
        return {**after, "x": xp.where(outside, centre + factor * (x - centre), x)}


@dataclass(frozen=True)
class ServerMomentum(_Around):
    """``v <- momentum v + (x' - x)``, ``x <- x + v`` for the x' that a round would give.

    Heavy-ball momentum as in torch's SGD: the change that an algorithm makes in a round is the
    server's pseudo-gradient times its learning rate. CA-Fed's published code uses momentum 0.9; its
    paper does not mention it.

    Parameters
    ----------
    algorithm : Algorithm
        The algorithm to change; its state gets one more entry, ``"velocity"``.
    momentum : float
        In [0, 1).

    Raises
    ------
    ValueError
        If ``momentum`` is out of range.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> ServerMomentum(FedAvg(client_lr=0.1, local_steps=5), momentum=0.9)
    ServerMomentum(algorithm=FedAvg(client_lr=0.1, local_steps=5, server_lr=1.0), momentum=0.9)
    """

    momentum: float

    def __post_init__(self) -> None:
        checked_algorithm(self.algorithm, scheduled=False)
        if isinstance(self.algorithm, ServerMomentum):
            # Both would store their velocity under the same name.
            raise ValueError(f"algorithm must be without momentum, got {shown(self.algorithm)}")
        validation.real_number("momentum", self.momentum, "in [0, 1)", lambda m: 0 <= m < 1)

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the algorithm's initial state with velocity zero."""
        rest = array_namespace(x0).zeros_like(x0)
        return {**super().init(x0, n_clients), "velocity": rest}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        inner = {name: array for name, array in state.items() if name != "velocity"}
        image = self.algorithm.round(inner, clients, who, branch)
        velocity = self.momentum * state["velocity"] + (image["x"] - state["x"])
        return {**image, "x": state["x"] + velocity, "velocity": velocity}


@dataclass(frozen=True)
class WarmStarted:
    """SCAFFOLD that starts with a round in which every client sets its control and no model moves.

    For every client i, present or not, ``c_i`` is the mean of K fresh gradients at the initial
    model. SCAFFOLD's theorem on nonconvex losses requires this start. It takes an extra round, so
    ``rounds`` of a run is one more than SCAFFOLD's number of rounds.

    Parameters
    ----------
    scaffold : Scaffold
        The algorithm that runs from the second round on.

    Raises
    ------
    ValueError
        If the algorithm is not a `Scaffold`.

    Examples
    --------
    >>> from fltheory.algorithms import Scaffold
    >>> WarmStarted(Scaffold(client_lr=0.1, local_steps=5))
    WarmStarted(scaffold=Scaffold(client_lr=0.1, local_steps=5, option=2, server_lr=1.0))
    """

    scaffold: Scaffold

    def __post_init__(self) -> None:
        if not isinstance(self.scaffold, Scaffold):
            raise ValueError(f"scaffold must be Scaffold, got {self.scaffold!r}")

    def at(self, round_index: int) -> Algorithm:
        """Return the algorithm of a round, counted from 1."""
        return _WarmRound(self.scaffold) if round_index == 1 else self.scaffold


@dataclass(frozen=True)
class _WarmRound(_Around):
    """The round that sets SCAFFOLD's controls."""

    algorithm: Scaffold

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Return bounds with weights zero: only the controls change, not the model."""
        nothing = np.zeros(n_clients)
        return {CLIENTS: UpdateBounds(1, 1.0, nothing, 0.0, corrected=True)}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        x = state["x"]
        everybody = array_namespace(who).ones_like(who)
        steps = self.algorithm.local_steps
        # A single step of size one changes a model by minus its gradient.
        changes = [clients.local_sgd(x, everybody, steps=1, lr=1.0) for _ in range(steps)]
        return {**state, "c_i": -sum(changes[1:], changes[0]) / steps}
