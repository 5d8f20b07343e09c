"""Clients that are there independently of one another: who, which pairs, and how many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fltheory.participation.base import Masks
from fltheory.participation.inclusions import check_paired
from fltheory.participation.like_clients import LikeClients
from fltheory.participation.subsets import between
from fltheory.validation import FloatArray


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
