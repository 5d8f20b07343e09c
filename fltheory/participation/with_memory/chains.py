"""Processes with memory: their states, how laws on them move from round to round, and chains.

With P the matrix of transitions, a row for the state one comes from, an array of values
``v_i`` moves to ``sum_i P_ij v_i``. P is kept in the form in which that is cheapest. What is
stored (transitions, initial law) is taken for exact: it is the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.decimals import normalised
from fltheory.participation.base import Masks
from fltheory.participation.exact_law import ExactLaw, chain_law
from fltheory.participation.with_memory import chain_structure
from fltheory.participation.with_memory.chain_structure import CitedFactor, Mixing
from fltheory.read_only import ReadOnlyArrays, read_only
from fltheory.validation import FloatArray

_ROW_TOLERANCE = 1e-12


class States(Protocol):
    """States that say who is present, and the Markov chain on them."""

    @property
    def masks(self) -> Masks:
        """(M, N) who is present in a state."""
        ...

    @property
    def initial(self) -> FloatArray:
        """(M,) law of the first round's state."""
        ...

    @property
    def limit(self) -> FloatArray | None:
        """(M,) law to which the state's law converges; None where it has no limit."""
        ...

    @property
    def operations(self) -> int:
        """Rounding errors in a number that `forward` or `backward` returns."""
        ...

    def forward(self, values: FloatArray) -> FloatArray:
        """Return ``sum_i P_ij values_i`` for every j, from (M, ...)."""
        ...

    def backward(self, values: FloatArray) -> FloatArray:
        """Return ``sum_j P_ij values_j`` for every i, from (M, ...)."""
        ...


@dataclass(frozen=True, eq=False)
class MatrixStates(ReadOnlyArrays):
    """States with a dense matrix of transitions."""

    transition: FloatArray
    masks: Masks
    initial: FloatArray
    limit: FloatArray

    @property
    def operations(self) -> int:
        """Rounding errors in a number."""
        return len(self.masks) + 1

    def forward(self, values: FloatArray) -> FloatArray:
        """Return ``P' values``."""
        flat = values.reshape(len(values), -1)
        return np.asarray((self.transition.T @ flat).reshape(values.shape))

    def backward(self, values: FloatArray) -> FloatArray:
        """Return ``P values``."""
        flat = values.reshape(len(values), -1)
        return np.asarray((self.transition @ flat).reshape(values.shape))


@dataclass(frozen=True, eq=False)
class ProductStates(ReadOnlyArrays):
    """States of independent chains: P, the Kronecker product of their matrices, is never built.

    The first chain's state is the leading digit of a state's number.
    """

    factors: tuple[FloatArray, ...]
    masks: Masks
    initial: FloatArray
    limit: FloatArray

    @property
    def operations(self) -> int:
        """Rounding errors in a number: of sums, and of the products that factors may be."""
        return sum(len(factor) + len(factor).bit_length() for factor in self.factors)

    def forward(self, values: FloatArray) -> FloatArray:
        """Return ``P' values``, one chain after another."""
        return self._moved(values, [factor.T for factor in self.factors])

    def backward(self, values: FloatArray) -> FloatArray:
        """Return ``P values``, one chain after another."""
        return self._moved(values, self.factors)

    def _moved(self, values: FloatArray, factors: Sequence[FloatArray]) -> FloatArray:
        moved, before = values, 1
        for factor in factors:
            moved = factor @ moved.reshape(before, len(factor), -1)
            before *= len(factor)
        return moved.reshape(values.shape)


@dataclass(frozen=True, eq=False)
class LoopStates(ReadOnlyArrays):
    """States that follow one another in a loop."""

    masks: Masks
    initial: FloatArray

    @property
    def limit(self) -> FloatArray | None:
        """The uniform law if the loop begins anywhere, else none."""
        uniform = bool((self.initial == self.initial[0]).all())
        return self.initial if uniform else None

    @property
    def operations(self) -> int:
        """No rounding: nothing is computed."""
        return 0

    def forward(self, values: FloatArray) -> FloatArray:
        """Return the value of the state before."""
        return np.roll(values, 1, axis=0)

    def backward(self, values: FloatArray) -> FloatArray:
        """Return the value of the state after."""
        return np.roll(values, -1, axis=0)


@runtime_checkable
class Stateful(Protocol):
    """Participation by a state that determines who is present and is a finite Markov chain."""

    @property
    def n_states(self) -> int:
        """M, the number of states."""
        ...

    def states(self) -> States:
        """Return the states and how they follow one another; memory grows with M."""
        ...


@dataclass(frozen=True, eq=False)
class FiniteChain(ReadOnlyArrays):
    """An irreducible, aperiodic chain on states that each have a set of present clients.

    Two states may have the same set, so that the participants alone need not be Markov; clients
    that share a chain make a cluster. CA-Fed's Assumption 1.

    Parameters
    ----------
    transition : array, (M, M)
        P, a row for the state one comes from.
    state_masks : array of bool, (M, N)
        True where a client is present.
    start : int, optional
        State of the first round; drawn from the stationary law by default.

    Raises
    ------
    ValueError
        If P is not a stochastic matrix (the error names the row), is reducible (it names a
        state that cannot be reached) or periodic (it gives the period), or for masks of
        another shape or entries than 0 and 1.

    Examples
    --------
    >>> chain = FiniteChain([[0.5, 0.5], [0.25, 0.75]], [[True, False], [True, True]])
    >>> chain.marginals.round(4).tolist()
    [1.0, 0.6667]
    >>> chain.mixing.second_eigenvalue
    0.25
    """

    transition: FloatArray
    state_masks: Masks
    start: int | None

    def __init__(
        self, transition: ArrayLike, state_masks: ArrayLike, *, start: int | None = None
    ) -> None:
        matrix = _stochastic(transition)
        masks = checked_masks("state_masks", state_masks, rows=len(matrix), shape="(M, N)")
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
        """Entries of ``P^t`` that a client's chance of being there sums, or that of being away."""
        there = self.state_masks.sum(axis=0)
        return max(1, int(np.minimum(there, self.n_states - there).max()))

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.state_masks.shape[1])

    @property
    def independent(self) -> bool:
        """Whether rounds are independent: all rows of P are the stationary law."""
        return self.start is None and bool((self.transition == self.transition[0]).all())

    @cached_property
    def stationary(self) -> FloatArray:
        """(M,) stationary law of the states."""
        return chain_structure.stationary_law(self.transition)

    @property
    def initial(self) -> FloatArray:
        """(M,) law of the first round's state."""
        if self.start is None:
            return self.stationary
        return np.asarray(np.arange(self.n_states) == self.start, dtype=np.float64)

    @cached_property
    def mixing(self) -> Mixing:
        """lambda_2, lambda(P), C_P and T_P of equation (5)."""
        return chain_structure.mixing(self.transition, self.stationary)

    @cached_property
    def cited_factor(self) -> CitedFactor:
        """C_P as CA-Fed takes it from its [14], with an eigenbasis that floats find."""
        return chain_structure.cited_factor(self.transition, self.stationary)

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) stationary probability that a client is present."""
        return self.stationary @ self.state_masks

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) stationary probability that two clients are present together."""
        present = self.state_masks.astype(np.float64)
        return np.asarray((present.T * self.stationary) @ present)

    @property
    def fixed_size(self) -> int | None:
        """The number of participants where it is the same in every state, else None."""
        sizes = self.state_masks.sum(axis=1)
        return int(sizes[0]) if (sizes == sizes[0]).all() else None

    @cached_property
    def _sets(self) -> tuple[Masks, FloatArray]:
        masks, index = np.unique(self.state_masks, axis=0, return_inverse=True)
        shares = np.bincount(index.ravel(), weights=self.stationary)
        return masks, np.asarray(shares, dtype=np.float64)

    @property
    def n_outcomes(self) -> int:
        """How many participant sets there are."""
        return len(self._sets[0])

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Every participant set with its stationary probability."""
        for mask, probability in zip(*self._sets, strict=True):
            yield float(probability), mask

    def as_chain(self) -> FiniteChain:
        """Return the chain itself."""
        return self

    def states(self) -> States:
        """Return the states with their matrix."""
        return MatrixStates(self.transition, self.state_masks, self.initial, self.stationary)

    def exact_law(self) -> ExactLaw:
        """Return the states with rows that sum to one exactly, and their stationary law."""
        rows = [normalised(row) for row in self.transition]
        if self.start is None:
            law = chain_structure.exact_stationary_law(rows)
        else:
            law = [Fraction(int(state == self.start)) for state in range(self.n_states)]
        following = [tuple((j, p) for j, p in enumerate(row) if p > 0) for row in rows]
        initial = tuple((state, chance) for state, chance in enumerate(law) if chance > 0)
        return chain_law(initial, self.state_masks, following.__getitem__)

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Draw round after round for ``replicas`` independent runs."""
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        thresholds = _thresholds(self.transition)
        first = _thresholds(self.initial[None])[0]
        state = np.searchsorted(first, rng.random(replicas), side="right")
        while True:
            yield self.state_masks[state]
            drawn = rng.random(replicas)
            following = np.empty_like(state)
            for origin in np.unique(state):
                rows = state == origin
                following[rows] = np.searchsorted(thresholds[origin], drawn[rows], side="right")
            state = following


def checked_masks(name: str, value: ArrayLike, *, shape: str, rows: int | None = None) -> Masks:
    """Return ``value`` as a read-only boolean array of ``rows`` rows, of any client."""
    array = validation.real_array(name, value, shape=shape, flags=True)
    if array.ndim != 2 or 0 in array.shape or rows not in (None, len(array)):
        wanted = shape if rows is None else f"({rows}, N)"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
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


def _thresholds(laws: FloatArray) -> FloatArray:
    """Return cumulative laws that end in exactly one, at the last state that is possible."""
    thresholds = np.cumsum(laws, axis=1)
    last = laws.shape[1] - 1 - (laws[:, ::-1] > 0).argmax(axis=1)
    thresholds[np.arange(laws.shape[1]) >= last[:, None]] = 1.0
    return thresholds
