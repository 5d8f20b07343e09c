"""FedAvg: the average of the participants' local models (McMahan et al., 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

import numpy as np

from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, Moves, State
from fltheory.algorithms.shared.averaging import participant_average
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.participation.inclusions.independent_clients import mean_shares
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """Federated averaging over whoever takes part in a round.

    ``x <- x + server_lr / |S| sum_{i in S} (y_K^i - x)`` after ``local_steps`` steps of local SGD;
    if nobody takes part, x stays unchanged. The weights are uniform over the participants, whatever
    the target weights. For the weights of McMahan et al., ``n_k`` over the participants' sum of n,
    use ``FedProx(client_lr, local_steps, proximal=0, client_weights=n)``.

    Parameters
    ----------
    client_lr : float
        eta_c, the step size of local SGD.
    local_steps : int
        K, the local SGD steps in a round.
    server_lr : float
        Factor on the averaged update; 1 is plain averaging.

    Raises
    ------
    ValueError
        If a step size is not positive or ``local_steps`` is below 1.

    Examples
    --------
    >>> FedAvg(client_lr=0.1, local_steps=5)
    FedAvg(client_lr=0.1, local_steps=5, server_lr=1.0)
    """

    client_lr: float
    local_steps: int
    _: KW_ONLY
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        checked_steps(self.client_lr, self.local_steps, self.server_lr)

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight a client's change by its mean share among those present."""
        return mean_shares(chains.availability) * moves(self.local_steps, self.client_lr)

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Bound the weights, which sum to ``server_lr`` if anybody takes part."""
        largest = np.full(n_clients, self.server_lr)
        updates = UpdateBounds(self.local_steps, self.client_lr, largest, self.server_lr)
        return {CLIENTS: updates}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x = state["x"]
        update = clients.summed_local_sgd(
            x, who, participant_average(who, x), steps=self.local_steps, lr=self.client_lr
        )
        return {"x": x + self.server_lr * update}
