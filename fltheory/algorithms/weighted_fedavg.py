"""Federated averaging with weights that the server chooses: CA-Fed's equations (2) and (3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, Moves, State
from fltheory.algorithms.shared.client_constants import check_one_each, checked_weights, on_backend
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class WeightedFedAvg(Algorithm):
    """Federated averaging with a fixed weight for each client.

    ``x <- x + server_lr * sum_{k in A_t} q_k (y_K^k - x)`` after ``local_steps`` steps of local
    SGD. The weights are not renormalised over those present, so a round with few participants moves
    the model less, and an empty round does not move it. The paper projects the model onto a set W;
    this class does not.

    Parameters
    ----------
    aggregation_weights : tuple of float, (N,)
        q, not negative and not all zero.
    client_lr : float
        eta_t, the step size of local SGD.
    local_steps : int
        E, the local SGD steps in a round.
    server_lr : float
        eta_s, factor on the aggregated update.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, all weights are zero, a step size is not positive or
        ``local_steps`` is below 1. `init` raises it if there are not as many weights as clients.

    Examples
    --------
    >>> WeightedFedAvg((0.5, 1.5), client_lr=0.1, local_steps=5)
    WeightedFedAvg(aggregation_weights=(0.5, 1.5), client_lr=0.1, local_steps=5, server_lr=1.0)
    """

    aggregation_weights: tuple[float, ...]
    client_lr: float
    local_steps: int
    _: KW_ONLY
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        weights = checked_weights("aggregation_weights", self.aggregation_weights)
        object.__setattr__(self, "aggregation_weights", weights)
        checked_steps(self.client_lr, self.local_steps, self.server_lr)

    def importance(self, availability: ArrayLike) -> FloatArray:
        """Return p (N,), the weights of the objective that the rounds minimise on average.

        ``p_k = pi_k q_k / sum_h pi_h q_h``. With p as target weights, a problem's F is the paper's
        biased objective F_B, and its x* is w_B*.

        Parameters
        ----------
        availability : array, (N,)
            pi, the stationary probability that a client is present.

        Raises
        ------
        ValueError
            If it is not N probabilities, or no client with a positive weight is ever present.

        Notes
        -----
        CA-Fed, equation (4).
        """
        pi = validation.real_array("availability", availability, shape="(N,)")
        wanted = (len(self.aggregation_weights),)
        if pi.shape != wanted or pi.min() < 0 or pi.max() > 1:
            raise ValueError(f"availability must be probabilities of shape {wanted}, got {pi!r}")
        share = pi * self.aggregation_weights
        if share.sum() == 0:
            raise ValueError(
                "availability must be positive for a client with a positive weight, got "
                f"{pi.tolist()} for weights {self.aggregation_weights}"
            )
        return np.asarray(share / share.sum())

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight each client's change by its availability and its weight."""
        moved = moves(self.local_steps, self.client_lr)
        return chains.availability * np.array(self.aggregation_weights) * moved

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Return the given weights as bounds; absent clients have weight zero."""
        largest = self.server_lr * np.array(self.aggregation_weights)
        total = float(largest.sum())
        return {CLIENTS: UpdateBounds(self.local_steps, self.client_lr, largest, total)}

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the initial state: the server's model alone."""
        check_one_each("aggregation_weights", self.aggregation_weights, n_clients)
        return {"x": x0}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x = state["x"]
        xp = array_namespace(x)
        q = on_backend(np.array(self.aggregation_weights), x)
        weights = xp.astype(who, x.dtype) * q
        update = clients.summed_local_sgd(
            x, who, weights, steps=self.local_steps, lr=self.client_lr
        )
        return {"x": x + self.server_lr * update}
