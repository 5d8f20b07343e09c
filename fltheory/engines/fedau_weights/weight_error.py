"""The exact error of FedAU's online weights, ``E[(p omega_t - 1)^2]``.

A client takes part in each round with probability p, independently. FedAU's Algorithm 2 divides
time into intervals, each of which ends with a round in which the client took part, or after K
rounds. After t rounds, omega_t is the mean length of the intervals so far (1 before the first
ends).

If m intervals have ended at round s, ``omega_t = s/m`` while the next one is open. So it is enough
to know ``u(m, s)``, the probability that the m-th interval ends at s: an m-fold convolution of the
cut-off geometric distribution, computed by recursion over s. The open interval has lasted j rounds
with probability ``(1-p)^j``, j < K.

The mean over rounds is computed for many cutoffs at once by transforms. Let f(k) be the probability
that an interval has length k, and ``w(s) = sum_{j < min(T - s, K)} (1-p)^j`` the expected number of
rounds for which the interval open after s leaves the weight unchanged. Then

    T error = w(0) (p - 1)^2 + sum_s w(s) sum_m u(m, s) (p s/m - 1)^2.

The m-th power of ``F(z) = sum_k f(k) z^k`` has coefficients u(m, .), and ``D = z F'``
has k f(k), so that the sums over m are coefficients of functions known in closed form:

    sum_m u(m, s)         of  F/(1 - F),
    sum_m s u(m, s)/m     of  D/(1 - F),
    sum_m s u(m, s)/m^2   of  -D log(1 - F)/F.

The coefficients are computed from values on a circle of radius r < 1 (Abate and Whitt, 1992).
Aliases of coefficients beyond the transform's length n are damped by r^n.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.exact_or_float import is_exact
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

# A normal distribution has probability 2e-19 beyond nine standard deviations. If there are too few
# intervals for a normal distribution, the margin keeps them all. The probability cut off is added
# to the error bound.
_DEVIATIONS = 9.0
_MARGIN = 20
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class WeightError(ReadOnlyArrays):
    """Errors of the weights after t = 0 .. rounds-1 rounds.

    Attributes
    ----------
    values : array, (rounds,) or (n, rounds)
        ``E[(p omega_t - 1)^2]``.
    error : array of the same shape
        Bound on the error of ``values``: the probability that the recursion dropped or lost to
        rounding, times the largest square that this probability can multiply.
    """

    values: FloatArray
    error: FloatArray


def weight_error(p: ArrayLike, cutoff: float, rounds: int) -> WeightError:
    """Return ``E[(p omega_t - 1)^2]`` for t = 0 .. rounds-1, by an exact recursion.

    FedAU (Wang and Ji, ICLR 2024), Algorithm 2 under Bernoulli participation. The time is
    proportional to ``rounds`` times the number of interval counts that are not negligible, which is
    about the square root of ``rounds``.

    Parameters
    ----------
    p : float or array, (n,)
        Probability that a client takes part in a round, in (0, 1].
    cutoff : int or math.inf
        K, the longest interval.
    rounds : int

    Raises
    ------
    ValueError
        If p is outside (0, 1], the cutoff is not a positive integer or infinite, or there is less
        than one round.

    Examples
    --------
    >>> weight_error(0.5, 1, 3).values.tolist()
    [0.25, 0.25, 0.25]
    >>> weight_error(0.5, math.inf, 3).values.tolist()
    [0.25, 0.25, 0.1875]
    """
    probabilities = checked_chances(p)
    rounds = validation.whole_number("rounds", rounds, at_least=1)
    longest = checked_cutoff(cutoff)
    curves = [_curve(float(each), longest, rounds) for each in np.atleast_1d(probabilities)]
    shape = (*probabilities.shape, rounds)
    values, errors = (np.array(part).reshape(shape) for part in zip(*curves, strict=True))
    return WeightError(values, errors)


def checked_chances(p: ArrayLike) -> FloatArray:
    """Return probabilities as an array, () or (n,); raise ValueError if any is not in (0, 1]."""
    probabilities = validation.availability("p", p, shape="() or (n,)")
    if probabilities.ndim > 1 or probabilities.size == 0:
        raise ValueError(f"p must be a number or an array (n,), got shape {probabilities.shape}")
    return probabilities


def checked_cutoff(cutoff: float) -> float:
    """Return K after checking that it is a positive integer or infinite.

    Raises
    ------
    ValueError
    """
    if isinstance(cutoff, float) and cutoff == math.inf:
        return math.inf
    return validation.whole_number("cutoff", cutoff, at_least=1)


def _curve(p: float, cutoff: float, rounds: int) -> tuple[FloatArray, FloatArray]:
    """Return errors and their bounds for one client."""
    stays = 1 - p
    ended, mass = np.empty(rounds), np.empty(rounds)
    ended[0], mass[0] = (p - 1) ** 2, 1.0
    for s, first, row in _ends(p, cutoff, rounds):
        counts = np.arange(first, first + row.size)
        ended[s] = row @ (p * s / counts - 1) ** 2
        mass[s] = row.sum()
    open_for = stays ** np.arange(min(cutoff, rounds))
    values = np.convolve(ended, open_for)[:rounds]
    kept = np.convolve(mass, open_for)[:rounds]
    rounding = 8 * _EPS * np.arange(1, rounds + 1)
    largest = max(1.0, (p * min(cutoff, rounds) - 1) ** 2)
    return values, (np.abs(1 - kept) + rounding) * largest


def _ends(p: float, cutoff: float, rounds: int) -> Iterator[tuple[int, int, FloatArray]]:
    """Yield, for s = 1 .. rounds-1, the tuple of s, the least m kept, and u(m, s) for all m kept.

    ``u(m, s) = sum_{k<K} p (1-p)^(k-1) u(m-1, s-k) + (1-p)^(K-1) u(m-1, s-K)``; the first sum
    is updated from one s to the next.
    """
    stays = 1 - p
    cut = 0.0 if cutoff == math.inf else stays ** (cutoff - 1)
    past: deque[tuple[int, FloatArray]] = deque([(0, np.ones(1))], maxlen=int(min(cutoff, rounds)))
    carried: tuple[int, FloatArray] = (0, np.zeros(0))
    moments = interval_moments(p, cutoff)
    for s in range(1, rounds):
        first, last = _counts_kept(*moments, cutoff, s)
        size = last + 1 - first
        whole = len(past) == cutoff
        long_ago = _shifted(past[0], first - 1, size) if whole else np.zeros(size)
        recent = stays * _shifted(carried, first, size)
        recent += p * (_shifted(past[-1], first - 1, size) - cut * long_ago)
        carried = first, recent
        row = recent + cut * long_ago
        past.append((first, row))
        yield s, first, row


def _counts_kept(mean: float, variance: float, cutoff: float, s: int) -> tuple[int, int]:
    """Return the range of interval counts within nine standard deviations after s rounds."""
    spread = _DEVIATIONS * math.sqrt(s * variance / mean**3) + _MARGIN
    fewest = 1 if cutoff == math.inf else math.ceil(s / cutoff)
    return max(1, fewest, math.floor(s / mean - spread)), min(s, math.ceil(s / mean + spread))


def interval_moments(p: Any, cutoff: float) -> tuple[Any, Any]:
    """Return the mean and variance of an interval's length, which is cut-off geometric.

    From FedAU's proof of Theorem 3: ``E S = (1 - (1-p)^K)/p`` and ``Var S = (1-p)/p^2 -
    (2K-1)(1-p)^K/p - (1-p)^(2K)/p^2``.
    """
    stays = 1 - p
    if cutoff == math.inf or stays == 0:
        return 1 / p, stays / p**2
    if is_exact(p):
        mean: Any = (1 - stays**cutoff) / p
        odd = (2 * int(cutoff) - 1) * stays**cutoff / p
        return mean, stays / p**2 - odd - stays ** (2 * int(cutoff)) / p**2
    mean = -math.expm1(cutoff * math.log1p(-p)) / p
    variance = stays / p**2 - (2 * cutoff - 1) * stays**cutoff / p - stays ** (2 * cutoff) / p**2
    return mean, max(variance, 0.0)


def _shifted(row: tuple[int, FloatArray], first: int, size: int) -> FloatArray:
    """Return ``size`` entries of a row from index ``first``, with zeros where it has none."""
    start, values = row
    low, high = max(first, start), min(first + size, start + values.size)
    if low == first and high == first + size:
        return values[low - start : high - start]
    result = np.zeros(size)
    if low < high:
        result[low - first : high - first] = values[low - start : high - start]
    return result


# The transform is taken on a circle of radius r with r^size = `_ALIAS`, which damps aliases by that
# factor. Rounds reach a quarter of the transform's length (`_LENGTH`), so dividing by r^s enlarges
# the rounding error of 1e-16 by a factor of at most 1e-14^(-1/4) = 3,200.
_ALIAS = 1e-14
_LENGTH = 4  # length of the transform, in horizons
_MOST_ENTRIES = 2**21


def mean_weight_errors(p: float, cutoffs: FloatArray, rounds: int) -> FloatArray:
    """Return ``1/T sum_{t<T} E[(p omega_t - 1)^2]`` for each cutoff, (k,), to about 1e-10.

    `weight_error` returns the error of each round, with a bound on its rounding.

    Parameters
    ----------
    p : float
        In (0, 1].
    cutoffs : array, (k,)
        Positive integers, or infinity.
    rounds : int
        T.

    Examples
    --------
    >>> mean_weight_errors(0.5, np.array([1, np.inf]), 3).round(12).tolist()
    [0.25, 0.229166666667]
    """
    if p == 1:
        return np.zeros(len(cutoffs))
    size = 2 ** math.ceil(math.log2(_LENGTH * rounds))
    at_once = max(1, _MOST_ENTRIES // size)
    parts = [
        _errors(p, np.minimum(cutoffs[first : first + at_once], rounds)[:, None], rounds, size)
        for first in range(0, len(cutoffs), at_once)
    ]
    return np.concatenate(parts)


def _errors(p: float, longest: FloatArray, rounds: int, size: int) -> FloatArray:
    """Return the errors of cutoffs (k, 1) of at most T; larger ones have the same effect as T."""
    stays = 1 - p
    s = np.arange(rounds)
    weight = _ALIAS ** (s / size)  # r^s
    # Intervals of T or more rounds end after the last round that counts.
    before = s - 1
    law = np.where((s >= 1) & (s < longest), p * stays ** np.maximum(before, 0), 0.0)
    law = np.where(s == longest, stays ** np.maximum(before, 0), law)
    f = np.fft.rfft(law * weight, size)
    d = np.fft.rfft(s * law * weight, size)
    ratio = np.divide(-np.log(1 - f), f, out=np.ones_like(f), where=f != 0)
    # (p s/m - 1)^2 is 1 - 2 p s/m plus p^2 s times s/m^2.
    linear = np.fft.irfft((f - 2 * p * d) / (1 - f), size)[:, :rounds]
    square = np.fft.irfft(d * ratio, size)[:, :rounds]
    stays_open = -np.expm1(np.minimum(rounds - s, longest) * np.log1p(-p)) / p
    summed = stays_open * (linear + p**2 * s * square) / weight
    return np.asarray((stays_open[:, 0] * stays**2 + summed[:, 1:].sum(axis=1)) / rounds)
