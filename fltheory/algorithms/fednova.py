"""FedNova: updates divided by each client's number of steps (Wang et al., NeurIPS 2020)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Array, Clients, State
from fltheory.algorithms.shared.averaging import participant_average
from fltheory.algorithms.shared.client_constants import (
    check_one_each,
    checked_weights,
    on_backend,
)


@dataclass(frozen=True)
class FedNova(Algorithm):
    """Normalised averaging, unbiased although clients make different numbers of local steps.

    Client i makes tau_i steps of SGD, and ``d_i = (y_i - x) / tau_i``. Then ``x <- x + server_lr
    tau_eff sum_i p_i d_i`` with ``tau_eff = sum_i p_i tau_i``, where both sums run over those
    present, and p is normalised to sum to one over them. Follows Wang et al. with plain local SGD
    (the vector a_i consists of ones) and the paper's own choice of tau_eff. It differs in that the
    paper samples clients, whereas here all clients present take part. With equal numbers of steps,
    it is FedAvg weighted by ``client_weights``.

    - Nothing changes in an empty round, or if everybody present has weight 0.
    - First appearance, and return after any absence: nothing is remembered about a client.
    - Clients that never appeared contribute nothing, and count neither in p nor in tau_eff.

    Parameters
    ----------
    client_lr : float
        eta, the step size of local SGD.
    local_steps : int or tuple of int, (N,)
        tau_i, the local SGD steps of each client in a round; a single number is used for all
        clients.
    client_weights : tuple of float, (N,), optional
        p before it is normalised, such as the clients' numbers of samples: not negative, not all
        zero. Equal by default.
    server_lr : float
        Factor on the aggregated update.

    Raises
    ------
    ValueError
        If a weight is negative or all are zero, a step size is not positive or a number of steps is
        below 1. `init` raises it if the number of weights or of step counts differs from that of
        the clients.

    Examples
    --------
    >>> FedNova(client_lr=0.1, local_steps=(5, 20), client_weights=(30, 10))
    FedNova(client_lr=0.1, local_steps=(5, 20), client_weights=(30.0, 10.0), server_lr=1.0)
    """

    client_lr: float
    local_steps: int | tuple[int, ...]
    _: KW_ONLY
    client_weights: tuple[float, ...] | None = None
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        validation.positive("client_lr", self.client_lr)
        if isinstance(self.local_steps, tuple) and self.local_steps:
            for steps in self.local_steps:
                validation.whole_number("local_steps", steps, at_least=1)
        else:
            validation.whole_number("local_steps", self.local_steps, at_least=1)
        if self.client_weights is not None:
            weights = checked_weights("client_weights", self.client_weights)
            object.__setattr__(self, "client_weights", weights)
        validation.positive("server_lr", self.server_lr)

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the initial state: the server's model alone."""
        check_one_each("client_weights", self.client_weights, n_clients)
        if isinstance(self.local_steps, tuple):
            check_one_each("local_steps", self.local_steps, n_clients)
        return {"x": x0}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x = state["x"]
        xp = array_namespace(x)
        p = participant_average(who, x, self.client_weights)
        if not isinstance(self.local_steps, tuple):
            # With a single number of steps, tau_eff is that number, and the weights are p.
            update = clients.summed_local_sgd(x, who, p, steps=self.local_steps, lr=self.client_lr)
            return {"x": x + self.server_lr * update}
        tau = on_backend(np.array(self.local_steps), x)
        weights = xp.sum(p * tau, axis=1, keepdims=True) * p / tau
        update = xp.zeros_like(x)
        for steps in sorted(set(self.local_steps)):
            alike = who & (tau == steps)
            update = update + clients.summed_local_sgd(
                x, alike, weights, steps=steps, lr=self.client_lr
            )
        return {"x": x + self.server_lr * update}
