"""Uniform sampling of a fixed number of clients, some of whom may never be sampled."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fltheory import validation
from fltheory.participation.base import Masks, of_size
from fltheory.participation.inclusions.correlations import (
    Inclusions,
    check_paired,
    of_uniform_subset,
)
from fltheory.participation.process import Law, Process, UniformDraw
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class UniformSubset(Process):
    """``size`` clients per round, drawn uniformly from those not excluded.

    Parameters
    ----------
    n_clients : int
        N, all clients.
    size : int
        m, the number of clients that take part in a round.
    excluded : collection of int
        Clients (from 0) who never take part: incomplete participation in SA-FL's sense.

    Raises
    ------
    ValueError
        If ``size`` exceeds the number of eligible clients, or ``excluded`` names a client that does
        not exist or names one client twice.

    Examples
    --------
    >>> UniformSubset(4, 2, excluded=(0,)).marginals.round(4).tolist()
    [0.0, 0.6667, 0.6667, 0.6667]
    """

    n_clients: int
    size: int
    _: KW_ONLY
    excluded: Collection[int] = ()

    def __post_init__(self) -> None:
        n_clients = validation.whole_number("n_clients", self.n_clients, at_least=1)
        size = validation.whole_number("size", self.size, at_least=1)
        if not isinstance(self.excluded, Collection):
            raise ValueError(f"excluded must be a collection of clients, got {self.excluded!r}")
        excluded = tuple(
            validation.whole_number("excluded", client, at_least=0) for client in self.excluded
        )
        if len(set(excluded)) < len(excluded) or max(excluded, default=0) >= n_clients:
            raise ValueError(
                f"excluded must name distinct clients from 0 to {n_clients - 1}, got {excluded}"
            )
        eligible = n_clients - len(excluded)
        if size > eligible:
            raise ValueError(
                f"size must be at most the {eligible} eligible clients "
                f"({n_clients} less {len(excluded)} excluded), got {size}"
            )
        object.__setattr__(self, "n_clients", n_clients)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "excluded", tuple(sorted(excluded)))

    @cached_property
    def eligible(self) -> NDArray[np.intp]:
        """Clients that may take part, in order."""
        eligible = np.ones(self.n_clients, dtype=bool)
        eligible[np.array(self.excluded, dtype=np.intp)] = False
        return np.flatnonzero(eligible)

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) probability that a client takes part: m over the number eligible, or zero."""
        probabilities = np.zeros(self.n_clients)
        probabilities[self.eligible] = self.size / self.eligible.size
        return probabilities

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that two clients take part together."""
        check_paired(self.n_clients)
        pool = self.eligible.size
        together = np.zeros((self.n_clients, self.n_clients))
        if pool > 1:
            pair = self.size * (self.size - 1) / (pool * (pool - 1))
            together[np.ix_(self.eligible, self.eligible)] = pair
        np.fill_diagonal(together, self.marginals)
        return together

    def inclusions(self, weight: FloatArray) -> Inclusions:
        """Return the moments of ``1{i takes part} weight[|S|]``, for ``weight`` (N + 1,)."""
        return of_uniform_subset(self.eligible, self.n_clients, self.size, float(weight[self.size]))

    @property
    def fixed_size(self) -> int:
        """m, the number of participants in every round."""
        return self.size

    @property
    def n_outcomes(self) -> int:
        """The number of subsets, a binomial coefficient."""
        return math.comb(self.eligible.size, self.size)

    def law(self) -> Law:
        """Return every subset, all equally likely."""
        eligible = np.isin(np.arange(self.n_clients), self.eligible)
        sets = [(Fraction(1, self.n_outcomes), mask) for mask in of_size(self.size, eligible)]
        return Law(lambda state: sets)

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Yield every subset with its probability."""
        eligible = np.isin(np.arange(self.n_clients), self.eligible)
        for mask in of_size(self.size, eligible):
            yield 1.0 / self.n_outcomes, mask

    @property
    def uniform_draw(self) -> UniformDraw:
        """The number of clients drawn, and the excluded clients."""
        return UniformDraw(self.size, tuple(self.excluded))

    def _numbers(self) -> Mapping[str, Any]:
        here = np.isin(np.arange(self.n_clients), self.eligible).astype(int).astype(object)
        return {"marginals": Fraction(self.size, self.eligible.size) * here}

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Draw subsets for ``replicas`` independent runs, round after round.

        Floyd's algorithm, vectorised over replicas; the smaller of the subset and its
        complement is drawn.
        """
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        pool = self.eligible.size
        drawn = min(self.size, pool - self.size)
        firsts = pool * np.arange(replicas)
        while True:
            chosen = np.zeros((replicas, pool), dtype=bool)
            # One index is faster than two.
            flat = chosen.reshape(-1)
            for last in range(pool - drawn, pool):
                candidate = firsts + rng.integers(0, last + 1, size=replicas)
                flat[np.where(flat.take(candidate), firsts + last, candidate)] = True
            if drawn < self.size:
                chosen = ~chosen
            if not self.excluded:
                yield chosen
                continue
            present = np.zeros((replicas, self.n_clients), dtype=bool)
            present[:, self.eligible] = chosen
            yield present
