"""The complexity term A(m, delta) of SA-FL's Lemma 1 and Theorem 3, as printed and corrected.

In the printed term, ``(1/m) log(1/delta)`` is inside the logarithm, where delta has almost no
effect. But the probability that a sample of m points fails is exponentially small in m and no
smaller, so no bound of this form holds for all delta. In the uniform Bernstein bounds that the
lemma cites, the term is outside the logarithm, and m/d is at least one. The probability that the
shares of m uniform points deviate by such a term is the probability of crossing a line, which is
known in closed form.
"""

from __future__ import annotations

import math

import numpy as np

from fltheory import validation


def printed_complexity(m: int, delta: float, d: int = 1) -> float:
    """Return ``(d/m) log(m/d + (1/m) log(1/delta))``; it is negative for m well below d.

    Raises
    ------
    ValueError
        If m or d is below 1, or delta is outside (0, 1).
    """
    _check(m, delta, d)
    return d / m * math.log(m / d - math.log(delta) / m)


def cited_complexity(m: int, delta: float, d: int = 1) -> float:
    """Return ``(d/m) log(max(m, d)/d) + (1/m) log(1/delta)``.

    Raises
    ------
    ValueError
        As in `printed_complexity`.
    """
    _check(m, delta, d)
    return d / m * math.log(max(m, d) / d) - math.log(delta) / m


def _check(m: int, delta: float, d: int) -> None:
    validation.whole_number("m", m, at_least=1)
    validation.whole_number("d", d, at_least=1)
    validation.real_number("delta", delta, "inside (0, 1)", lambda chance: 0 < chance < 1)


def log_crossing(m: int, slope: float, start: float) -> float:
    """Return log P[F_m(t) < slope (t - start) for some t] for m points uniform on [0, 1].

    F_m crosses the line at some t_j = start + j/(slope m) with exactly j points below it. The
    probability is Dempster's sum over j of ``C(m, j) start t_j^(j-1) (1 - t_j)^(m-j)`` (Annals of
    Mathematical Statistics 30, 1959) over the terms with t_j < 1.

    Parameters
    ----------
    m : int
    slope : float
        Positive.
    start : float
        The zero of the line, positive; from 1 on there is no crossing.

    Examples
    --------
    With a single point, the line is crossed if the point is above 1/2, where the line becomes
    positive:

    >>> round(math.exp(log_crossing(1, 0.5, 0.5)), 12)
    0.5
    """
    from scipy.special import gammaln, logsumexp

    if start >= 1:
        return -math.inf
    j = np.arange(min(m, math.ceil(slope * m * (1 - start)) + 1), dtype=np.float64)
    place = start + j / (slope * m)
    j, place = j[place < 1], place[place < 1]
    terms = gammaln(m + 1) - gammaln(j + 1) - gammaln(m - j + 1) + math.log(start)
    terms += (j - 1) * np.log(place) + (m - j) * np.log1p(-place)
    return float(min(logsumexp(terms), 0.0))


def log_less_than_half_seen(m: int, level: float) -> float:
    """Return log P[P_m[0, t] < t/2 - level for some t], for shares P_m of m uniform points."""
    return log_crossing(m, 0.5, 2 * level) if level > 0 else 0.0


def log_more_than_twice_seen(m: int, level: float) -> float:
    """Return log P[P_m[0, t] > 2t + level for some t], a line crossing from the other end."""
    return log_crossing(m, 2.0, (1 + level) / 2) if level > 0 else 0.0
