"""Confidence intervals for a mean that hold at every sample size, however rare the large values.

A Student interval is as wide as the sample's spread, and so of width zero where a rare event
that carries the mean has not been seen. The intervals here rest on the range of the variable
alone. For independent V_1, ..., V_n >= 0 of mean m and a share ``b`` in (0, 1) fixed beforehand,
``prod_i (1 - b + b V_i / m)`` is not negative and has mean one, so it exceeds 1/delta with a
probability of at most delta (Markov), and it decreases in m. Hence every m at which it exceeds
1/delta is refuted together with all that are smaller. With ``y_i = V_i / m - 1 >= -1``,

``log(1 + b y) >= b y - psi(b) y^2,  psi(b) = -log(1 - b) - b``

(Fan, Grama and Liu, Exponential inequalities for martingales with applications, EJP 20, 2015,
Lemma 4.1), so that the sum needs no more of the sample than its mean and its variance: a
quadratic in 1/m. Bets of this kind are those of Waudby-Smith and Ramdas, Estimating means of
bounded random variables by betting, JRSS B 86, 2024.

An upper end needs to know how large V can be: it is the lower end for ``ceiling - V``. Where V can
be larger, it is an upper end for the expectation of ``min(V, ceiling)`` all the same: the quadratic
``b y - psi(b) y^2`` grows with y up to ``b / (2 psi(b)) > 0``, so that draws beyond the ceiling,
whose y is below -1, make the sum smaller than draws at the ceiling would, and refute less.
"""

from __future__ import annotations

import numpy as np

from fltheory.validation import FloatArray

# Shares are fixed before anything is drawn, from one for a sample that hardly varies to one for a
# spread of a thousand times the mean. The error probability is split among them, half of it for the
# first: how much stays open where all draws agree is decided by that one alone.
_SHARES = np.concatenate([[0.98], 0.75 * 2.0 ** -np.arange(0, 12)])
_PENALTIES = -np.log1p(-_SHARES) - _SHARES
_BUDGETS = np.concatenate([[0.5], np.full(12, 0.5 / 12)])


def least_mean(
    mean: FloatArray, standard_error: FloatArray, count: int, error_probability: float
) -> FloatArray:
    """Return a number that the expectation of a nonnegative variable is not below.

    Of nothing else is anything assumed: neither a largest value, nor a variance. It is below
    the mean by about ``log(1/error_probability)/count`` of it even where all draws are equal.

    Parameters
    ----------
    mean, standard_error : array
        Of independent draws.
    count : int
        How many they are, at least 2.
    error_probability : float
        The chance that the expectation is below what is returned.

    Examples
    --------
    >>> least_mean(np.array([1.0]), np.array([0.0]), 1000, 1e-6).round(3)
    array([0.985])
    """
    levels = -np.log(_BUDGETS * error_probability) / count
    share, penalty, level = (
        values.reshape(-1, *(1,) * mean.ndim) for values in (_SHARES, _PENALTIES, levels)
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # With the variance over n, not n - 1: it stands for the mean of (V_i - mean)^2.
        square = (count - 1) * (standard_error / mean) ** 2
        # In t = mean/m - 1: share t - penalty (square (1 + t)^2 + t^2) >= level.
        slope = share - 2 * penalty * square
        constant = level + penalty * square
        root = slope**2 - 4 * penalty * (1 + square) * constant
        t = np.where((slope > 0) & (root >= 0), 2 * constant / (slope + np.sqrt(root)), np.inf)
        least = mean / (1 + t.min(axis=0))
    return np.where((mean > 0) & np.isfinite(least), least, 0.0)


def mean_within(
    mean: FloatArray,
    standard_error: FloatArray,
    count: int,
    *,
    floor: FloatArray,
    ceiling: FloatArray,
    error_probability: float,
) -> tuple[FloatArray, FloatArray]:
    """Return both ends of intervals for the expectations of variables of known range.

    Parameters
    ----------
    mean, standard_error, count
        As for `least_mean`.
    floor, ceiling : array
        Below the one the variable never is; above the other the upper end does not count it.
        Infinite where nothing is known, and then so is that end.
    error_probability : float
        The chance that an interval misses, half of it for either end.

    Examples
    --------
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> ends = mean_within(zero, zero, 1000, floor=zero, ceiling=one, error_probability=1e-6)
    >>> [end.round(3).tolist() for end in ends]
    [[0.0], [0.016]]
    """
    half = error_probability / 2
    with np.errstate(invalid="ignore"):
        above, below = np.maximum(mean - floor, 0.0), np.maximum(ceiling - mean, 0.0)
    lower = floor + least_mean(above, standard_error, count, half)
    upper = ceiling - least_mean(below, standard_error, count, half)
    # A mean outside its range refutes that end of it: nothing is known there then.
    lower = np.where(np.isfinite(floor) & (mean >= floor), lower, -np.inf)
    return lower, np.where(np.isfinite(ceiling) & (mean <= ceiling), upper, np.inf)
