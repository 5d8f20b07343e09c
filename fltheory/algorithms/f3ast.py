"""F3AST: the present clients whose updates matter most, weighted by how often they are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, State
from fltheory.algorithms.shared.client_constants import (
    check_one_each,
    checked_availability,
    checked_importance,
    on_backend,
)
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class F3ast(ReadOnlyArrays, Algorithm):
    """At most ``size`` present clients per round, by greedy descent on ``sum_k alpha_k^2 / r_k``.

    ``r_k`` estimates how often client k is chosen. A round chooses the ``size`` present clients of
    largest ``alpha_k^2 / r_k^2`` (all of them if fewer are present; among equals, the one with the
    lower index), sets ``r_k <- (1 - beta) r_k + beta 1{k chosen}``, and moves ``x <- x + server_lr
    sum_{k chosen} (alpha_k / r_k) (y_K^k - x)`` with the new r. A round in which nobody is present
    leaves x unchanged, and every r_k decays.

    Follows the published code of Ribero, Vikalo and de Veciana (2022); it differs in that the
    update is not divided by ``size``, a factor that ``server_lr`` can absorb. With ``availability``
    it follows CA-Fed's published code instead, which learns nothing: in every round, ``r_k = (1 -
    beta) pi_k + beta 1{k present}``, and clients are chosen by this r. That form is biased if more
    than ``size`` clients may be present, because clients are then chosen less often than they are
    present.

    Parameters
    ----------
    target_weights : array, (N,)
        alpha (p of Ribero et al.), positive with sum 1; also the initial r, if r is learned.
    size : int
        m, how many clients may train in a round, from 1 to N.
    client_lr : float
        eta, the step size of local SGD.
    local_steps : int
        E, the local SGD steps in a round.
    server_lr : float
        eta_s, the factor on the weighted update.
    smoothing : float
        beta, in [0, 1]; 0.01 is the default of Ribero et al.
    availability : array, (N,), or float, optional
        pi, in (0, 1], from an oracle, for CA-Fed's form. By default, r is learned.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the arrays do not fit together.

    Examples
    --------
    >>> F3ast([0.5, 0.25, 0.25], size=2, client_lr=0.1, local_steps=5).size
    2
    """

    target_weights: FloatArray
    size: int
    client_lr: float
    local_steps: int
    server_lr: float
    smoothing: float
    availability: FloatArray | None

    def __init__(
        self,
        target_weights: ArrayLike,
        size: int,
        client_lr: float,
        local_steps: int,
        *,
        server_lr: float = 1.0,
        smoothing: float = 0.01,
        availability: ArrayLike | None = None,
    ) -> None:
        alpha = checked_importance(target_weights)
        size = validation.whole_number("size", size, at_least=1)
        if size > alpha.size:
            raise ValueError(f"size must be at most the {alpha.size} clients, got {size}")
        known = None
        if availability is not None:
            known = checked_availability("availability", availability, alpha.size)
        fields = {
            "target_weights": alpha,
            "size": size,
            **checked_steps(client_lr, local_steps, server_lr),
            "smoothing": validation.probability("smoothing", smoothing),
            "availability": known,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Bound the weights, which are divided by the rates, with the smallest possible rates."""
        known = self.availability
        before = self.target_weights * (1.0 - self.smoothing) ** (round_index - 1)
        rate = self._smoothed(before if known is None else known, np.ones(n_clients))
        largest = self.server_lr * self.target_weights / rate
        total = float(np.sort(largest)[-self.size :].sum())
        return {CLIENTS: UpdateBounds(self.local_steps, self.client_lr, largest, total)}

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the initial state: the model, and ``"rate"``, r, if it is learned."""
        check_one_each("target_weights", self.target_weights, n_clients)
        if self.availability is not None:
            return {"x": x0}
        xp = array_namespace(x0)
        ones = xp.ones_like(x0[:, :1])
        return {"x": x0, "rate": ones * on_backend(self.target_weights, x0)}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants among ``who``."""
        x = state["x"]
        xp = array_namespace(x)
        alpha = on_backend(self.target_weights, x)
        if self.availability is None:
            chosen = self._chosen(alpha / state["rate"], who)
            rate = self._smoothed(state["rate"], xp.astype(chosen, x.dtype))
            memory = {"rate": rate}
        else:
            rate = self._smoothed(on_backend(self.availability, x), xp.astype(who, x.dtype))
            chosen = self._chosen(alpha / rate, who)
            memory = {}
        raw = xp.where(chosen, alpha / rate, xp.zeros_like(rate))
        update = clients.summed_local_sgd(x, chosen, raw, steps=self.local_steps, lr=self.client_lr)
        return {"x": x + self.server_lr * update, **memory}

    def _smoothed(self, rate: Array, indicator: Array) -> Array:
        return (1 - self.smoothing) * rate + self.smoothing * indicator

    def _chosen(self, urgency: Array, who: Array) -> Array:
        """Return a mask of the ``size`` present clients with the largest ``urgency``."""
        xp = array_namespace(urgency)
        if xp.all(xp.sum(xp.astype(who, xp.int64), axis=1) <= self.size):
            return who
        merit = xp.where(who, urgency, xp.zeros_like(urgency))
        order = xp.argsort(-merit, axis=1, stable=True)
        rank = xp.argsort(order, axis=1, stable=True)
        return who & (rank < self.size)
