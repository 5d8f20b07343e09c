"""AdaFed as in CA-Fed's comparison: inverse availability weights, normalised over participants."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from fltheory.algorithms.contract import Array, Moves
from fltheory.algorithms.shared.inverse_availability import InverseAvailability
from fltheory.participation.inclusions.independent_clients import mean_shares
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False, init=False)
class AdaFed(InverseAvailability):
    """Federated averaging with weights target over availability, normalised over participants.

    ``x <- x + server_lr sum_{k in S} w_k (y_E^k - x)`` with ``w_k = (alpha_k / pi_k) / sum_{h in S}
    alpha_h / pi_h``. Follows AdaFed in CA-Fed's published code, the only version available to us
    (we had no copy of Tan et al., 2022). That code omits Tan et al.'s selection among the clients
    present, so here all of them train. Dividing by a random sum makes the algorithm biased.

    Parameters
    ----------
    target_weights : array, (N,)
        alpha, positive with sum 1.
    availability : array, (N,), or float
        pi, the stationary probability that a client is present, in (0, 1].
    client_lr : float
        eta, the step size of local SGD.
    local_steps : int
        E, the local SGD steps in a round.
    server_lr : float
        eta_s, the factor on the weighted update.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the arrays do not fit together.

    Examples
    --------
    Two of three clients are present; the rarer one counts three times as much:

    >>> import numpy as np
    >>> adafed = AdaFed([0.4, 0.4, 0.2], [0.9, 0.3, 0.5], client_lr=0.1, local_steps=5)
    >>> ratios = np.array([[True, True, False]]) * adafed.target_weights / adafed.availability
    >>> (ratios / ratios.sum()).round(6).tolist()
    [[0.25, 0.75, 0.0]]
    """

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight by the mean share of alpha/pi among those present."""
        shares = mean_shares(chains.availability, self.target_weights / self.availability)
        return shares * moves(self.local_steps, self.client_lr)

    def _weights(self, ratios: Array) -> Array:
        xp = array_namespace(ratios)
        total = xp.sum(ratios, axis=1, keepdims=True)
        return ratios / xp.where(total > 0, total, xp.ones_like(total))
