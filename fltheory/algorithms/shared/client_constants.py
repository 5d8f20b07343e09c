"""Constants per client that algorithms take: checks, and conversion to backend arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array, is_torch_array
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.algorithms.contract import Array
from fltheory.problems.base import checked_target_weights
from fltheory.validation import FloatArray


def checked_importance(target_weights: ArrayLike) -> FloatArray:
    """Return alpha as a read-only array: one positive weight per client, summing to one."""
    given = validation.real_array("target_weights", target_weights, shape="(N,)")
    weights = checked_target_weights(given, given.size)
    assert weights is not None
    return weights


def checked_constants(name: str, values: ArrayLike, n_clients: int) -> FloatArray:
    """Return one finite number per client as a read-only array; a single number is used for all.

    Raises
    ------
    ValueError
        If the shape is different, or a number is not finite.
    """
    return validation.array_of(name, values, n_clients, for_all=True)


def checked_availability(name: str, values: ArrayLike, n_clients: int) -> FloatArray:
    """Return one probability in (0, 1] per client as a read-only array.

    Raises
    ------
    ValueError
        If the shape is different, or a number is outside (0, 1]. The message names the client.
    """
    return validation.availability(name, checked_constants(name, values, n_clients))


def checked_weights(name: str, weights: ArrayLike) -> tuple[float, ...]:
    """Return client weights as a tuple; they need not sum to one.

    Raises
    ------
    ValueError
        If a weight is negative, all weights are zero, or the shape is not (N,).
    """
    array = validation.array_of(name, weights, "N")
    if array.min() < 0 or array.max() == 0:
        raise ValueError(
            f"{name} must not be negative and not all zero, got {tuple(array.tolist())}"
        )
    return tuple(array.tolist())


def check_one_each(name: str, values: Sequence[Any] | FloatArray | None, n_clients: int) -> None:
    """Raise ValueError unless ``values`` is None or has one entry per client."""
    if values is not None and len(values) != n_clients:
        raise ValueError(
            f"{name} must have one entry for each of {n_clients} clients, got {len(values)} of them"
        )


def on_backend(constants: FloatArray, like: Array) -> Array:
    """Return (N,) constants as an array (1, N) of the backend, dtype and device of ``like``."""
    return held_on_backend(constants[None], like, like.dtype)


def held_on_backend(array: NDArray[Any], like: Array, dtype: Any) -> Array:
    """Return an array on the backend and device of ``like``, as a copy that must not be changed.

    The copy is cached, so that later rounds on a GPU copy nothing from the host.
    """
    if is_numpy_array(like):
        return array.astype(dtype)
    if not is_torch_array(like):
        return array_namespace(like).asarray(array, dtype=dtype)
    where = array_namespace(like), dtype, device(like)
    return _brought(array.tobytes(), array.shape, array.dtype.str, *where)


@lru_cache
def _brought(
    content: bytes, shape: tuple[int, ...], kind: str, xp: Any, dtype: Any, where: Any
) -> Array:
    # A copy, because torch warns when it wraps read-only memory.
    array = np.frombuffer(content, dtype=kind).reshape(shape).copy()
    return xp.asarray(array, dtype=dtype, device=where)
