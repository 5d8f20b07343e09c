"""Clients that take part independently, each with its own probability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.decimals import as_fraction
from fltheory.participation.base import Masks, between
from fltheory.participation.inclusions.independent_clients import (
    IndependentClients,
    chances_of_sets,
    pairs_present,
)
from fltheory.participation.process import Chances, Law, Process, States
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Bernoulli(IndependentClients):
    """Client n takes part with probability p_n, independently of everything else (FedAU, A4).

    Parameters
    ----------
    availability : array, (N,)
        p, in (0, 1].

    Raises
    ------
    ValueError
        If a probability is outside (0, 1]. The message names the client.

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
        """Yield each round's participants in ``replicas`` independent runs."""
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        while True:
            yield rng.random((replicas, self.n_clients)) < self.availability


@dataclass(frozen=True, eq=False)
class VaryingBernoulli(Process):
    """Clients that take part independently, with probabilities that change from round to round.

    Follows Assumption 1 of Xiang et al. (NeurIPS 2024): rounds and clients are independent, and
    client i takes part in round t with probability p_i^t. After its last row, ``availability``
    starts again from its first row. Marginals are means over the rows.

    Parameters
    ----------
    availability : array, (M, N)
        Probabilities in [0, 1], one row per round.

    Raises
    ------
    ValueError
        If the shape is different, or a number is outside [0, 1].

    Examples
    --------
    The rounds alternate between day and night, and the second client is online only at night:

    >>> process = VaryingBernoulli([[1.0, 0.0], [0.25, 0.5]])
    >>> process.marginals.tolist(), process.n_outcomes
    ([0.625, 0.25], 4)
    """

    availability: FloatArray

    def __init__(self, availability: ArrayLike) -> None:
        p = validation.array_of("availability", availability, "M", "N")
        outside = np.argwhere((p < 0) | (p > 1))
        if outside.size:
            at, client = outside[0].tolist()
            raise ValueError(
                f"availability must be in [0, 1], got {p[at, client]} for client "
                f"{client} in row {at}"
            )
        object.__setattr__(self, "availability", p)

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.availability.shape[1])

    @property
    def n_states(self) -> int:
        """Number of pairs of a round and a participant set that is possible in that round."""
        return sum(1 << int(count) for count in self._varies.sum(axis=1))

    @cached_property
    def _varies(self) -> Masks:
        return (self.availability > 0) & (self.availability < 1)

    @cached_property
    def _rounds(self) -> list[tuple[Masks, Chances]]:
        """Each round's participant sets, and its states with their probabilities."""
        found: list[tuple[Masks, Chances]] = []
        first = 0
        for row, varies in zip(self.availability, self._varies, strict=True):
            sets = np.array(list(between(row == 1, varies)))
            chances = chances_of_sets([as_fraction(p) for p in row[varies]])
            found.append((sets, tuple((first + number, chance) for number, chance in chances)))
            first += len(sets)
        return found

    def law(self) -> Law:
        """Return the law. Each round's sets are states; any set of the next round may follow."""
        of_round = [t for t, (sets, _) in enumerate(self._rounds) for _ in sets]
        chances = [chances for _, chances in self._rounds]
        count = len(chances)
        limit = tuple((state, chance / count) for each in chances for state, chance in each)
        return Law.of_states(
            np.concatenate([sets for sets, _ in self._rounds]),
            chances[0],
            lambda state: chances[(of_round[state] + 1) % count],
            limit,
        )

    def states(self) -> States:
        """Return the states in floats; if rounds differ, the state's distribution has no limit."""
        states = super().states()
        return states if len(self.availability) == 1 else replace(states, limit=None)

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) probability that a client takes part, averaged over the rounds."""
        return np.asarray(self.availability.mean(axis=0))

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that two clients take part together, averaged over the rounds."""
        return np.asarray(np.mean([pairs_present(row) for row in self.availability], axis=0))

    @property
    def n_outcomes(self) -> int:
        """Number of sets with positive probability in some round."""
        return len({mask.tobytes() for sets, _ in self._rounds for mask in sets})

    def _numbers(self) -> Mapping[str, Any]:
        columns = [[as_fraction(p) for p in column] for column in self.availability.T]
        return {"marginals": [sum(column) / len(column) for column in columns]}

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Yield each round's participants in ``replicas`` independent runs."""
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        for row in cycle(self.availability):
            yield rng.random((replicas, self.n_clients)) < row


def correlated_availability(
    class_shares: ArrayLike,
    rng: np.random.Generator,
    *,
    mean: float,
    least: float,
    concentration: float = 0.1,
) -> FloatArray:
    """Draw participation probabilities correlated with clients' data, as FedAU's experiments do.

    ``p_n = <kappa_n, q> / lambda``, where q ~ Dir(concentration) over the classes, and lambda makes
    the average of the p_n equal to ``mean``. Values below ``least`` are then raised to ``least``
    and values above one are lowered to one, which may change the average.

    Parameters
    ----------
    class_shares : array, (N, classes)
        kappa, each client's shares of the classes; rows sum to one.
    rng : numpy.random.Generator
    mean, least : float
        In (0, 1].
    concentration : float
        Concentration of q's Dirichlet distribution.

    Returns
    -------
    array, (N,)

    Raises
    ------
    ValueError
        If shares are negative or do not sum to one, or a number is out of range.
    """
    shares = validation.array_of("class_shares", class_shares, "N", "classes")
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
