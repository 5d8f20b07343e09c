"""SAFARI: server-assisted federated averaging (SA-FL, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fltheory import validation
from fltheory.algorithms.contract import CLIENTS, SERVER, Array, Clients, State
from fltheory.algorithms.shared.averaging import participant_average
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.decimals import complement


@dataclass(frozen=True)
class Safari:
    """A client round with probability ``q``, otherwise an SGD step on the server's own data.

    Follows Algorithm 1 of SA-FL. The pseudo-code starts at ``x_{r,0}``, lets k run over
    [K] and returns ``x_{r,K+1}``; this class takes K local steps, as the proofs do.

    Parameters
    ----------
    q : float
        Probability of a client round, in [0, 1].
    client_lr : float
        eta_c, the step size of local SGD.
    assist_lr : float
        eta_s, the step size of the server's own step.
    local_steps : int
        K, the local SGD steps in a client round.

    Raises
    ------
    ValueError
        If ``q`` is not a probability, a step size is not positive or ``local_steps`` is
        below 1.

    Examples
    --------
    >>> Safari(q=0.5, client_lr=0.025, assist_lr=0.05, local_steps=5)
    Safari(q=0.5, client_lr=0.025, assist_lr=0.05, local_steps=5)
    """

    q: float
    client_lr: float
    assist_lr: float
    local_steps: int

    def __post_init__(self) -> None:
        validation.probability("q", self.q)
        validation.positive("client_lr", self.client_lr)
        validation.positive("assist_lr", self.assist_lr)
        validation.whole_number("local_steps", self.local_steps, at_least=1)

    @property
    def branches(self) -> tuple[tuple[str, float], ...]:
        """A client round with probability q, the server's own step otherwise."""
        return ((CLIENTS, self.q), (SERVER, complement(self.q)))

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Bound the clients' weights, which sum to one; the server takes a full step."""
        clients = UpdateBounds(self.local_steps, self.client_lr, np.ones(n_clients), 1.0)
        server = UpdateBounds(1, self.assist_lr, np.ones(1), 1.0, by_server=True)
        return {CLIENTS: clients, SERVER: server}

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the initial state: the server's model alone."""
        return {"x": x0}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round: Algorithm 1, lines 3 to 11."""
        x = state["x"]
        if branch == SERVER:
            return {"x": x - self.assist_lr * clients.server_gradient(x)}
        update = clients.summed_local_sgd(
            x, who, participant_average(who, x), steps=self.local_steps, lr=self.client_lr
        )
        return {"x": x + update}
