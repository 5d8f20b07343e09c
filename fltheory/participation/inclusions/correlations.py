"""Correlations of participants, in storage that does not grow with the square of N.

Let ``phi_i = 1{i takes part} weight[|S|]``. If clients form groups within which they are
exchangeable, a group's sum ``tau_g`` and each client's deviation from its group's mean are
uncorrelated (swap two clients), so that

``Cov(phi_i, phi_j) = within_g (1{i=j} - 1/n_g) 1{same group} + totals_gh / (n_g n_h)``

with ``within_g = E phi_i (phi_i - phi_j)`` for two clients of the group. Both parts are sums of
squares, so nothing cancels in a sum over clients after subtracting the group mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np

from fltheory.decimals import complement
from fltheory.participation.base import Participation
from fltheory.participation.inclusions.like_clients import LikeClients
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray

MOST_PAIRED_CLIENTS = 16_384
MOST_GROUPS = 1024
_UNIT_ROUNDOFF = float(np.finfo(np.float64).eps) / 2


class TooManyGroupsError(ValueError):
    """There are too many groups of clients to average over the number present in each group."""


@dataclass(frozen=True, eq=False)
class Inclusions(ReadOnlyArrays):
    """Means and covariance of ``phi_i = 1{i takes part} weight[|S|]``, by groups of clients.

    Attributes
    ----------
    group : array, (N,)
        Each client's group, from 0.
    sizes : array, (G,)
        n_g, the number of clients in each group.
    means, squares : arrays, (G,)
        ``E phi_i`` and ``E phi_i^2``.
    within : array, (G,)
        ``E phi_i (phi_i - phi_j)`` for two clients of a group; zero for a group of one.
    totals : array, (G, G) or (G,)
        Covariance of the groups' sums of phi, or only their variances if they are uncorrelated,
        because there may then be as many groups as clients.
    totals_size : array, of the same shape
        Sum of the absolute values of the terms whose difference is ``totals``; the rounding error
        of ``totals`` is proportional to this.
    relative_error : float
        Bound, to first order, on the relative rounding errors of all these arrays.
    """

    group: ClientIndices
    sizes: ClientIndices
    means: FloatArray
    squares: FloatArray
    within: FloatArray
    totals: FloatArray
    totals_size: FloatArray
    relative_error: float

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.group.size)

    def covariance(self) -> FloatArray:
        """Return Cov(phi_i, phi_j), (N, N), for a small number of clients.

        Raises
        ------
        ValueError
            If there are more than 16,384 clients.
        """
        check_paired(self.n_clients)
        totals = np.diag(self.totals) if self.totals.ndim == 1 else self.totals
        shares = totals / np.outer(self.sizes, self.sizes)
        shares = shares - np.diag(self.within / self.sizes)
        dense = shares[np.ix_(self.group, self.group)]
        dense[np.diag_indices(self.n_clients)] += self.within[self.group]
        return np.asarray(dense)


class GroupedInclusions(Participation, Protocol):
    """Participation that provides inclusions by groups of exchangeable clients."""

    def inclusions(self, weight: FloatArray) -> Inclusions:
        """Return the moments of ``1{i takes part} weight[|S|]``, for ``weight`` (N + 1,).

        Raises
        ------
        TooManyGroupsError
            If there are too many groups for this weight.
        """
        ...


def in_groups(participation: Participation) -> TypeGuard[GroupedInclusions]:
    """Return whether a process has inclusions by groups, without computing any."""
    return hasattr(type(participation), "inclusions")


def check_paired(n_clients: int) -> None:
    """Raise ValueError if there are too many clients to store a number for each pair."""
    if n_clients > MOST_PAIRED_CLIENTS:
        raise ValueError(
            f"n_clients must be at most {MOST_PAIRED_CLIENTS} for a value per pair of clients, got "
            f"{n_clients}: use inclusions, which work with groups of identical clients"
        )


def of_uniform_subset(eligible: ClientIndices, n_clients: int, size: int, h: float) -> Inclusions:
    """Return the inclusions of a uniform subset of ``eligible``, with weight[size] = h.

    The number of participants is fixed, so the group's sum does not vary. Of two clients, the first
    is drawn and the second is not with probability ``m (P - m) / (P (P - 1))``.
    """
    pool = eligible.size
    group = np.ones(n_clients, dtype=np.intp)
    group[eligible] = 0
    sizes = np.array([pool, n_clients - pool], dtype=np.intp)
    apart = size * (pool - size) / (pool * max(pool - 1, 1))
    count = 2 if pool < n_clients else 1
    never = np.zeros(count)
    return Inclusions(
        group=group,
        sizes=sizes[:count],
        means=np.array([h * size / pool, 0.0])[:count],
        squares=np.array([h * h * size / pool, 0.0])[:count],
        within=np.array([h * h * apart, 0.0])[:count],
        totals=never,
        totals_size=never,
        relative_error=8 * _UNIT_ROUNDOFF,
    )


def of_available(
    availability: FloatArray, weight: FloatArray, most: int | None = None
) -> Inclusions:
    """Return the inclusions of clients who are present independently.

    Parameters
    ----------
    availability : array, (N,)
        Each client's probability of being present.
    weight : array, (N + 1,)
        Weight by the number of participants.
    most : int, optional
        If more clients than this are present, this many of them are drawn uniformly and take part.
        By default, all of them take part.
    """
    if most is None and (weight[1:] == weight[-1]).all():
        return _uncorrelated(LikeClients.of(availability), float(weight[-1]))
    like = LikeClients.of(availability)
    if like.sizes.size > MOST_GROUPS:
        raise TooManyGroupsError(
            f"availability must have at most {MOST_GROUPS} distinct values for averages over the "
            f"participants, got {like.sizes.size}"
        )
    return _by_number(like, weight, most or availability.size)


def _uncorrelated(like: LikeClients, h: float) -> Inclusions:
    """Return the inclusions if the weight does not depend on the number of participants."""
    p = like.availability
    variances = h * h * p * complement(p)
    totals = like.sizes * variances
    return Inclusions(
        group=like.group,
        sizes=like.sizes,
        means=h * p,
        squares=h * h * p,
        within=np.where(like.sizes > 1, variances, 0.0),
        totals=totals,
        totals_size=totals,
        relative_error=8 * _UNIT_ROUNDOFF,
    )


def _by_number(like: LikeClients, weight: FloatArray, most: int) -> Inclusions:
    """Return the inclusions by averaging over the number of clients present.

    With k present, d = min(k, S) of them take part. A given present client takes part with
    probability d/k, two given ones both do with ``d (d - 1) / (k (k - 1))``, and one does without
    the other with ``d (k - d) / (k (k - 1))``. All terms are positive.
    """
    p, sizes, n_clients = like.availability, like.sizes, like.group.size
    there = np.arange(n_clients + 1)
    drawn = np.minimum(there, most)
    share, others = drawn / np.maximum(there, 1), np.maximum(there - 1, 1)
    h = weight[drawn]
    squares = p * like.without_one((share * h * h)[1:])
    means = p * like.without_one((share * h)[1:])
    together = np.outer(p, p) * like.without_two((share * h * h * (drawn - 1) / others)[2:])
    # One takes part and the other does not, because it is absent, or present but not drawn.
    away = p * complement(p) * like.without_two_alike((share * h * h)[1:-1])
    drawn_alone = share * h * h * (there - drawn) / others
    not_drawn = p * p * like.without_two_alike(drawn_alone[2:])
    second = np.outer(sizes, sizes) * together
    np.fill_diagonal(second, sizes * squares + sizes * (sizes - 1) * together.diagonal())
    first = sizes * means
    totals, totals_size = second - np.outer(first, first), second + np.outer(first, first)
    if sizes.size == 1:
        # The sum over a single group depends only on the number of participants, so nothing
        # cancels.
        numbers, chances = like.number
        total = drawn[numbers] * h[numbers]
        deviation = total - chances @ total
        totals = np.array([[chances @ deviation**2]])
    return Inclusions(
        group=like.group,
        sizes=sizes,
        means=means,
        squares=squares,
        within=np.where(sizes > 1, away + not_drawn, 0.0),
        totals=totals,
        totals_size=totals_size,
        relative_error=like.relative_error,
    )
