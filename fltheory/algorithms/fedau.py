"""FedAU: weights from the intervals between a client's rounds (Wang and Ji, ICLR 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

import numpy as np
from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, Moves, State
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class FedAU(Algorithm):
    """FedAvg weighted by the mean interval between participations, estimated during the run.

    Follows Algorithms 1 and 2: ``x <- x + eta/N sum_n omega_t^n Delta_t^n`` over those who take
    part, where omega_t depends only on rounds before t. For each client, the rounds are divided
    into intervals. An interval ends with a round in which the client takes part, or after K rounds.
    Omega is the mean length of the intervals that have ended, and 1 until the first one has ended.
    A round without participants leaves the model where it is, and lengthens every open interval.

    Parameters
    ----------
    client_lr : float
        gamma, the step size of local SGD.
    local_steps : int
        I, the local SGD steps in a round.
    cutoff : int or math.inf
        K, the longest interval; infinite for no cutoff.
    server_lr : float
        eta.

    Raises
    ------
    ValueError
        If a step size is not positive, or ``local_steps`` or ``cutoff`` is below 1.

    Examples
    --------
    >>> FedAU(client_lr=0.1, local_steps=5, cutoff=50)
    FedAU(client_lr=0.1, local_steps=5, cutoff=50, server_lr=1.0)
    """

    client_lr: float
    local_steps: int
    _: KW_ONLY
    cutoff: float = math.inf
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        checked_steps(self.client_lr, self.local_steps, self.server_lr)
        if not (isinstance(self.cutoff, float) and self.cutoff == math.inf):
            validation.whole_number("cutoff", self.cutoff, at_least=1)

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight by the long-run value of omega, the number of rounds per ended interval."""
        stays_away = 1 - chains.comes
        ever = chains.availability > 0
        # Between two rounds of presence that are L rounds apart, ceil(L/K) intervals end, and P(L >
        # n) = (1 - stays) (1 - comes)^(n - 1); omega is E L = 1/pi over their mean number.
        last_away = stays_away ** (self.cutoff - 1)
        round_again = np.where(ever, 1 - stays_away**self.cutoff, 1.0)
        number = 1 + (1 - chains.stays) * last_away / round_again
        return np.where(ever, moves(self.local_steps, self.client_lr) / number, 0.0)

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Bound omega by the longest interval that can have ended before the round."""
        longest = min(self.cutoff, max(1, round_index - 1))
        largest = np.full(n_clients, self.server_lr * longest / n_clients)
        total = float(largest.sum())
        return {CLIENTS: UpdateBounds(self.local_steps, self.client_lr, largest, total)}

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the model and, for each client, omega and what it is computed from.

        Omega is computed from the number of ended intervals and their total length. The state also
        has the number of rounds since the last interval ended.

        Because omega is computed from these sums, not by updating its last value, histories with
        the same counts have the same omega to the last bit, and the same future.
        """
        xp = array_namespace(x0)
        none = xp.zeros((x0.shape[0], n_clients), dtype=x0.dtype, device=x0.device)
        return {"x": x0, "omega": none + 1, "intervals": none, "ended": none, "lasted": none}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x = state["x"]
        xp = array_namespace(x)
        weights = state["omega"] * xp.astype(who, x.dtype) / clients.n_clients
        update = clients.summed_local_sgd(
            x, who, weights, steps=self.local_steps, lr=self.client_lr
        )
        return {"x": x + self.server_lr * update, **self.counted(state, who)}

    def counted(self, counts: State, who: Array) -> State:
        """Return omega and the counts behind it after one more round, with ``who`` present."""
        xp = array_namespace(counts["omega"])
        lasted = counts["lasted"] + 1
        ends = who | (lasted == self.cutoff)
        intervals, ended = counts["intervals"] + 1, counts["ended"] + lasted
        return {
            "omega": xp.where(ends, ended / intervals, counts["omega"]),
            "intervals": xp.where(ends, intervals, counts["intervals"]),
            "ended": xp.where(ends, ended, counts["ended"]),
            "lasted": xp.where(ends, xp.zeros_like(lasted), lasted),
        }

    def weights_if_present(self, counts: State, n_clients: int) -> Array:
        """Return the weight of an update in the round after these counts."""
        return self.server_lr * counts["omega"] / n_clients
