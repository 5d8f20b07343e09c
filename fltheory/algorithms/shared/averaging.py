"""Averages over the clients that take part in a round."""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from fltheory.algorithms.contract import Array
from fltheory.algorithms.shared.client_constants import on_backend


def participant_average(
    who: Array, like: Array, client_weights: tuple[float, ...] | None = None
) -> Array:
    """Return weights ``1/|S|`` for those present and zero for the others.

    With weights n of the clients, ``n_k / sum_{j in S} n_j``. ``who`` is (replicas, n_clients);
    the weights have the dtype of ``like``. A round in which nobody is present, or nobody who has
    a weight, gets zero weights, so that it changes nothing.
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
