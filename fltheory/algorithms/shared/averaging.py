"""Averages over a round's participants, and the memory that a server keeps for every client.

The memory is an array (replicas, n_clients, dim).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from fltheory.algorithms.contract import Array, Clients
from fltheory.algorithms.shared.client_constants import held_on_backend, on_backend


def participant_average(
    who: Array, like: Array, client_weights: tuple[float, ...] | None = None
) -> Array:
    """Return weights ``1/|S|`` for those present and zero for the others.

    With client weights n, return ``n_k / sum_{j in S} n_j``. ``who`` is (replicas, n_clients); the
    weights have the dtype of ``like``. If no client with positive weight is present, all weights
    are zero, so that the round changes nothing.
    """
    xp = array_namespace(like)
    present = xp.astype(who, like.dtype)
    if client_weights is not None:
        present = present * on_backend(np.array(client_weights), like)
    count = xp.sum(present, axis=1, keepdims=True)
    return present / xp.where(count > 0, count, xp.ones_like(count))


def weighted_sum(weights: Array, vectors: Array) -> Array:
    """Return ``sum_i weights_i vectors_i``, (replicas, dim), from (replicas, N) and (..., dim)."""
    return array_namespace(vectors).matmul(weights[:, None, :], vectors)[:, 0]


def blank(x0: Array, *shape: int) -> Array:
    """Return zeros (replicas, *shape) for models ``x0`` of (replicas, dim)."""
    xp = array_namespace(x0)
    return xp.zeros((x0.shape[0], *shape), dtype=x0.dtype, device=device(x0))


def renewed(memory: Array, fresh: Array, who: Array) -> Array:
    """Return ``fresh`` for those present and ``memory`` for the others.

    ``who`` is (replicas, n_clients).
    """
    return array_namespace(memory).where(who[:, :, None], fresh, memory)


def anybody(who: Array, like: Array) -> Array:
    """Return 1 if somebody is present, else 0, shape (replicas, 1) and the dtype of ``like``."""
    xp = array_namespace(like)
    return xp.astype(xp.any(who, axis=1, keepdims=True), like.dtype)


def after_own_steps(
    models: Array, clients: Clients, who: Array, *, steps: int, lr: Any, correction: Any = None
) -> Array:
    """Return the clients' models, (replicas, n_clients, dim), after local SGD from their own.

    A client that is absent keeps its model.
    """
    return models + own_changes(models, clients, who, steps=steps, lr=lr, correction=correction)


def own_changes(
    models: Array, clients: Clients, who: Array, *, steps: int, lr: Any, correction: Any = None
) -> Array:
    """Return the changes of the clients' models under local SGD from their own models.

    Backends run local SGD from one model per replica, so each client is run separately.
    """
    xp = array_namespace(models)
    numbers = held_on_backend(np.arange(who.shape[1]), models, xp.int64)
    changes = xp.zeros_like(models)
    for k in range(who.shape[1]):
        changes = changes + clients.local_sgd(
            models[:, k, :], who & (numbers == k), steps=steps, lr=lr, correction=correction
        )
    return changes
