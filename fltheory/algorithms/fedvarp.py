"""FedVARP: the server's memory of updates as a control variate (Jhunjhunwala et al., UAI 2022)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from array_api_compat import array_namespace

from fltheory.algorithms.contract import Algorithm, Array, Clients, Moves, State
from fltheory.algorithms.shared.averaging import (
    anybody,
    blank,
    participant_average,
    renewed,
    weighted_sum,
)
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class FedVarp(Algorithm):
    """The participants' mean deviation from their memories, plus all clients' mean memory.

    Follows the published update in the form used by later implementations. Let ``Delta_i = (w -
    w_tau^i) / (eta_c tau)`` for i in S. Then ``v = 1/|S| sum_{i in S} (Delta_i - y_i) + 1/N sum_j
    y_j``, ``w <- w - server_lr eta_c tau v``, and ``y_i <- Delta_i`` for i in S; ``y = 0`` at
    first. The mean is over those present, however many there are; in the paper their number is
    always M. The update is unbiased only if all clients are equally likely to be present.

    - Empty round (the paper has none): nothing changes, as in FedAU's code.
    - First appearance: the client's memory is 0, so its deviation is its whole update.
    - Return after any absence: the deviation is measured from the unchanged memory.
    - Clients that never appeared contribute nothing, and count in N.

    Parameters
    ----------
    client_lr : float
        eta_c, the step size of local SGD.
    local_steps : int
        tau, the local SGD steps in a round.
    server_lr : float
        eta_s.

    Raises
    ------
    ValueError
        If a step size is not positive or ``local_steps`` is below 1.

    Examples
    --------
    >>> FedVarp(client_lr=0.1, local_steps=5)
    FedVarp(client_lr=0.1, local_steps=5, server_lr=1.0)
    """

    client_lr: float
    local_steps: int
    _: KW_ONLY
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        checked_steps(self.client_lr, self.local_steps, self.server_lr)

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight all clients that ever appear equally: memories are exact in the limit."""
        return (chains.availability > 0) * moves(self.local_steps, self.client_lr)

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the model and each client's memory y."""
        return {"x": x0, "y": blank(x0, n_clients, x0.shape[1])}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x, y = state["x"], state["y"]
        xp = array_namespace(x)
        reach = self.client_lr * self.local_steps
        changes = clients.local_sgd(x, who, steps=self.local_steps, lr=self.client_lr)
        fresh = renewed(y, changes / -reach, who)
        surprise = weighted_sum(participant_average(who, x), fresh - y)
        step = surprise + anybody(who, x) * xp.mean(y, axis=1)
        return {"x": x - self.server_lr * reach * step, "y": fresh}
