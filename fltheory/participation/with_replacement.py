"""Sampling with replacement: a client may be drawn more than once in a round."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.decimals import normalised
from fltheory.participation.base import Masks
from fltheory.participation.process import Law, Process
from fltheory.validation import FloatArray

# Thirds typed with nine digits sum to one to within this tolerance.
_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class WithReplacement(Process):
    """``draws`` independent draws per round; each is client k with probability p_k.

    Its masks are int64 counts of how often each client was drawn, (replicas, N). Algorithms that
    weight a client by its count declare this with ``counts_draws``; `Setting` refuses all others.

    Follows Assumption 5 (Scheme I) of Li et al. (ICLR 2020).

    Parameters
    ----------
    probabilities : array, (N,)
        p, not negative, summing to one.
    draws : int
        K, at least 1.

    Raises
    ------
    ValueError
        If the probabilities are negative or do not sum to one, or there is less than one draw.

    Examples
    --------
    In two draws from two clients, the first is drawn twice, once or never:

    >>> process = WithReplacement([0.25, 0.75], draws=2)
    >>> [(chance, counts.tolist()) for chance, counts in process.outcomes()]
    [(0.0625, [2, 0]), (0.375, [1, 1]), (0.5625, [0, 2])]
    """

    repeats: ClassVar[bool] = True

    probabilities: FloatArray
    draws: int

    def __init__(self, probabilities: ArrayLike, draws: int) -> None:
        p = validation.array_of("probabilities", probabilities, "N")
        if p.min() < 0 or abs(p.sum() - 1) > _SUM_TOLERANCE:
            raise ValueError(
                f"probabilities must not be negative and must sum to one, got {tuple(p.tolist())}"
            )
        object.__setattr__(self, "probabilities", p)
        object.__setattr__(self, "draws", validation.whole_number("draws", draws, at_least=1))

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.probabilities.size)

    @cached_property
    def _chances(self) -> list[Fraction]:
        """Return p in fractions that sum to exactly one."""
        return normalised(self.probabilities.tolist())

    def law(self) -> Law:
        """Return every multiset of draws with its multinomial probability."""
        eligible = np.flatnonzero(self.probabilities).tolist()
        found: list[tuple[Fraction, NDArray[Any]]] = []
        for drawn in combinations_with_replacement(eligible, self.draws):
            counts = np.bincount(drawn, minlength=self.n_clients)
            chance = Fraction(math.factorial(self.draws))
            for client in set(drawn):
                times = int(counts[client])
                chance *= self._chances[client] ** times / math.factorial(times)
            found.append((chance, counts.astype(np.int64)))
        return Law(lambda state: found)

    @property
    def n_outcomes(self) -> int:
        """The number of multisets, a binomial coefficient."""
        eligible = int(np.count_nonzero(self.probabilities))
        return math.comb(eligible + self.draws - 1, self.draws)

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) probability that a client is drawn at least once: ``1 - (1 - p)^K``."""
        return np.asarray(1 - (1 - np.minimum(self.probabilities, 1.0)) ** self.draws)

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that both of two clients are drawn."""
        p, away = self.probabilities, 1 - self.marginals
        together = 1 - away[:, None] - away + np.maximum(1 - p[:, None] - p, 0.0) ** self.draws
        np.fill_diagonal(together, self.marginals)
        return np.asarray(together)

    @property
    def fixed_size(self) -> int | None:
        """The number of distinct participants with one draw or one client, otherwise None."""
        return 1 if self.draws == 1 or np.count_nonzero(self.probabilities) == 1 else None

    def _numbers(self) -> Mapping[str, Any]:
        return {"marginals": [1 - (1 - p) ** self.draws for p in self._chances]}

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Draw counts for ``replicas`` independent runs, round after round."""
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        shares = self.probabilities / self.probabilities.sum()
        while True:
            yield rng.multinomial(self.draws, shares, size=replicas)  # type: ignore[misc]
