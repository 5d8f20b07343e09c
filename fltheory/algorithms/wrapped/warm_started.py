"""SCAFFOLD whose controls all clients make before the first round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, State
from fltheory.algorithms.scaffold import Scaffold
from fltheory.algorithms.shared.update_bounds import UpdateBounds


@dataclass(frozen=True)
class WarmStarted:
    """SCAFFOLD after a round in which every client sets its control and no model moves.

    ``c_i`` is the mean of K fresh gradients of client i at the initial model, for every client,
    whoever is there: the start that SCAFFOLD's theorem on nonconvex losses asks for. It takes a
    round of its own, so ``rounds`` of a run count one more than SCAFFOLD's.

    Parameters
    ----------
    scaffold : Scaffold
        What runs from the second round on.

    Raises
    ------
    ValueError
        For another algorithm.

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
        """Return the algorithm as it is in a round, the first being 1."""
        return _WarmRound(self.scaffold) if round_index == 1 else self.scaffold


@dataclass(frozen=True)
class _WarmRound:
    """The round that makes the controls."""

    scaffold: Scaffold

    @property
    def branches(self) -> tuple[tuple[str, float], ...]:
        return self.scaffold.branches

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Bound nothing but the controls, means of gradients at the model: it does not move."""
        nothing = np.zeros(n_clients)
        return {CLIENTS: UpdateBounds(1, 1.0, nothing, 0.0, corrected=True)}

    def init(self, x0: Array, n_clients: int) -> State:
        return self.scaffold.init(x0, n_clients)

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        x = state["x"]
        everybody = array_namespace(who).ones_like(who)
        steps = self.scaffold.local_steps
        # A single step of size one changes a model by minus its gradient.
        changes = [clients.local_sgd(x, everybody, steps=1, lr=1.0) for _ in range(steps)]
        return {**state, "c_i": -sum(changes[1:], changes[0]) / steps}
