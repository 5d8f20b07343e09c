"""The mean over rounds of FedAU's weight error, for many cut-offs at once, by transforms.

Symbols are those of `weight_error`: f(k) is the chance that an interval has length k (the cut-off
geometric law), u(m, s) the chance that the m-th interval ends at s, and ``omega = s/m`` then. With
``w(s) = sum_{j < min(T - s, K)} (1-p)^j``, the expected number of rounds for which the interval
open after s leaves the weight as it is,

    T error = w(0) (p - 1)^2 + sum_s w(s) sum_m u(m, s) (p s/m - 1)^2.

The m-th power of ``F(z) = sum_k f(k) z^k`` has coefficients u(m, .), and ``D = z F'``
has k f(k), so that the sums over m are coefficients of functions known in closed form:

    sum_m u(m, s)         of  F/(1 - F),
    sum_m s u(m, s)/m     of  D/(1 - F),
    sum_m s u(m, s)/m^2   of  -D log(1 - F)/F.

They are read off on a circle of radius r < 1 (Abate and Whitt, 1992): coefficients beyond the
transform's length n come back weakened by r^n.
"""

from __future__ import annotations

import math

import numpy as np

from fltheory.validation import FloatArray

_ALIAS = 1e-14
_LENGTH = 4  # of the transform, in horizons
_MOST_ENTRIES = 2**21


def mean_weight_errors(p: float, cutoffs: FloatArray, rounds: int) -> FloatArray:
    """Return ``1/T sum_{t<T} E[(p omega_t - 1)^2]`` for each cut-off, (k,), to about 1e-10.

    `weight_error` has the error of each round, and a bound of its rounding.

    Parameters
    ----------
    p : float
        In (0, 1].
    cutoffs : array, (k,)
        Whole numbers of at least 1, or infinity.
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
    """Return the errors of cut-offs (k, 1) of at most T: none differs from one at T."""
    stays = 1 - p
    s = np.arange(rounds)
    weight = _ALIAS ** (s / size)  # r^s
    # Intervals of T rounds and more end after the last round that counts.
    before = s - 1
    law = np.where((s >= 1) & (s < longest), p * stays ** np.maximum(before, 0), 0.0)
    law = np.where(s == longest, stays ** np.maximum(before, 0), law)
    f = np.fft.rfft(law * weight, size)
    d = np.fft.rfft(s * law * weight, size)
    ratio = np.divide(-np.log(1 - f), f, out=np.ones_like(f), where=f != 0)
    # (p s/m - 1)^2 is 1 - 2 p s/m, and p^2 s times s/m^2.
    linear = np.fft.irfft((f - 2 * p * d) / (1 - f), size)[:, :rounds]
    square = np.fft.irfft(d * ratio, size)[:, :rounds]
    stays_open = -np.expm1(np.minimum(rounds - s, longest) * np.log1p(-p)) / p
    summed = stays_open * (linear + p**2 * s * square) / weight
    return np.asarray((stays_open[:, 0] * stays**2 + summed[:, 1:].sum(axis=1)) / rounds)
