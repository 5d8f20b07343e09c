"""Clients that keep models of their own between rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from fltheory.algorithms.contract import Array, Clients
from fltheory.algorithms.shared.client_constants import held_on_backend


def after_own_steps(
    models: Array, clients: Clients, who: Array, *, steps: int, lr: Any, correction: Any = None
) -> Array:
    """Return the clients' models after local SGD from their own, (replicas, n_clients, dim).

    Backends run local SGD from one model per replica, so each client is asked for alone; a
    client that is absent keeps its model.
    """
    xp = array_namespace(models)
    numbers = held_on_backend(np.arange(who.shape[1]), models, xp.int64)
    moved = models
    for k in range(who.shape[1]):
        moved = moved + clients.local_sgd(
            models[:, k, :], who & (numbers == k), steps=steps, lr=lr, correction=correction
        )
    return moved
