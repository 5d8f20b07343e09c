"""FedAvg with inverse availability weights, a baseline in the MIFA and FedAR papers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Array, Clients, Moves, State
from fltheory.algorithms.shared.client_constants import check_one_each, on_backend
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class FedAvgIS(Algorithm):
    """FedAvg that weights every participant's update inversely to its availability.

    Follows MIFA's code: ``w <- w + server_lr/N sum_{i in A} (w_K^i - w) / p_i``, unbiased for the
    mean over all clients if client i is present with probability p_i. The server's step size is an
    addition. There is no memory.

    - Empty round: nothing changes.
    - First appearance, and return after any absence: the weight is 1/(N p_i), as always.
    - Clients that never appeared contribute nothing, and count in N.

    Parameters
    ----------
    availability : tuple of float, (N,)
        p, in (0, 1].
    client_lr : float
        eta_t, the step size of local SGD.
    local_steps : int
        K, the local SGD steps in a round.
    server_lr : float
        Factor on the weighted update.

    Raises
    ------
    ValueError
        If an availability is outside (0, 1], a step size is not positive or ``local_steps`` is
        below 1. `init` raises it if there is not one availability for each client.

    Examples
    --------
    >>> FedAvgIS((0.9, 0.3), client_lr=0.1, local_steps=5)
    FedAvgIS(availability=(0.9, 0.3), client_lr=0.1, local_steps=5, server_lr=1.0)
    """

    availability: tuple[float, ...]
    client_lr: float
    local_steps: int
    _: KW_ONLY
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        p = validation.one_each(
            "availability", validation.availability("availability", self.availability)
        )
        object.__setattr__(self, "availability", tuple(p.tolist()))
        checked_steps(self.client_lr, self.local_steps, self.server_lr)

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight all clients that ever appear equally, if the given availabilities are correct."""
        moved = moves(self.local_steps, self.client_lr)
        return chains.availability / np.array(self.availability) * moved

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the initial state: the server's model alone."""
        check_one_each("availability", self.availability, n_clients)
        return {"x": x0}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x = state["x"]
        xp = array_namespace(x)
        p = on_backend(np.array(self.availability), x)
        weights = xp.astype(who, x.dtype) / (p * clients.n_clients)
        update = clients.summed_local_sgd(
            x, who, weights, steps=self.local_steps, lr=self.client_lr
        )
        return {"x": x + self.server_lr * update}
