"""Growth of the moments' rounding errors over many rounds of one map.

An error of M, measured in the nuclear norm, grows over k rounds at most by the norm of the dual
map's k-th power of the identity. With memory a single round's growth, taken to the power k, says
nothing: a round may stretch the state in directions that the next ones shrink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

import numpy as np

from fltheory.validation import FloatArray

_FORGOTTEN = 0.5
_LONGEST = 2000
_FEW = 1000


def gains(dual: Callable[[FloatArray], FloatArray], identity: FloatArray) -> Iterator[float]:
    """Yield bounds on the growth over 0, 1, 2, ... rounds.

    ``identity`` is (..., n, n), one for each state where states are kept apart.
    """
    matrices = identity
    while True:
        finite = bool(np.isfinite(matrices).all())
        yield float(np.linalg.norm(matrices, 2, axis=(-2, -1)).max()) if finite else np.inf
        matrices = dual(matrices)


@dataclass
class SteadyGrowth:
    """Bounds on the errors of M and m, each round growing them by one factor."""

    second_gain: float
    first_gain: float
    coupling: float
    second: float
    first: float

    def add(self, fresh_second: float, fresh_first: float) -> None:
        """Go on by a round that adds fresh errors."""
        self.second = self.second_gain * self.second + self.coupling * self.first + fresh_second
        self.first = self.first_gain * self.first + fresh_first

    def add_all(
        self, fresh_second: FloatArray, fresh_first: FloatArray
    ) -> tuple[list[float], list[float]]:
        """Go on by several rounds; return the bounds on the errors after each."""
        first = _accumulated(self.first_gain, fresh_first, self.first)
        pushes = self.coupling * np.array([self.first, *first[:-1]])
        second = _accumulated(self.second_gain, pushes + fresh_second, self.second)
        self.second, self.first = second[-1], first[-1]
        return second, first


def _accumulated(gain: float, added: FloatArray, held: float) -> list[float]:
    """Return v_1, v_2, ... of ``v_k = gain v_(k-1) + added_k``, with v_0 = ``held``."""
    if added.size <= _FEW:
        return list(accumulate(added.tolist(), lambda v, fresh: gain * v + fresh, initial=held))[1:]
    # A triangular system with two diagonals. To import SciPy takes longer than a few rounds.
    from scipy.linalg.blas import dtbsv

    diagonals = np.array([np.ones(added.size), np.full(added.size, -gain)], order="F")
    right = np.concatenate([[gain * held + added[0]], added[1:]])
    return cast(list[float], dtbsv(1, diagonals, right, lower=1, diag=1).tolist())


class ErrorGrowth:
    """Bounds on the errors of M and m, round after round.

    Each round's fresh errors are multiplied by the growth over the rounds since; where that has
    fallen to a half, all errors so far are taken together as a new beginning.

    Parameters
    ----------
    second_gains, first_gains : iterators of float
        Growth of errors of M and of m over 0, 1, 2, ... rounds.
    coupling : float
        How much an error of m adds to the next error of M.
    second, first : float
        Errors to begin with.
    """

    def __init__(
        self,
        second_gains: Iterator[float],
        first_gains: Iterator[float],
        coupling: float,
        second: float,
        first: float,
    ) -> None:
        self._source = second_gains, first_gains
        self._coupling = coupling
        self._gains: tuple[list[float], list[float]] = ([next(second_gains)], [next(first_gains)])
        self.second, self.first = second, first
        self._restart()

    def _restart(self) -> None:
        self._begun = self.second, self.first
        self._fresh: tuple[list[float], list[float]] = ([], [])

    def add(self, fresh_second: float, fresh_first: float) -> None:
        """Go on by a round that adds fresh errors."""
        self._fresh[0].append(fresh_second + self._coupling * self.first)
        self._fresh[1].append(fresh_first)
        rounds = len(self._fresh[0])
        self._know(rounds)
        self.second, self.first = (
            gain[rounds] * begun + float(np.dot(gain[rounds - 1 :: -1], fresh))
            for gain, begun, fresh in zip(self._gains, self._begun, self._fresh, strict=True)
        )
        if self._forgotten(rounds):
            self._restart()

    def add_all(
        self, fresh_second: FloatArray, fresh_first: FloatArray
    ) -> tuple[list[float], list[float]]:
        """Go on by several rounds; return the bounds on the errors after each."""
        second: list[float] = []
        first: list[float] = []
        while len(first) < len(fresh_first):
            held = len(self._fresh[0])
            last = self._last(held + len(fresh_first) - len(first))
            rounds = slice(len(first), len(first) + last - held)
            before = self.first
            firsts = self._after(1, fresh_first[rounds])
            pushed = self._coupling * np.array([before, *firsts[:-1]])
            second += self._after(0, fresh_second[rounds] + pushed)
            first += firsts
            self.second, self.first = second[-1], first[-1]
            if self._forgotten(last):
                self._restart()
        return second, first

    def _after(self, which: int, fresh: FloatArray) -> list[float]:
        """Hold what some rounds add to the errors of M (0) or m (1); return those after each."""
        held = self._fresh[which]
        known = len(held)
        held.extend(fresh.tolist())
        gain = np.array(self._gains[which][: len(held) + 1])
        grown = np.convolve(gain[:-1], held)[known : len(held)]
        return (gain[known + 1 :] * self._begun[which] + grown).tolist()

    def _last(self, wanted: int) -> int:
        """Return the round, counted from the beginning, up to which nothing is forgotten."""
        for rounds in range(len(self._fresh[0]) + 1, wanted):
            self._know(rounds)
            if self._forgotten(rounds):
                return rounds
        self._know(wanted)
        return wanted

    def _know(self, rounds: int) -> None:
        """Work out the growth over so many rounds."""
        while len(self._gains[0]) <= rounds:
            for held, source in zip(self._gains, self._source, strict=True):
                held.append(next(source))

    def _forgotten(self, rounds: int) -> bool:
        return rounds >= _LONGEST or max(gain[rounds] for gain in self._gains) <= _FORGOTTEN
