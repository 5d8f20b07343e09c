"""At most so many of those available: the clients of FedAvg(S) where it does not wait."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fltheory.participation.base import Masks
from fltheory.participation.bernoulli import Bernoulli
from fltheory.participation.independent_clients import law_of_number, weighted_pairs
from fltheory.participation.subset_of_available import SubsetOfAvailable
from fltheory.participation.subsets import of_size
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False, init=False, repr=False)
class AtMost(SubsetOfAvailable):
    """Clients are available independently; of those, ``size`` drawn uniformly take part.

    Where fewer are available, all of them do. With `FedAvg` this is FedAR's baseline
    "FedAvg (S=50)", read as not waiting for anybody.

    Parameters
    ----------
    availability : array, (N,)
        Probabilities in (0, 1].
    size : int
        S, from 1 to N.

    Raises
    ------
    ValueError
        For other values.

    Examples
    --------
    >>> AtMost([0.5, 1.0], 1).marginals.tolist()
    [0.25, 0.75]
    """

    @property
    def independent(self) -> bool:
        """True: every round draws afresh."""
        return True

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) probability that a client takes part: ``p_i E min(1, S/(1 + others there))``."""
        others = np.where(np.eye(self.n_clients, dtype=bool), 0.0, self.availability)
        there = np.arange(1, self.n_clients + 2)
        drawn = np.minimum(1.0, self.size / there)
        return np.asarray(self.availability * (law_of_number(others) @ drawn))

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that two clients take part together; time grows with N^4."""
        return self.weighted_inclusions(np.ones(self.n_clients + 1))

    def weighted_inclusions(self, weight: FloatArray) -> FloatArray:
        """Return ``E[1{i and j take part} weight[|S|]]``, (N, N), for ``weight`` (N + 1,)."""
        there = np.arange(self.n_clients + 1)
        drawn = np.minimum(there, self.size)
        of_ones = weight[drawn] * drawn / np.maximum(there, 1)
        of_pairs = of_ones * (drawn - 1) / np.maximum(there - 1, 1)
        return weighted_pairs(self.availability, of_pairs, of_ones)

    @property
    def fixed_size(self) -> int | None:
        """S if as many clients are always available, else None."""
        return self.size if self._certain >= self.size else None

    @property
    def _certain(self) -> int:
        return int((self.availability == 1).sum())

    @property
    def n_outcomes(self) -> int:
        """How many participant sets have positive probability."""
        certain = self._certain
        smaller = sum(
            math.comb(self.n_clients - certain, k - certain) for k in range(certain, self.size)
        )
        return smaller + math.comb(self.n_clients, self.size)

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Every participant set of positive probability."""
        p = self.availability
        everybody = np.ones(self.n_clients, dtype=bool)
        for size in range(self.size):
            for mask in of_size(size, everybody):
                chance = float(np.where(mask, p, 1 - p).prod())
                if chance > 0:
                    yield chance, mask
        for mask in of_size(self.size, everybody):
            others = law_of_number(np.where(mask, 0.0, p)[None])[0]
            drawn = [1 / math.comb(self.size + more, self.size) for more in range(others.size)]
            yield float(p[mask].prod() * (others @ drawn)), mask

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Draw round after round for ``replicas`` independent runs."""
        for available in Bernoulli(self.availability).masks(rng, replicas):
            keys = np.where(available, rng.random(available.shape), np.inf)
            last = np.partition(keys, self.size - 1, axis=1)[:, self.size - 1 : self.size]
            yield available & (keys <= last)
