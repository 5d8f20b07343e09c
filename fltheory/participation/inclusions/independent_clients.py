"""Clients that are there independently of one another: who, which pairs, and how many."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from fltheory.participation.base import Masks
from fltheory.participation.inclusions.correlations import Inclusions, check_paired, of_available
from fltheory.participation.inclusions.like_clients import LikeClients
from fltheory.participation.inclusions.subsets import between
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


class IndependentClients(ReadOnlyArrays):
    """What is alike of processes whose clients come and go independently of one another.

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

    @property
    def begins(self) -> FloatArray:
        """(N,) probability that a client is there in the first round."""
        return self.availability

    @property
    def stays(self) -> FloatArray:
        """(N,) probability that a client that is there is so in the next round."""
        return self.availability

    @property
    def comes(self) -> FloatArray:
        """(N,) probability that a client that is not there is so in the next round."""
        return self.availability

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that two clients take part together."""
        check_paired(self.n_clients)
        return pairs_present(self.availability)

    def inclusions(self, weight: FloatArray) -> Inclusions:
        """Return the moments of ``1{i takes part} weight[|S|]``, for ``weight`` (N + 1,)."""
        return of_available(self.availability, weight)

    def weighted_inclusions(self, weight: FloatArray) -> FloatArray:
        """Return ``E[1{i and j take part} weight[|S|]]``, (N, N), for ``weight`` (N + 1,)."""
        return weighted_pairs(self.availability, weight, weight)


def sets_present(availability: FloatArray) -> Iterator[tuple[float, Masks]]:
    """Yield every set of positive probability, for ``availability`` (N,), with its probability."""
    varying = (availability > 0) & (availability < 1)
    p = availability[varying]
    for mask in between(availability == 1, varying):
        chance = np.where(mask[varying], p, 1 - p).prod()
        yield chance if p.dtype == object else float(chance), mask


def pairs_present(availability: FloatArray) -> FloatArray:
    """Return the chances (N, N) that two clients are there together."""
    together = np.outer(availability, availability)
    np.fill_diagonal(together, availability)
    return together


def law_of_number(availability: FloatArray) -> FloatArray:
    """Return the law of how many clients are there, (rows, N + 1), for each row (rows, N)."""
    rows, n_clients = availability.shape
    law = np.zeros((rows, n_clients + 1))
    law[:, 0] = 1.0
    for p in availability.T[:, :, None]:
        law[:, 1:] = (1 - p) * law[:, 1:] + p * law[:, :-1]
        law[:, :1] *= 1 - p
    return law


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
