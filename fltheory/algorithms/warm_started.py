"""SCAFFOLD whose controls all clients make before the first round."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from fltheory.algorithms.contract import Algorithm, Array, Clients, State
from fltheory.algorithms.scaffold import Scaffold


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

    def init(self, x0: Array, n_clients: int) -> State:
        return self.scaffold.init(x0, n_clients)

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        x = state["x"]
        everybody = array_namespace(who).ones_like(who)
        steps = self.scaffold.local_steps
        # A single step of size one changes a model by minus its gradient.
        gradients = [-clients.local_sgd(x, everybody, steps=1, lr=1.0) for _ in range(steps)]
        return {**state, "c_i": sum(gradients[1:], gradients[0]) / steps}
