"""Sources of the clients' Gaussian noise: a generator, none, or a probe of one draw."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fltheory.validation import FloatArray

ReplicaIndices = NDArray[np.intp]


class NoiseSource(Protocol):
    """Independent standard normals, asked for in rows that belong to replicas."""

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return an array (rows, width); row t is used by replica ``replica_of_row[t]``.

        It may be overwritten by the next call.
        """
        ...


class GaussianNoise:
    """Draws from a generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._held = np.empty(0)

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return independent standard normals."""
        numbers = replica_of_row.size * width
        if self._held.size < numbers:
            self._held = np.empty(numbers)
        self._rng.standard_normal(out=self._held[:numbers])
        return self._held[:numbers].reshape(replica_of_row.size, width)


class Silence:
    """No noise."""

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return zeros."""
        return np.zeros((replica_of_row.size, width))
