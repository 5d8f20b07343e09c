"""Finite Markov chains of participants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.decimals import normalised
from fltheory.exact_or_float import number
from fltheory.participation import chain_structure
from fltheory.participation.base import Masks
from fltheory.participation.chain_structure import CitedFactor, Mixing
from fltheory.participation.process import Law, Process, States, same_number
from fltheory.read_only import read_only
from fltheory.validation import FloatArray

_ROW_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class FiniteChain(Process):
    """An irreducible, aperiodic Markov chain whose states each have a set of present clients.

    Two states may have the same set, so the participants alone need not be Markov; clients that
    share a chain form a cluster. This is CA-Fed's Assumption 1.

    Parameters
    ----------
    transition : array, (M, M)
        P; row i holds the transition probabilities from state i.
    state_masks : array of bool, (M, N)
        True where a client is present.
    start : int, optional
        State of the first round; by default, it is drawn from the stationary distribution.

    Raises
    ------
    ValueError
        If P is not a stochastic matrix (the message names the row), is reducible (it names a state
        that cannot be reached) or periodic (it gives the period), or if the masks have a different
        shape or entries other than 0 and 1.

    Examples
    --------
    >>> chain = FiniteChain([[0.5, 0.5], [0.25, 0.75]], [[True, False], [True, True]])
    >>> chain.marginals.round(4).tolist()
    [1.0, 0.6667]
    >>> chain.mixing.second_eigenvalue
    0.25
    """

    mixes = True

    transition: FloatArray
    state_masks: Masks
    start: int | None

    def __init__(
        self, transition: ArrayLike, state_masks: ArrayLike, *, start: int | None = None
    ) -> None:
        matrix = _stochastic(transition)
        masks = checked_masks("state_masks", state_masks, len(matrix))
        if start is not None:
            start = validation.whole_number("start", start, at_least=0)
            if start >= len(matrix):
                raise ValueError(f"start must be a state below {len(matrix)}, got {start}")
        chain_structure.check_irreducible(matrix)
        period = chain_structure.period(matrix)
        if period > 1:
            raise ValueError(f"transition must be aperiodic, got a chain of period {period}")
        for name, value in (("transition", matrix), ("state_masks", masks), ("start", start)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"FiniteChain({self.n_states} states, {self.n_clients} clients)"

    @property
    def n_states(self) -> int:
        """M, the number of states."""
        return len(self.transition)

    @property
    def n_presence_states(self) -> int:
        """Number of entries of ``P^t`` in a client's probability of presence or absence."""
        there = self.state_masks.sum(axis=0)
        return max(1, int(np.minimum(there, self.n_states - there).max()))

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.state_masks.shape[1])

    @property
    def independent(self) -> bool:
        """Whether rounds are independent: all rows of P are the stationary distribution."""
        return self.start is None and bool((self.transition == self.transition[0]).all())

    @cached_property
    def stationary(self) -> FloatArray:
        """(M,) stationary distribution of the states."""
        return chain_structure.stationary_law(self.transition)

    @property
    def initial(self) -> FloatArray:
        """(M,) distribution of the first round's state."""
        if self.start is None:
            return self.stationary
        return np.asarray(np.arange(self.n_states) == self.start, dtype=np.float64)

    @cached_property
    def mixing(self) -> Mixing:
        """lambda_2, lambda(P), C_P and T_P of equation (5)."""
        return chain_structure.mixing(self.transition, self.stationary)

    @cached_property
    def cited_factor(self) -> CitedFactor:
        """C_P as CA-Fed cites it from its reference [14], with an eigenbasis computed in floats."""
        return chain_structure.cited_factor(self.transition, self.stationary)

    @property
    def start_distance(self) -> Any:
        """Total variation between the first round's state distribution and its limit."""
        return 0 if self.start is None else number(1 - self.stationary[self.start])

    @property
    def fixed_size(self) -> int | None:
        """The number of participants if it is the same in every state, otherwise None."""
        return same_number(self.state_masks)

    @cached_property
    def _shares(self) -> tuple[Masks, FloatArray]:
        masks, index = np.unique(self.state_masks, axis=0, return_inverse=True)
        shares = np.bincount(index.ravel(), weights=self.stationary)
        return masks, np.asarray(shares, dtype=np.float64)

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The clients present in each state."""
        return tuple(tuple(np.flatnonzero(mask).tolist()) for mask in self.state_masks)

    def as_chain(self) -> FiniteChain:
        """Return the chain itself."""
        return self

    def states(self) -> States:
        """Return the states with their transition matrix."""
        return States(self.state_masks, self.initial, self.stationary, (self.transition,))

    def law(self) -> Law:
        """Return the states with transition probabilities whose rows sum to exactly one."""
        rows = [normalised(row) for row in self.transition]
        following = [tuple((j, p) for j, p in enumerate(row) if p > 0) for row in rows]
        if self.start is not None:
            first = ((self.start, Fraction(1)),)
            return Law.of_states(self.state_masks, first, following.__getitem__)
        limit = tuple(enumerate(chain_structure.stationary_law(rows)))
        return Law.of_states(self.state_masks, limit, following.__getitem__, limit)

    def _numbers(self) -> Mapping[str, Any]:
        rows = [normalised(row) for row in self.transition]
        law = chain_structure.stationary_law(rows)
        marginals = law @ self.state_masks.astype(np.int64).astype(object)
        return {"transition": rows, "stationary": law, "marginals": marginals}


def checked_masks(name: str, value: ArrayLike, rows: int | str) -> Masks:
    """Return ``value`` as a read-only boolean array with a given number of rows."""
    array = validation.array_of(name, value, rows, "N", flags=True)
    other = np.argwhere((array != 0) & (array != 1))
    if other.size:
        row, column = other[0]
        raise ValueError(
            f"{name} must be 0 or 1, got {array[row, column]:.6g} in row {row}, column {column}"
        )
    return read_only(array.astype(bool))


def _stochastic(transition: ArrayLike) -> FloatArray:
    array = validation.real_array("transition", transition, shape="(M, M)")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise ValueError(f"transition must have shape (M, M), got {array.shape}")
    negative = np.argwhere(array < 0)
    if negative.size:
        row, column = negative[0]
        raise ValueError(
            f"transition must not be negative, got {array[row, column]:.6g} in row {row}"
        )
    sums = array.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1) > _ROW_TOLERANCE)
    if wrong.size:
        raise ValueError(
            f"transition must have rows that sum to 1, got {sums[wrong[0]]:.15g} for row {wrong[0]}"
        )
    return array
