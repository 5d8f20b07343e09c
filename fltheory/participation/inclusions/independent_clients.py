"""Clients that are present independently of one another: sets, pairs, and mean shares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.decimals import complement
from fltheory.participation.base import Masks, between
from fltheory.participation.inclusions.correlations import Inclusions, check_paired, of_available
from fltheory.participation.inclusions.like_clients import LikeClients
from fltheory.participation.process import ClientChains, Process
from fltheory.validation import ClientIndices, FloatArray


class IndependentClients(Process):
    """Base of processes in which clients are present independently of each other.

    Attributes
    ----------
    availability : array, (N,)
        The probability that a client is present, in the long run.
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
        """The chains of single clients, whose rounds are independent."""
        p, away = self.availability, complement(self.availability)
        return ClientChains(p, p, p, 0 * p, away, away, away)

    @property
    def _varies(self) -> ClientIndices:
        return np.flatnonzero((self.availability > 0) & (self.availability < 1))

    @property
    def fixed_size(self) -> int | None:
        """The number of participants if no client ever changes, otherwise None."""
        return None if self._varies.size else int(np.count_nonzero(self.availability))

    @property
    def n_outcomes(self) -> int:
        """Number of sets with positive probability: 2 to the number of clients that vary."""
        return 2 ** int(self._varies.size)

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Yield every set of positive long-run probability."""
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
    away = complement(p)
    for mask in between(availability == 1, varying):
        chance = np.where(mask[varying], p, away).prod()
        yield chance if p.dtype == object else float(chance), mask


def chances_of_sets(chances: Sequence[Fraction]) -> list[tuple[int, Fraction]]:
    """Return every possible set with its probability; a set is given by its index in `between`.

    Clients are present independently, each with its own probability.
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
    """Return the probabilities (N, N) that two clients are present together."""
    together = np.outer(availability, availability)
    np.fill_diagonal(together, availability)
    return together


def weighted_pairs(
    availability: FloatArray, of_pairs: FloatArray, of_ones: FloatArray
) -> FloatArray:
    """Return ``E[1{i and j present} of_pairs[|S|]]``, (N, N).

    Both weights are (N + 1,); the diagonal holds ``E[1{i present} of_ones[|S|]]``. The time grows
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


# Gauss's rule is exact up to degree 47. Beyond the last panel, only exp(-60) = 9e-27 of the
# integrand remains.
_NODES = 24
_FIRST_PANEL = 2.0**-6
_NOTHING_LEFT = 60.0


def mean_shares(availability: ArrayLike, weights: ArrayLike = 1.0) -> FloatArray:
    """Return ``E[w_k 1{k in S} / sum_{h in S} w_h]``, (N,), for clients present independently.

    Because ``1/x`` is the integral of ``exp(-t x)``, the share is an integral over t of a product
    with one positive factor per client. The time is proportional to N. The shares sum to the
    probability that anybody is present.

    Parameters
    ----------
    availability : array, (N,)
        Probabilities, in [0, 1].
    weights : array, (N,), or float
        Positive.

    Examples
    --------
    >>> mean_shares([1.0, 0.5]).round(12).tolist()
    [0.75, 0.25]
    >>> mean_shares([1.0, 0.5], [1.0, 2.0]).round(12).tolist()
    [0.666666666667, 0.333333333333]
    """
    pi = validation.real_array("availability", availability, shape="(N,)")
    if pi.ndim != 1 or ((pi < 0) | (pi > 1)).any():
        raise ValueError(f"availability must be probabilities of shape (N,), got {pi!r}")
    w = validation.array_of("weights", weights, pi.size, for_all=True)
    if (w <= 0).any():
        raise ValueError(f"weights must be above 0, got {w.min():g}")
    shares = np.zeros(pi.size)
    there = np.flatnonzero(pi)
    if there.size:
        shares[there] = _shares(pi[there], w[there])
    return shares


def _shares(pi: FloatArray, w: FloatArray) -> FloatArray:
    # After the first panels the integrand falls like exp(-t sum w pi); if all clients may be
    # absent, its tail falls like exp(-t min w). Panels of doubling width follow both.
    nodes, node_weights = np.polynomial.legendre.leggauss(_NODES)
    first, last = _FIRST_PANEL / float(w @ pi), _NOTHING_LEFT / float(w.min())
    panels = max(1, math.ceil(math.log2(last / first)))
    edges = np.concatenate([[0.0], first * 2.0 ** np.arange(panels + 1)])
    total = np.zeros(pi.size)
    for low, high in pairwise(edges):
        t = low + (high - low) / 2 * (nodes + 1)
        decay = np.exp(-np.outer(t, w))
        with np.errstate(divide="ignore"):
            # 1 - pi (1 - exp(-w t)) may be 0 in floats where a client is always present.
            logs = np.where(pi == 1, -np.outer(t, w), np.log1p(pi * np.expm1(-np.outer(t, w))))
        # The product of all factors except the client's own.
        others = np.exp(logs.sum(axis=1, keepdims=True) - logs)
        total += (high - low) / 2 * (node_weights @ (decay * others))
    return np.asarray(w * pi * total)
