"""A norm in which a stable moment recursion does not grow, for the bound on its rounding error.

The second moments' map ``M -> E[A M A']`` grows a positive M at most by ``||E[A'A]||`` a round,
in the trace. For algorithms with memory that is above one even where the moments converge: the
trace adds models to memories, of other units. With ``X = I + E[A'XA]``, which exists exactly where
the moments converge, ``tr(X M)`` never grows, and ``X >= I``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fltheory.engines.probing import UNIT_ROUNDOFF
from fltheory.validation import FloatArray

_LARGEST_RESIDUAL = 0.1


@dataclass(frozen=True)
class SteadyNorm:
    """``tr(X |M|)`` and ``sqrt(v'Xv)``, at least the nuclear and the Euclidean norm.

    Attributes
    ----------
    weight : float
        The largest eigenvalue of X.
    gain : float
        ``E[A'XA] <= gain X``.
    """

    weight: float
    gain: float

    def pays(self, second_gain: float | FloatArray, rounds: int) -> bool:
        """Whether so many rounds grow less in this norm than by ``second_gain`` in the trace."""
        here = math.log(self.weight) + rounds * max(0.0, math.log(self.gain))
        return here < rounds * math.log(float(second_gain))

    def propagate(
        self,
        second: float,
        first: float,
        fresh_second: list[float],
        fresh_first: list[float],
        offset_size: float | FloatArray,
    ) -> tuple[list[float], list[float]]:
        """Return bounds on the errors of M and m after each round, from those before.

        ``fresh_second`` and ``fresh_first`` are what each round adds, in the nuclear and the
        Euclidean norm; ``offset_size`` is ``sqrt(E||b||^2)``.
        """
        root = math.sqrt(self.weight)
        coupling = 2 * math.sqrt(self.gain) * root * float(offset_size)
        second, first = self.weight * second, root * first
        seconds, firsts = [], []
        for added_second, added_first in zip(fresh_second, fresh_first, strict=True):
            second = self.gain * second + coupling * first + self.weight * added_second
            first = math.sqrt(self.gain) * first + root * added_first
            seconds.append(second)
            firsts.append(first)
        return seconds, firsts


def steady_norm(spread: FloatArray) -> SteadyNorm | None:
    """Return the norm for ``M -> E[A M A']``, an (n^2, n^2) matrix on flattened M.

    None where there is no such norm, because the moments do not converge, or where it is not
    found to within rounding. Any X that is at least I would do: what is solved for is not trusted,
    and the gain is that of the X found.
    """
    n = math.isqrt(spread.shape[0])
    try:
        solved = np.linalg.solve(np.eye(n * n) - spread.T, np.eye(n).ravel()).reshape(n, n)
    except np.linalg.LinAlgError:
        return None
    x = 0.5 * (solved + solved.T)
    if not np.isfinite(x).all():
        return None
    moved = (spread.T @ x.ravel()).reshape(n, n)
    eigenvalues, vectors = np.linalg.eigh(x)
    if eigenvalues[0] < 1 - _LARGEST_RESIDUAL:
        return None
    inverse_root = vectors / np.sqrt(eigenvalues)
    weight = float(eigenvalues[-1])
    rounding = 64 * n * n * UNIT_ROUNDOFF * weight
    gain = float(np.linalg.eigvalsh(inverse_root.T @ moved @ inverse_root)[-1]) + rounding
    # X may be a little below I by rounding: scaled, it is not.
    return SteadyNorm(weight / float(eigenvalues[0]) + rounding, max(gain, UNIT_ROUNDOFF))
