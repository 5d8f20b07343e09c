"""FedAR: latest updates with weights that grow with age (Jiang, Zhou, Zhang, Chakraborty, 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
from array_api_compat import array_namespace

from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, Moves, State
from fltheory.algorithms.shared.averaging import blank, renewed, weighted_sum
from fltheory.algorithms.shared.inactivity_weights import (
    CappedLinear,
    Cutoff,
    InactivityWeight,
    check_cutoff,
    check_weight,
    latest,
)
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray

# psi is taken to be constant beyond this many rounds of absence.
_OLDEST = 100_000


@dataclass(frozen=True)
class FedAR(Algorithm):
    """A weighted mean of the latest updates of all clients except those inactive for too long.

    Follows Algorithm 1 with equations (4), (5) and (7). Those present set ``G_i = (w - w_K^i) /
    eta_t`` and ``tau_i = 0``; for the others, tau_i grows by one. Then ``w <- w - server_lr eta_t /
    N_t sum_i psi(tau_i) G_i``. The sum is over the clients that have ever taken part and have
    ``tau_i <= tau_max(t)``; N_t is their number, counted in every round. Our copy of the text lacks
    equations (4), (6) and (7). We took the scaling of G from MIFA and reconstructed (7) from the
    paper's description. **The caller supplies psi, equation (6)**; the default `CappedLinear` is
    our own choice. The server's step size is an addition.

    - Empty round: the model moves along the stale updates, all one round older, or stays if none is
      left.
    - First appearance: from then on the client counts in N_t.
    - Absence beyond tau_max(t): the client counts neither in the sum nor in N_t.
    - Return after any absence: the update is fresh, has weight 1, and counts again.

    Ages do not change affinely in the state, but they are known given who takes part, so
    `engines.paths` gives exact moments.

    Parameters
    ----------
    client_lr : float
        eta_t, the step size of local SGD.
    local_steps : int
        K, the local SGD steps in a round.
    weight : InactivityWeight
        psi, up to the cutoff.
    cutoff : float or callable
        tau_max: a number (infinite for no cutoff), or a function of an array of rounds, counted
        from 1.
    server_lr : float
        Factor on the weighted mean.

    Raises
    ------
    ValueError
        If ``weight`` does not meet the requirements of `InactivityWeight` (the message says which),
        ``cutoff`` is negative, a step size is not positive or ``local_steps`` is below 1.

    Examples
    --------
    >>> from fltheory.algorithms import CappedLinear
    >>> FedAR(client_lr=0.1, local_steps=5, weight=CappedLinear(growth=0.1), cutoff=50).weight
    CappedLinear(growth=0.1, largest=2.0)
    """

    client_lr: float
    local_steps: int
    _: KW_ONLY
    weight: InactivityWeight = field(default_factory=CappedLinear)
    cutoff: Cutoff = math.inf
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        checked_steps(self.client_lr, self.local_steps, self.server_lr)
        check_weight(self.weight)
        check_cutoff(self.cutoff)

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight each client's movement by the mean of psi over the ages of its updates.

        Only clients that ever appear count.
        """
        # E psi(tau) is the sum of psi's increments times P(tau >= n) = (1 - pi) (1 - comes)^(n -
        # 1).
        ages = np.arange(_OLDEST)
        psi = np.where(ages <= latest(self.cutoff, ages + 1), self.weight(ages), 0.0)
        rises = np.flatnonzero(np.diff(psi)) + 1
        older = (1 - chains.availability) * (1 - chains.comes) ** (rises[:, None] - 1)
        mean = 1 + (psi[rises] - psi[rises - 1]) @ older
        moved = moves(self.local_steps, self.client_lr)
        return np.where(chains.availability > 0, mean * moved, 0.0)

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Bound the mean of at least one update by psi's largest value."""
        most = self.server_lr * self.weight.largest
        largest = np.full(n_clients, most)
        updates = UpdateBounds(self.local_steps, self.client_lr, largest, most, stale=True)
        return {CLIENTS: updates}

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the model, G, tau, whether clients have appeared (1 or 0), and the round count."""
        none = blank(x0, n_clients)
        return {
            "x": x0,
            "updates": blank(x0, n_clients, x0.shape[1]),
            "inactive": none,
            "appeared": none,
            "rounds": blank(x0, 1),
        }

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x, rounds = state["x"], state["rounds"] + 1
        xp = array_namespace(x)
        changes = clients.local_sgd(x, who, steps=self.local_steps, lr=self.client_lr)
        updates = renewed(state["updates"], changes / -self.client_lr, who)
        none = xp.zeros_like(state["inactive"])
        inactive = xp.where(who, none, state["inactive"] + 1)
        appeared = xp.where(who, none + 1, state["appeared"])
        counts = (appeared > 0) & (inactive <= latest(self.cutoff, rounds))
        psi = xp.where(counts, self.weight(inactive), none)
        number = xp.sum(xp.astype(counts, x.dtype), axis=1, keepdims=True)
        total = weighted_sum(psi, updates)
        mean = total / xp.where(number > 0, number, xp.ones_like(number))
        return {
            "x": x - self.server_lr * self.client_lr * mean,
            "updates": updates,
            "inactive": inactive,
            "appeared": appeared,
            "rounds": rounds,
        }
