"""At most so many of those available: the clients of FedAvg(S) where it does not wait."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from fltheory.decimals import as_fraction
from fltheory.participation.base import Masks
from fltheory.participation.exact_law import ExactLaw, independent_law
from fltheory.participation.inclusions.correlations import Inclusions, of_available
from fltheory.participation.inclusions.independent_clients import law_of_number, weighted_pairs
from fltheory.participation.inclusions.like_clients import LikeClients
from fltheory.participation.inclusions.subsets import of_size
from fltheory.participation.independent_rounds.bernoulli import Bernoulli
from fltheory.participation.independent_rounds.subset_of_available import SubsetOfAvailable
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
        like = LikeClients.of(self.availability)
        drawn = np.minimum(1.0, self.size / np.arange(1, self.n_clients + 1))
        return np.asarray(self.availability * like.without_one(drawn)[like.group])

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that two clients take part together."""
        return self.weighted_inclusions(np.ones(self.n_clients + 1))

    def inclusions(self, weight: FloatArray) -> Inclusions:
        """Return the moments of ``1{i takes part} weight[|S|]``, for ``weight`` (N + 1,)."""
        return of_available(self.availability, weight, self.size)

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

    def exact_law(self) -> ExactLaw:
        """Return every participant set: fewer than S with whoever is there, S of a draw."""
        p = [as_fraction(chance) for chance in self.availability]
        everybody = np.ones(self.n_clients, dtype=bool)
        found = []
        for size in range(self.size + 1):
            for mask in of_size(size, everybody):
                there = [q for q, here in zip(p, mask, strict=True) if here]
                others = [q for q, here in zip(p, mask, strict=True) if not here]
                law = _number_there(others) if size == self.size else _number_there(others)[:1]
                drawn = [Fraction(1, math.comb(size + k, size)) for k in range(len(law))]
                chance = math.prod(there) * sum(map(operator.mul, law, drawn), Fraction(0))
                if chance > 0:
                    found.append((Fraction(chance), mask))
        return independent_law(found)

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Draw round after round for ``replicas`` independent runs."""
        for available in Bernoulli(self.availability).masks(rng, replicas):
            keys = np.where(available, rng.random(available.shape), np.inf)
            last = np.partition(keys, self.size - 1, axis=1)[:, self.size - 1 : self.size]
            yield available & (keys <= last)


def _number_there(chances: list[Fraction]) -> list[Fraction]:
    """Return the law of how many of some independent clients are there."""
    law = [Fraction(1)]
    for p in chances:
        law = [
            (1 - p) * stay + p * come
            for stay, come in zip([*law, Fraction(0)], [Fraction(0), *law], strict=True)
        ]
    return law
