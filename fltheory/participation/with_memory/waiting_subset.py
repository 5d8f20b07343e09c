"""Subsets that are waited for: the clients of FedAvg(S) in MIFA's code."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fltheory.participation.base import Masks
from fltheory.participation.inclusions.subsets import between
from fltheory.participation.independent_rounds.bernoulli import Bernoulli
from fltheory.participation.independent_rounds.subset_of_available import SubsetOfAvailable
from fltheory.participation.independent_rounds.uniform_subset import UniformSubset
from fltheory.participation.with_memory.chain_structure import stationary_law
from fltheory.participation.with_memory.chains import MatrixStates, States
from fltheory.validation import FloatArray

_AT_ONCE = 1024


@dataclass(frozen=True, eq=False, init=False, repr=False)
class WaitingSubset(SubsetOfAvailable):
    """A uniform subset takes part together once each of its members has been available.

    Follows the FedAvg(S) of MIFA's code: ``size`` of all clients are drawn; in every round of
    waiting nobody takes part; in the round in which the last of them has been seen all of them
    do, also those unavailable just then; and the next subset is drawn. A run starts with a
    fresh subset. Every client takes part equally often, whatever its availability.

    Parameters
    ----------
    availability : array, (N,)
        Probabilities in (0, 1].
    size : int
        S, from 1 to N.

    Raises
    ------
    ValueError
        For other values.

    Examples
    --------
    >>> round(WaitingSubset([0.5, 0.25], 1).mean_wait, 12)
    3.0
    """

    @cached_property
    def mean_wait(self) -> float:
        """Mean rounds from one subset's round to the next one's, to a few roundings.

        The sum over t >= 0 of the chance that a subset is not complete after t rounds; time
        is of order N S / min p.
        """
        total, first = 0.0, 0
        least = float(self.availability.min())
        while first == 0 or self.n_clients * (1 - least) ** first > 1e-17 * least:
            times = np.arange(first, first + _AT_ONCE)
            seen = 1 - (1 - self.availability[:, None]) ** times
            total += float((1 - self._chance_complete(seen)).sum())
            first += _AT_ONCE
        return total

    def _chance_complete(self, seen: FloatArray) -> FloatArray:
        """Return the mean over subsets of the product of ``seen`` (N, times) over members."""
        means = np.zeros((self.size + 1, seen.shape[1]))
        means[0] = 1.0
        members = np.arange(1, self.size + 1)[:, None]
        for number, chance in enumerate(seen, start=1):
            joins = np.minimum(members / number, 1.0)
            means[1:] = (1 - joins) * means[1:] + joins * chance * means[:-1]
        return np.asarray(means[-1])

    @property
    def independent(self) -> bool:
        """Whether there is nothing to wait for."""
        return bool((self.availability == 1).all())

    @property
    def marginals(self) -> FloatArray:
        """(N,) long-run share of rounds in which a client takes part."""
        return np.asarray(self._always.marginals / self.mean_wait)

    @property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) long-run share of rounds in which two clients take part."""
        return np.asarray(self._always.pair_inclusions / self.mean_wait)

    @property
    def fixed_size(self) -> int | None:
        """S if there is nothing to wait for, else None."""
        return self.size if self.independent else None

    @property
    def n_outcomes(self) -> int:
        """The number of subsets, and nobody where there is something to wait for."""
        return self._always.n_outcomes + (not self.independent)

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Every participant set with its long-run share of the rounds."""
        if not self.independent:
            yield 1 - 1 / self.mean_wait, np.zeros(self.n_clients, dtype=bool)
        for chance, mask in self._always.outcomes():
            yield chance / self.mean_wait, mask

    @property
    def n_states(self) -> int:
        """Subsets, each with whom of its members has been seen; some are seen at once."""
        unsure = int((self.availability < 1).sum())
        sure = self.n_clients - unsure
        return sum(
            math.comb(unsure, k) * math.comb(sure, self.size - k) * 2**k
            for k in range(self.size + 1)
        )

    def states(self) -> States:
        """Return subsets with whom has been seen, who take part where all have; M^2 numbers."""
        chosen, seen = self._waits()
        missing = chosen & ~seen
        fresh = self._chance_of_seeing(chosen, seen, chosen) / self._always.n_outcomes
        transition = np.tile(fresh, (len(chosen), 1))
        for state in np.flatnonzero(missing.any(axis=1)):
            goes_on = (chosen == chosen[state]).all(axis=1) & (seen >= seen[state]).all(axis=1)
            chance = self._chance_of_seeing(chosen, seen, missing[state])
            transition[state] = np.where(goes_on, chance, 0.0)
        masks = chosen & ~missing.any(axis=1, keepdims=True)
        return MatrixStates(transition, masks, fresh, stationary_law(transition))

    def _waits(self) -> tuple[Masks, Masks]:
        """Return each state's subset and who of it has been seen, (M, N) each."""
        subsets = [mask for _, mask in self._always.outcomes()]
        nobody = np.zeros(self.n_clients, dtype=bool)
        pairs = [
            (subset, subset & ~unseen)
            for subset in subsets
            for unseen in between(nobody, subset & (self.availability < 1))
        ]
        chosen, seen = zip(*pairs, strict=True)
        return np.array(chosen), np.array(seen)

    def _chance_of_seeing(self, chosen: Masks, seen: Masks, looked_for: Masks) -> FloatArray:
        """Return the chance, in a round, of seeing just those of ``looked_for`` that are."""
        p = self.availability
        each = np.where(seen, p, 1 - p)
        return np.asarray(np.where(chosen & looked_for, each, 1.0).prod(axis=1))

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Draw round after round for ``replicas`` independent runs."""
        subsets = self._always.masks(rng, replicas)
        chosen = next(subsets)
        seen = np.zeros_like(chosen)
        for available in Bernoulli(self.availability).masks(rng, replicas):
            seen |= available
            complete = (seen | ~chosen).all(axis=1, keepdims=True)
            yield chosen & complete
            chosen = np.where(complete, next(subsets), chosen)
            seen &= ~complete

    @property
    def _always(self) -> UniformSubset:
        return UniformSubset(self.n_clients, self.size)
