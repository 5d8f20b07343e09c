"""How many of some independent clients are there."""

from __future__ import annotations

import numpy as np

from fltheory.validation import FloatArray


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
    """Return ``E[1{i and j there} of_pairs[how many]]``, (N, N); time grows with N^4.

    Both weights are (N + 1,); the diagonal holds ``E[1{i there} of_ones[how many]]``.
    """
    n_clients = availability.size
    others = np.where(np.eye(n_clients, dtype=bool), 0.0, availability)
    together = np.outer(availability, availability)
    for client in range(n_clients):
        without = others.copy()
        without[:, client] = 0.0
        together[client] *= law_of_number(without)[:, :-2] @ of_pairs[2:]
    np.fill_diagonal(together, availability * (law_of_number(others)[:, :-1] @ of_ones[1:]))
    return together
