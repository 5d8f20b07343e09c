"""FedAWE: updates weighted by rounds since the last one, and postponed gossip (NeurIPS 2024)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from array_api_compat import array_namespace

from fltheory.algorithms.contract import Algorithm, Array, Clients, Moves, State
from fltheory.algorithms.shared.averaging import (
    anybody,
    blank,
    own_changes,
    participant_average,
    renewed,
    weighted_sum,
)
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class FedAWE(Algorithm):
    """Clients train their own models, and repeat an update for each round that they were absent.

    Follows Algorithm 1 of Xiang et al. (NeurIPS 2024). In round t, an available client makes s
    local steps from x_i, its own last model. If they change it by ``-G_i``, its new model is
    ``x_i - eta_g (t - tau_i) G_i``, where tau_i is its last round (-1 at first). The server's model
    is the mean of the available clients' new models. They all adopt it; the others keep theirs.

    - Nobody is available: only the count of rounds changes.
    - First appearance, in round t = 0, 1, ...: the client starts from the initial model, with
    weight t + 1.
    - Return after any absence: the client starts from the model of its last round.
    - Clients that never appeared contribute nothing.

    Parameters
    ----------
    client_lr : float
        eta_l, the step size of local SGD.
    local_steps : int
        s, the local SGD steps in a round.
    server_lr : float
        eta_g.

    Raises
    ------
    ValueError
        If a step size is not positive or ``local_steps`` is below 1.

    Examples
    --------
    >>> FedAWE(client_lr=0.1, local_steps=5)
    FedAWE(client_lr=0.1, local_steps=5, server_lr=1.0)
    """

    client_lr: float
    local_steps: int
    _: KW_ONLY
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        checked_steps(self.client_lr, self.local_steps, self.server_lr)

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight all clients that ever appear equally, by the paper's Proposition 1."""
        return (chains.availability > 0) * moves(self.local_steps, self.client_lr)

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the model, the clients' models, and the rounds since each last took part."""
        none = blank(x0, n_clients)
        return {"x": x0, "x_i": x0[:, None, :] + blank(x0, n_clients, 1), "since": none + 1}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        models, since = state["x_i"], state["since"]
        xp = array_namespace(models)
        changes = own_changes(models, clients, who, steps=self.local_steps, lr=self.client_lr)
        echoed = models + self.server_lr * since[:, :, None] * changes
        mean = weighted_sum(participant_average(who, state["x"]), echoed)
        here = anybody(who, mean)
        everybody = mean[:, None, :] + xp.zeros_like(models)
        return {
            "x": here * mean + (1 - here) * state["x"],
            "x_i": renewed(models, everybody, who),
            "since": xp.where(who, xp.ones_like(since), since + 1),
        }
