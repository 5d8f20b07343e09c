"""FedProx: local steps with a proximal term towards the server's model (Li et al., 2020)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Array, Clients, State
from fltheory.algorithms.shared.averaging import participant_average
from fltheory.algorithms.shared.client_constants import check_one_each, checked_weights
from fltheory.algorithms.shared.step_sizes import checked_steps


@dataclass(frozen=True)
class FedProx(Algorithm):
    """FedAvg whose clients take local steps on ``F_k(y) + mu/2 ||y - x||^2``.

    Follows Algorithm 2 of Li et al. (MLSys 2020). The inexact solver is ``local_steps`` steps of
    SGD, ``y <- y - eta (grad F_k(y) + mu (y - x))``, where x is the server's model in the round.
    The server takes the participants' mean, or one weighted by ``client_weights``. It differs in
    that the paper samples clients in proportion to their data, whereas here all clients present
    take part. If ``mu = 0``, it is FedAvg; with ``client_weights`` n_k it is the FedAvg of McMahan
    et al., with weights ``n_k / m_t``, where m_t is the sum of n over those present.

    - Nothing changes in an empty round, or if everybody present has weight 0.
    - First appearance, and return after any absence: nothing is remembered about a client.
    - Clients that never appeared contribute nothing and are not counted.

    Parameters
    ----------
    client_lr : float
        eta, the step size of local SGD.
    local_steps : int
        K, the local SGD steps in a round.
    proximal : float
        mu, the strength of the proximal term, at least 0.
    client_weights : tuple of float, (N,), optional
        n, such as the clients' numbers of samples: not negative, not all zero. Equal by default.
    server_lr : float
        Factor on the averaged update.

    Raises
    ------
    ValueError
        If a weight is negative or all are zero, ``proximal`` is negative, a step size is not
        positive or ``local_steps`` is below 1. `init` raises it if there are not as many weights as
        clients.

    Examples
    --------
    >>> FedProx(client_lr=0.1, local_steps=5, proximal=0.01)
    FedProx(client_lr=0.1, local_steps=5, proximal=0.01, client_weights=None, server_lr=1.0)
    """

    client_lr: float
    local_steps: int
    proximal: float
    _: KW_ONLY
    client_weights: tuple[float, ...] | None = None
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        checked_steps(self.client_lr, self.local_steps, self.server_lr)
        validation.nonnegative("proximal", self.proximal)
        if self.client_weights is not None:
            weights = checked_weights("client_weights", self.client_weights)
            object.__setattr__(self, "client_weights", weights)

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the initial state: the server's model alone."""
        check_one_each("client_weights", self.client_weights, n_clients)
        return {"x": x0}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x = state["x"]
        update = clients.summed_local_sgd(
            x,
            who,
            participant_average(who, x, self.client_weights),
            steps=self.local_steps,
            lr=self.client_lr,
            proximal=self.proximal,
        )
        return {"x": x + self.server_lr * update}
