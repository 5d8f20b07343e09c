"""Clients that are there independently of one another: who, which pairs, and how many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from fltheory.participation.base import Masks
from fltheory.participation.inclusions.correlations import Inclusions, check_paired, of_available
from fltheory.participation.inclusions.like_clients import LikeClients
from fltheory.participation.inclusions.subsets import between
from fltheory.participation.process import ClientChains, Process
from fltheory.validation import ClientIndices, FloatArray


class IndependentClients(Process):
    """What is alike of processes in whose every round clients are there independently.

    Attributes
    ----------
    availability : array, (N,)
        The probability that a client is there, in the long run.
    """

    availability: FloatArray

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.availability.size)

    @property
    def marginals(self) -> FloatArray:
        """(N,) probability that a client takes part."""
        return self.availability

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that two clients take part together."""
        check_paired(self.n_clients)
        return pairs_present(self.availability)

    @property
    def client_chains(self) -> ClientChains:
        """The chains of single clients: they do not depend on the past."""
        p = self.availability
        return ClientChains(p, p, p, 0 * p)

    @property
    def _varies(self) -> ClientIndices:
        return np.flatnonzero((self.availability > 0) & (self.availability < 1))

    @property
    def fixed_size(self) -> int | None:
        """The number of participants if no client ever changes, else None."""
        return None if self._varies.size else int(np.count_nonzero(self.availability))

    @property
    def n_outcomes(self) -> int:
        """How many sets have positive probability: 2 to the clients that vary."""
        return 2 ** int(self._varies.size)

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Every set of positive probability, in the long run."""
        yield from sets_present(self.availability)

    def inclusions(self, weight: FloatArray) -> Inclusions:
        """Return the moments of ``1{i takes part} weight[|S|]``, for ``weight`` (N + 1,)."""
        return of_available(self.availability, weight)

    def weighted_inclusions(self, weight: FloatArray) -> FloatArray:
        """Return ``E[1{i and j take part} weight[|S|]]``, (N, N), for ``weight`` (N + 1,)."""
        return weighted_pairs(self.availability, weight, weight)

    def _numbers(self) -> Mapping[str, Any]:
        return {"availability": self.availability}


def sets_present(availability: FloatArray) -> Iterator[tuple[float, Masks]]:
    """Yield every set of positive probability, for ``availability`` (N,), with its probability."""
    varying = (availability > 0) & (availability < 1)
    p = availability[varying]
    for mask in between(availability == 1, varying):
        chance = np.where(mask[varying], p, 1 - p).prod()
        yield chance if p.dtype == object else float(chance), mask


def chances_of_sets(chances: Sequence[Fraction]) -> list[tuple[int, Fraction]]:
    """Return every set that is possible, by its number in the order of `between`, and how probable.

    For clients who are there independently, each with its chance.
    """
    found = [(0, Fraction(1))]
    for p in chances:
        found = [
            (2 * number + there, chance * q)
            for number, chance in found
            for there, q in enumerate((1 - p, p))
            if q > 0
        ]
    return found


def pairs_present(availability: FloatArray) -> FloatArray:
    """Return the chances (N, N) that two clients are there together."""
    together = np.outer(availability, availability)
    np.fill_diagonal(together, availability)
    return together


def weighted_pairs(
    availability: FloatArray, of_pairs: FloatArray, of_ones: FloatArray
) -> FloatArray:
    """Return ``E[1{i and j there} of_pairs[how many]]``, (N, N).

    Both weights are (N + 1,); the diagonal holds ``E[1{i there} of_ones[how many]]``. Time grows
    with the square of the number of distinct availabilities, and with N for each pair of them.
    """
    n_clients = availability.size
    check_paired(n_clients)
    like = LikeClients.of(availability)
    pairs = like.without_two(of_pairs[2 : n_clients + 1])[np.ix_(like.group, like.group)]
    together = np.outer(availability, availability) * pairs
    ones = like.without_one(of_ones[1 : n_clients + 1])[like.group]
    np.fill_diagonal(together, availability * ones)
    return together
