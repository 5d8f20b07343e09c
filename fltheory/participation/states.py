"""The states behind a process with memory, and how laws on them move from round to round.

With P the matrix of transitions, a row for the state one comes from, an array of values
``v_i`` moves to ``sum_i P_ij v_i``. P is kept in the form in which that is cheapest. What is
stored (transitions, initial law) is taken for exact: it is the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fltheory.participation.base import Masks
from fltheory.validation import FloatArray


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
class MatrixStates:
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
class ProductStates:
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
class LoopStates:
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
