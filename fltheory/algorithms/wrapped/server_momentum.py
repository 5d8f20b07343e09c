"""Momentum on the server's side of any algorithm."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Array, Clients, State, checked_algorithm
from fltheory.validation import shown


@dataclass(frozen=True)
class ServerMomentum:
    """``v <- momentum v + (x' - x)``, ``x <- x + v`` for the x' that a round would give.

    Heavy-ball momentum as in torch's SGD, where the change that an algorithm makes in a
    round is the server's pseudo-gradient times its learning rate. CA-Fed's published code
    does so with 0.9; its paper does not mention it.

    Parameters
    ----------
    algorithm : Algorithm
        Whose rounds are changed; its state has an entry ``"velocity"`` more.
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

    algorithm: Algorithm
    momentum: float

    def __post_init__(self) -> None:
        checked_algorithm(self.algorithm, scheduled=False)
        if isinstance(self.algorithm, ServerMomentum):
            # Both would keep their velocity under one name.
            raise ValueError(f"algorithm must be without momentum, got {shown(self.algorithm)}")
        validation.real_number("momentum", self.momentum, "in [0, 1)", lambda m: 0 <= m < 1)

    @property
    def branches(self) -> tuple[tuple[str, float], ...]:
        """Those of the algorithm."""
        return self.algorithm.branches

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the algorithm's initial state, at rest."""
        rest = array_namespace(x0).zeros_like(x0)
        return {**self.algorithm.init(x0, n_clients), "velocity": rest}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        inner = {name: array for name, array in state.items() if name != "velocity"}
        image = self.algorithm.round(inner, clients, who, branch)
        velocity = self.momentum * state["velocity"] + (image["x"] - state["x"])
        return {**image, "x": state["x"] + velocity, "velocity": velocity}
