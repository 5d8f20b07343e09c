"""Clients that take part independently, each with a probability of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.decimals import as_fraction
from fltheory.participation.base import Masks
from fltheory.participation.inclusions.independent_clients import (
    IndependentClients,
    chances_of_sets,
)
from fltheory.participation.inclusions.subsets import between
from fltheory.participation.process import Law
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Bernoulli(IndependentClients):
    """Client n takes part with probability p_n, independently of all else (FedAU, A4).

    Parameters
    ----------
    availability : array, (N,)
        p, in (0, 1].

    Raises
    ------
    ValueError
        For a probability outside (0, 1]; the error names the client.

    Examples
    --------
    >>> Bernoulli([0.5, 1.0]).n_outcomes
    2
    """

    availability: FloatArray

    def __init__(self, availability: ArrayLike) -> None:
        p = validation.availability("availability", availability)
        object.__setattr__(self, "availability", validation.one_each("availability", p))

    def __repr__(self) -> str:
        return f"Bernoulli({self.n_clients} clients)"

    def law(self) -> Law:
        """Return every participant set with the product of the clients' probabilities."""
        masks = list(between(self.availability == 1, self.availability < 1))
        chances = chances_of_sets([as_fraction(p) for p in self.availability[self._varies]])
        sets = [(chance, masks[number]) for number, chance in chances]
        return Law(lambda state: sets)

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Draw round after round for ``replicas`` independent runs."""
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        while True:
            yield rng.random((replicas, self.n_clients)) < self.availability


def correlated_availability(
    class_shares: ArrayLike,
    rng: np.random.Generator,
    *,
    mean: float,
    least: float,
    concentration: float = 0.1,
) -> FloatArray:
    """Draw probabilities that go with the clients' data: FedAU's experiments.

    ``p_n = <kappa_n, q> / lambda`` with q ~ Dir(concentration) over the classes and lambda
    such that the p_n average ``mean``; those below ``least`` are raised to it, those above one
    lowered, so that the average may move.

    Parameters
    ----------
    class_shares : array, (N, classes)
        kappa, each client's shares of the classes; rows sum to one.
    rng : numpy.random.Generator
    mean, least : float
        In (0, 1].
    concentration : float
        Of q's Dirichlet distribution.

    Returns
    -------
    array, (N,)

    Raises
    ------
    ValueError
        For shares that are negative or do not sum to one, or numbers out of range.
    """
    shares = validation.real_array("class_shares", class_shares, shape="(N, classes)")
    if shares.ndim != 2 or shares.size == 0:
        raise ValueError(f"class_shares must have shape (N, classes), got {shares.shape}")
    wrong = np.flatnonzero((shares < 0).any(axis=1) | (abs(shares.sum(axis=1) - 1) > 1e-9))
    if wrong.size:
        raise ValueError(
            "class_shares must be nonnegative and sum to one for every client, "
            f"got {shares[wrong[0]]} for client {wrong[0]}"
        )
    for name, value in (("mean", mean), ("least", least)):
        validation.real_number(name, value, "in (0, 1]", lambda number: 0 < number <= 1)
    validation.positive("concentration", concentration)
    preference = rng.dirichlet(np.full(shares.shape[1], concentration))
    affinity = shares @ preference
    return np.clip(affinity * mean / affinity.mean(), least, 1.0)
