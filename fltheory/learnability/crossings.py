"""How likely the empirical distribution of uniform points is to cross a line, in closed form."""

from __future__ import annotations

import math

import numpy as np


def log_crossing(m: int, slope: float, start: float) -> float:
    """Return log P[F_m(t) < slope (t - start) for some t] for m points uniform on [0, 1].

    The line is passed from above at a t_j = start + j/(slope m), below which there are j points:
    Dempster's sum over j of ``C(m, j) start t_j^(j-1) (1 - t_j)^(m-j)`` (Annals of Mathematical
    Statistics 30, 1959), with the terms of t_j < 1.

    Parameters
    ----------
    m : int
    slope : float
        Above 0.
    start : float
        In (0, 1], where the line meets 0; from 1 on nothing crosses it.

    Examples
    --------
    One point, which must be above 1/2: the line is above 0 from there on.

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
    """Return log P[P_m[0, t] < t/2 - level for some t], P_m the share of m uniform points."""
    return log_crossing(m, 0.5, 2 * level) if level > 0 else 0.0


def log_more_than_twice_seen(m: int, level: float) -> float:
    """Return log P[P_m[0, t] > 2t + level for some t]: seen from the other end, a line again."""
    return log_crossing(m, 2.0, (1 + level) / 2) if level > 0 else 0.0
