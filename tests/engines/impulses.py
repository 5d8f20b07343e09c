"""Noise that shows how much of it is asked for, and what becomes of each number."""

from __future__ import annotations

import numpy as np

from fltheory.engines.clients.analytic_clients import ReplicaIndices
from fltheory.validation import FloatArray


class CountedSilence:
    """No noise; counts what each replica has asked for."""

    def __init__(self) -> None:
        self._asked = np.zeros(0, dtype=np.intp)

    @property
    def numbers_per_replica(self) -> int:
        """The most numbers that any replica has asked for, over all calls."""
        return int(self._asked.max(initial=0))

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return zeros."""
        asked = width * np.bincount(replica_of_row, minlength=self._asked.size)
        asked[: self._asked.size] += self._asked
        self._asked = asked
        return np.zeros((replica_of_row.size, width))


class UnitImpulses:
    """Replica r sees its ``place[r]``-th number as one and all others as zero.

    A map that is affine in its noise is thereby read off, one column per replica.
    """

    def __init__(self, place: ReplicaIndices) -> None:
        self._place = place
        self._numbers_before = np.zeros(place.size, dtype=np.intp)

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return zeros but for the chosen number of each replica."""
        places = self._place_of_row(replica_of_row, width)[:, None] + np.arange(width)
        return (places == self._place[replica_of_row][:, None]).astype(np.float64)

    def _place_of_row(self, replica_of_row: ReplicaIndices, width: int) -> ReplicaIndices:
        order = np.argsort(replica_of_row, kind="stable")
        counts = np.bincount(replica_of_row, minlength=self._place.size)
        firsts = np.cumsum(counts) - counts
        rank = np.empty(replica_of_row.size, dtype=np.intp)
        rank[order] = np.arange(replica_of_row.size) - np.repeat(firsts, counts)
        places = self._numbers_before[replica_of_row] + rank * width
        self._numbers_before += counts * width
        return np.asarray(places, dtype=np.intp)
