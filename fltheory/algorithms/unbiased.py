"""Unbiased: participants are weighted inversely to their availability (CA-Fed's baseline)."""

from __future__ import annotations

from dataclasses import dataclass

from fltheory.algorithms.contract import Array, Moves
from fltheory.algorithms.shared.inverse_availability import InverseAvailability
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False, init=False)
class Unbiased(InverseAvailability):
    """Averaging by target over availability: ``x <- x + server_lr sum_{k in S} q_k (y_E^k - x)``.

    ``q_k = alpha_k / pi_k`` is not normalised; a round in which nobody is present changes nothing.

    Follows CA-Fed's equations (2) and (3) with the weights of guideline C for all clients; Section
    V-A calls this Unbiased. It differs in that W is the whole space, so nothing is projected.

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
    >>> Unbiased([0.5, 0.5], [0.9, 0.3], client_lr=0.1, local_steps=5).server_lr
    1.0
    """

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Weight the clients that ever appear by alpha, if the given availabilities are correct."""
        right = chains.availability / self.availability
        return self.target_weights * right * moves(self.local_steps, self.client_lr)

    def _weights(self, ratios: Array) -> Array:
        return ratios
