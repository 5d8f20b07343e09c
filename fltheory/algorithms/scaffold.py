"""SCAFFOLD: local SGD corrected by control variates (Karimireddy et al., ICML 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, Moves, State
from fltheory.algorithms.shared.averaging import blank, participant_average, renewed, weighted_sum
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray

OPTIONS = (1, 2)


@dataclass(frozen=True)
class Scaffold(Algorithm):
    """Local SGD along ``g_i - c_i + c``, with c the mean of the clients' controls c_i.

    Follows Algorithm 1: ``x <- x + eta_g/|S| sum_{i in S} (y_K^i - x)`` and ``c <- c + 1/N sum_{i
    in S} (c_i^+ - c_i)``, which divides by N, not by |S|. With ``option=1``, ``c_i^+`` is a further
    stochastic gradient at x; with ``option=2`` it is ``c_i - c + (x - y_K^i) / (K eta_l)``, the
    mean of the gradients along the way. All controls are 0 at first. It differs in that c is not
    stored but computed as the mean of the c_i, which it always equals. If it were stored, its
    distance from that mean would be a coordinate that never decays, and stationary moments could
    not be found. The paper samples a fixed number of clients uniformly; here all clients present
    take part.

    - Empty round: nothing changes.
    - First appearance: the client's own control is 0; the server's control has its current value.
    - Return after any absence: the client's control is unchanged; the server's has its current
      value.
    - Clients that never appeared contribute nothing to c, and count in N.

    Parameters
    ----------
    client_lr : float
        eta_l, the step size of local SGD.
    local_steps : int
        K, the local SGD steps in a round.
    option : {1, 2}
        How a client's control is updated.
    server_lr : float
        eta_g.

    Raises
    ------
    ValueError
        If a step size is not positive, ``local_steps`` is below 1 or ``option`` is unknown.

    Examples
    --------
    >>> Scaffold(client_lr=0.1, local_steps=5)
    Scaffold(client_lr=0.1, local_steps=5, option=2, server_lr=1.0)
    """

    client_lr: float
    local_steps: int
    _: KW_ONLY
    option: Literal[1, 2] = 2
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        checked_steps(self.client_lr, self.local_steps, self.server_lr)
        validation.one_of("option", self.option, OPTIONS)

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight clients that ever appear by curvature; steps have no client drift in the limit."""
        return (chains.availability > 0) * moves(1, 1.0)

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Bound the weights, which sum to ``server_lr``; steps are corrected."""
        largest = np.full(n_clients, self.server_lr)
        updates = UpdateBounds(
            self.local_steps, self.client_lr, largest, self.server_lr, corrected=True
        )
        return {CLIENTS: updates}

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the model and the clients' controls c_i."""
        return {"x": x0, "c_i": blank(x0, n_clients, x0.shape[1])}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x, c_i = state["x"], state["c_i"]
        xp = array_namespace(x)
        correction = xp.mean(c_i, axis=1, keepdims=True) - c_i
        changes = clients.local_sgd(
            x, who, steps=self.local_steps, lr=self.client_lr, correction=correction
        )
        if self.option == 1:
            # A single step of size one changes a model by minus its gradient.
            gradients = -clients.local_sgd(x, who, steps=1, lr=1.0)
        else:
            gradients = changes / (-self.local_steps * self.client_lr) - correction
        average = weighted_sum(participant_average(who, x), changes)
        return {
            "x": x + self.server_lr * average,
            "c_i": renewed(c_i, gradients, who),
        }
