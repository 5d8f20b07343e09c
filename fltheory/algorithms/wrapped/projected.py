"""Projection of the model onto a ball after every round: CA-Fed's equation (3)."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import (
    Algorithm,
    Array,
    Clients,
    Schedule,
    State,
    checked_algorithm,
    in_round,
)
from fltheory.algorithms.shared.client_constants import on_backend
from fltheory.problems.ball import Ball


@dataclass(frozen=True)
class Projected:
    """An algorithm whose model is put back onto a ball W wherever a round leaves it.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
    onto : Ball
        W; the initial model is not projected.

    Raises
    ------
    ValueError
        For what is no algorithm, or no ball.

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
        """Return the algorithm as it is in a round, the first being 1."""
        return _ProjectedRound(in_round(self.algorithm, round_index), self.onto)


@dataclass(frozen=True)
class _ProjectedRound:
    algorithm: Algorithm
    onto: Ball

    @property
    def branches(self) -> tuple[tuple[str, float], ...]:
        return self.algorithm.branches

    def init(self, x0: Array, n_clients: int) -> State:
        return self.algorithm.init(x0, n_clients)

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        after = self.algorithm.round(state, clients, who, branch)
        x = after["x"]
        xp = array_namespace(x)
        centre = on_backend(self.onto.centre, x)
        distance = xp.sqrt(xp.sum((x - centre) ** 2, axis=1, keepdims=True))
        outside = distance > self.onto.radius
        factor = self.onto.radius / xp.where(outside, distance, xp.ones_like(distance))
        return {**after, "x": xp.where(outside, centre + factor * (x - centre), x)}
