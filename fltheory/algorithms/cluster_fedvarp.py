"""ClusterFedVARP: FedVARP with one memory per cluster of clients (Jhunjhunwala et al., 2022)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass

import numpy as np
from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Array, Clients, State
from fltheory.algorithms.shared.averaging import anybody, blank, participant_average, weighted_sum
from fltheory.algorithms.shared.client_constants import check_one_each, held_on_backend
from fltheory.algorithms.shared.step_sizes import checked_steps


@dataclass(frozen=True)
class ClusterFedVarp(Algorithm):
    """The participants' mean deviation from their clusters' memories, plus the mean memory.

    Follows the pseudo-code in the form used by a later implementation. Let ``Delta_i = (w -
    w_tau^i) / (eta_c tau)`` for i in S, and let c_i be the cluster of i. Then ``v = 1/|S| sum_{i in
    S} (Delta_i - y_{c_i}) + 1/N sum_c |c| y_c``, ``w <- w - server_lr eta_c tau v``, and y_c
    becomes the mean Delta of the members of S in c, if there are any; ``y = 0`` at first. With one
    client per cluster, it is `FedVarp`.

    - Empty round (the paper has none): nothing changes.
    - First appearance: the memory is that of the cluster, 0 if none of its clients has appeared.
    - Return after any absence: the deviation is measured from the memory left by the cluster's
      latest participants.
    - A cluster with no client that has appeared contributes nothing, but its clients count in N.

    Parameters
    ----------
    clusters : tuple of int, (N,)
        c_i, the cluster of each client: 0, ..., C - 1, none of them empty.
    client_lr : float
        eta_c, the step size of local SGD.
    local_steps : int
        tau, the local SGD steps in a round.
    server_lr : float
        eta_s.

    Raises
    ------
    ValueError
        If the values of ``clusters`` are not the integers 0, ..., C - 1, a step size is not
        positive or ``local_steps`` is below 1. `init` raises it if there is not one cluster for
        each client.

    Examples
    --------
    >>> ClusterFedVarp((0, 0, 1), client_lr=0.1, local_steps=5)
    ClusterFedVarp(clusters=(0, 0, 1), client_lr=0.1, local_steps=5, server_lr=1.0)
    """

    clusters: tuple[int, ...]
    client_lr: float
    local_steps: int
    _: KW_ONLY
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.clusters, Iterable):
            raise ValueError(
                f"clusters must be one whole number for each client, got {self.clusters!r}"
            )
        clusters = tuple(
            validation.whole_number(f"clusters[{client}]", cluster, at_least=0)
            for client, cluster in enumerate(self.clusters)
        )
        missing = set(range(max(clusters, default=0) + 1)) - set(clusters)
        if missing:
            raise ValueError(
                "clusters must be numbered from 0, each with at least one client, got none in "
                f"cluster {min(missing)}"
            )
        object.__setattr__(self, "clusters", clusters)
        checked_steps(self.client_lr, self.local_steps, self.server_lr)

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the model and each cluster's memory y, (replicas, C, dim)."""
        check_one_each("clusters", self.clusters, n_clients)
        return {"x": x0, "y": blank(x0, max(self.clusters) + 1, x0.shape[1])}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        x, y = state["x"], state["y"]
        xp = array_namespace(x)
        reach = self.client_lr * self.local_steps
        changes = clients.local_sgd(x, who, steps=self.local_steps, lr=self.client_lr)
        fresh = changes / -reach
        labels = held_on_backend(np.array(self.clusters, dtype=np.int64), x, xp.int64)
        own = xp.take(y, labels, axis=1)
        surprise = weighted_sum(participant_average(who, x), fresh - own)
        step = surprise + anybody(who, x) * xp.mean(own, axis=1)
        return {"x": x - self.server_lr * reach * step, "y": self._renewed(y, fresh, who)}

    def _renewed(self, y: Array, fresh: Array, who: Array) -> Array:
        """Return each cluster's mean update if one of its clients is present, else its memory."""
        xp = array_namespace(y)
        labels = np.array(self.clusters)
        members = labels == np.arange(y.shape[1])[:, None]
        belongs = held_on_backend(members, y, y.dtype)
        present = xp.astype(who, y.dtype)[:, None, :] * belongs
        count = xp.sum(present, axis=2, keepdims=True)
        means = xp.matmul(present, fresh) / xp.where(count > 0, count, xp.ones_like(count))
        return xp.where(count > 0, means, y)
