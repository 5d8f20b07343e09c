"""MIFA: absent clients are represented by their latest update (Gu et al., NeurIPS 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, Moves, State
from fltheory.algorithms.shared.averaging import blank, renewed
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray

STARTS = ("wait", "zero")


@dataclass(frozen=True)
class Mifa(Algorithm):
    """The mean of the latest updates of all clients.

    Follows the authors' code: those present put ``G^i = (w - w_K^i) / eta_t`` in the server's
    table, and then ``w <- w - server_lr eta_t / N sum_i G^i``. An old entry is scaled by the
    current step size, not by that of the round in which it was made. The server's step size is an
    addition.

    - Empty round: the model moves along the unchanged table.
    - First appearance: the client's entry is filled, and stays until the client returns.
    - Return after any absence: the entry is overwritten; its age plays no role.
    - Until all clients have appeared: with ``start="wait"`` the model does not move. Because it
      does not move, entries made during the wait have the same distribution as if all clients
      computed them when the last one appears, which is what the code does. The code makes its first
      step one round later. With ``start="zero"`` the model moves at once; clients that never
      appeared contribute nothing, and the sum is still divided by N, as in the code.

    Unlike in the code, a schedule of step sizes also counts the rounds of waiting. With
    ``start="zero"``, `engines.exact` gives exact moments; with ``start="wait"``, `engines.paths`
    gives moments that are exact given who takes part.

    Parameters
    ----------
    client_lr : float
        eta_t, the step size of local SGD.
    local_steps : int
        K, the local SGD steps in a round.
    start : {"wait", "zero"}
        What the server does before all clients have appeared: wait, or count their updates as zero.
    server_lr : float
        Factor on the mean update.

    Raises
    ------
    ValueError
        If a step size is not positive, ``local_steps`` is below 1 or ``start`` is unknown.

    Examples
    --------
    >>> Mifa(client_lr=0.1, local_steps=5, start="zero")
    Mifa(client_lr=0.1, local_steps=5, start='zero', server_lr=1.0)
    """

    client_lr: float
    local_steps: int
    _: KW_ONLY
    start: Literal["wait", "zero"] = "wait"
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        checked_steps(self.client_lr, self.local_steps, self.server_lr)
        validation.one_of("start", self.start, STARTS)

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight all clients that ever appear equally: entries are exact in the limit."""
        return (chains.availability > 0) * moves(self.local_steps, self.client_lr)

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Bound the weights, which are equal because the step is a mean over the table."""
        largest = np.full(n_clients, self.server_lr / n_clients)
        updates = UpdateBounds(
            self.local_steps, self.client_lr, largest, self.server_lr, stale=True
        )
        return {CLIENTS: updates}

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the model, an empty table and, if waiting, who has appeared (1 or 0)."""
        table = {"x": x0, "updates": blank(x0, n_clients, x0.shape[1])}
        return table if self.start == "zero" else {**table, "appeared": blank(x0, n_clients)}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x = state["x"]
        xp = array_namespace(x)
        changes = clients.local_sgd(x, who, steps=self.local_steps, lr=self.client_lr)
        updates = renewed(state["updates"], changes / -self.client_lr, who)
        moved = x - self.server_lr * self.client_lr * xp.mean(updates, axis=1)
        if self.start == "zero":
            return {"x": moved, "updates": updates}
        appeared = xp.where(who, xp.ones_like(state["appeared"]), state["appeared"])
        complete = xp.min(appeared, axis=1, keepdims=True) > 0
        return {"x": xp.where(complete, moved, x), "updates": updates, "appeared": appeared}
