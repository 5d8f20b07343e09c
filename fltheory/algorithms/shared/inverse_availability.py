"""Shared code of algorithms that weight a client by its importance over its availability."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from fltheory.algorithms.contract import Algorithm, Array, Clients, State
from fltheory.algorithms.shared.client_constants import (
    check_one_each,
    checked_availability,
    checked_importance,
    on_backend,
)
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class InverseAvailability(ReadOnlyArrays, Algorithm):
    """Base of ``x <- x + server_lr sum_{k in S} w_k (y_E^k - x)`` with w from ``alpha_k / pi_k``.

    A round in which nobody is present changes nothing.
    The parameters are those of `Unbiased`.
    """

    target_weights: FloatArray
    availability: FloatArray
    client_lr: float
    local_steps: int
    server_lr: float

    def __init__(
        self,
        target_weights: ArrayLike,
        availability: ArrayLike,
        client_lr: float,
        local_steps: int,
        *,
        server_lr: float = 1.0,
    ) -> None:
        alpha = checked_importance(target_weights)
        fields = {
            "target_weights": alpha,
            "availability": checked_availability("availability", availability, alpha.size),
            **checked_steps(client_lr, local_steps, server_lr),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the initial state: the server's model alone."""
        check_one_each("target_weights", self.target_weights, n_clients)
        return {"x": x0}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x = state["x"]
        ratios = on_backend(self.target_weights / self.availability, x)
        weights = self._weights(array_namespace(x).astype(who, x.dtype) * ratios)
        update = clients.summed_local_sgd(
            x, who, weights, steps=self.local_steps, lr=self.client_lr
        )
        return {"x": x + self.server_lr * update}

    @abstractmethod
    def _weights(self, ratios: Array) -> Array:
        """Return w, given alpha/pi for those present and zero for the others."""
