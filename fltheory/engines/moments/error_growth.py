"""Growth of the moments' rounding errors over many rounds of one map.

An error of M, measured in the nuclear norm, grows over k rounds at most by the norm of the dual
map's k-th power of the identity. With memory a single round's growth, taken to the power k, says
nothing: a round may stretch the state in directions that the next ones shrink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def steady_errors(
    growth: tuple[float, float],
    coupling: float,
    begun: tuple[float, float],
    fresh: tuple[FloatArray, FloatArray],
) -> tuple[list[float], list[float]]:
    """Return bounds on the errors of M and m after each of some rounds that grow them by a factor.

    Parameters
    ----------
    growth : pair of float
        Of errors of M and of m in one round.
    coupling : float
        How much an error of m adds to the next error of M.
    begun : pair of float
        Errors to begin with.
    fresh : pair of arrays
        What each round adds.
    """
    first = _accumulated(growth[1], fresh[1], begun[1])
    pushes = coupling * np.array([begun[1], *first[:-1]])
    return _accumulated(growth[0], pushes + fresh[0], begun[0]), first


def _accumulated(gain: float, added: FloatArray, held: float) -> list[float]:
    """Return v_1, v_2, ... of ``v_k = gain v_(k-1) + added_k``, with v_0 = ``held``."""
    if added.size <= _FEW:
        return list(accumulate(added.tolist(), lambda v, fresh: gain * v + fresh, initial=held))[1:]
    # A triangular system with two diagonals. To import SciPy takes longer than a few rounds.
    from scipy.linalg.blas import dtbsv

    diagonals = np.array([np.ones(added.size), np.full(added.size, -gain)], order="F")
    right = np.concatenate([[gain * held + added[0]], added[1:]])
    return cast(list[float], dtbsv(1, diagonals, right, lower=1, diag=1).tolist())


def grown_errors(
    growth: tuple[Iterator[float], Iterator[float]],
    coupling: float,
    begun: tuple[float, float],
    fresh: tuple[FloatArray, FloatArray],
) -> tuple[list[float], list[float]]:
    """Return the same where growth over 0, 1, 2, ... rounds is known.

    Each round's fresh errors are multiplied by the growth over the rounds since; where that has
    fallen to a half, all errors so far are taken together as a new beginning.
    """
    known = [next(growth[0])], [next(growth[1])]
    rounds = 0
    while rounds < min(len(fresh[0]), _LONGEST):
        rounds += 1
        for held, source in zip(known, growth, strict=True):
            held.append(next(source))
        if max(held[rounds] for held in known) <= _FORGOTTEN:
            break
    second, first = [begun[0]], [begun[1]]
    for begin in range(0, len(fresh[0]), rounds):
        part = slice(begin, begin + rounds)
        firsts = _grown(known[1], first[-1], fresh[1][part])
        pushed = coupling * np.array([first[-1], *firsts[:-1]])
        second += _grown(known[0], second[-1], fresh[0][part] + pushed)
        first += firsts
    return second[1:], first[1:]


def _grown(growth: list[float], begun: float, fresh: FloatArray) -> list[float]:
    gain = np.array(growth[: len(fresh) + 1])
    grown = np.convolve(gain[:-1], fresh)[: len(fresh)]
    return cast(list[float], (gain[1:] * begun + grown).tolist())
