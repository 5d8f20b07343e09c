"""Shapley's value of a game: what each player adds, averaged over all orders of arrival.

A game is the worth of every coalition, an array (2^N,): bit i of a coalition's index says whether
player i is in it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.validation import FloatArray

_MOST_PLAYERS = 20


def shapley_values(worth: ArrayLike) -> FloatArray:
    """Return each player's value, (N,), exactly, over all coalitions.

    ``phi_i = sum_{S without i} |S|! (N - |S| - 1)! / N! (v(S + i) - v(S))`` (Shapley, 1953).

    Parameters
    ----------
    worth : array, (2^N,)
        v of every coalition, the empty one first; N from 1 to 20.

    Raises
    ------
    ValueError
        For another number of coalitions.

    Examples
    --------
    >>> shapley_values([0.0, 1.0, 1.0, 4.0]).tolist()
    [2.0, 2.0]
    """
    v = validation.real_array("worth", worth, shape="(2^N,)")
    n = v.size.bit_length() - 1
    if v.ndim != 1 or v.size != 2**n or not 1 <= n <= _MOST_PLAYERS:
        raise ValueError(
            f"worth must have 2^N entries, N from 1 to {_MOST_PLAYERS}, got shape {v.shape}"
        )
    size = coalitions(n).sum(axis=1)
    weight = np.array([1 / (n * math.comb(n - 1, s)) for s in range(n)])
    values = np.empty(n)
    for player in range(n):
        without = np.flatnonzero(~coalitions(n)[:, player])
        gain = v[without + 2**player] - v[without]
        values[player] = weight[size[without]] @ gain
    return values


def coalitions(n_players: int) -> np.ndarray:
    """Return who is in each coalition, booleans (2^N, N)."""
    return (np.arange(2**n_players)[:, None] >> np.arange(n_players)) % 2 == 1


def quadratic_shapley_values(linear: FloatArray, quadratic: FloatArray) -> FloatArray:
    """Return the values of ``v(S) = sum_{i in S} l_i + sum_{i, j in S} Q_ij``, in closed form.

    Whatever two players make together they share equally: ``phi_i = l_i + sum_j Q_ij`` for
    symmetric Q.
    """
    return np.asarray(linear + 0.5 * (quadratic + quadratic.T).sum(axis=1))
