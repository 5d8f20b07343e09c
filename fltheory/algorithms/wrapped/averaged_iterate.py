"""The weighted average of the models so far, on which CA-Fed's Theorem 2 gives its bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fltheory.algorithms.contract import (
    Algorithm,
    Array,
    Clients,
    Schedule,
    State,
    checked_algorithm,
    in_round,
)
from fltheory.algorithms.shared.step_sizes import Constant, StepSizes, checked_step_sizes
from fltheory.algorithms.wrapped.scheduled import Scheduled
from fltheory.exact_or_float import is_exact
from fltheory.read_only import read_only
from fltheory.validation import FloatArray

_ITERATE = "iterate"
_FEWEST_TOTALS = 64


@dataclass(frozen=True)
class AveragedIterate:
    """An algorithm whose model is the average ``sum_t eta_t w_t / sum_t eta_t``.

    ``w_t`` is the model before round t, t = 1, ..., T, of the averaged algorithm. The average
    is kept up to date by ``x <- x + (eta_t / sum_{s<=t} eta_s) (w_t - x)``, which is affine in
    ``(x, w_t)``: so engines give its errors as those of any algorithm. Before the first round
    it is the initial model.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
        What makes the models ``w_t``; it goes on from ``w_t``, not from the average.
    weights : StepSizes, optional
        eta; by default the step sizes of a `Scheduled` algorithm, and equal for others.

    Raises
    ------
    ValueError
        For what is no algorithm, or weights that are no step sizes.

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
        """Return the algorithm as it is in a round, the first being 1."""
        weights = self.used_weights
        value, total = self._weight_and_total(weights, round_index)
        return _AveragingRound(in_round(self.algorithm, round_index), value, total)

    @property
    def used_weights(self) -> StepSizes:
        """eta: those given, or those of what is averaged."""
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
        """eta_1, eta_1 + eta_2, ... as far as they have been asked for."""
        return []


@dataclass(frozen=True)
class _AveragingRound:
    """A round that takes the model it starts from into the average, ``weight / total`` of it."""

    algorithm: Algorithm
    weight: float
    total: float

    @property
    def branches(self) -> tuple[tuple[str, float], ...]:
        return self.algorithm.branches

    def init(self, x0: Array, n_clients: int) -> State:
        return {**self.algorithm.init(x0, n_clients), _ITERATE: x0}

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
    """Return eta_1, eta_1 + eta_2, ...; long sums in longer numbers, to lose nothing."""
    values = np.array([weights.at(t) for t in range(1, upto + 1)], dtype=np.longdouble)
    return read_only(np.asarray(np.cumsum(values), dtype=np.float64))
