"""What a server keeps of every client: an array (replicas, n_clients, dim)."""

from __future__ import annotations

from array_api_compat import array_namespace, device

from fltheory.algorithms.contract import Array


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
    """Return 1 where somebody is present, else 0: (replicas, 1), of the dtype of ``like``."""
    xp = array_namespace(like)
    return xp.astype(xp.any(who, axis=1, keepdims=True), like.dtype)
