"""Compare sampled means with the truth, with a stated probability of a false alarm."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from fltheory.claims.curves import BoundCurve

FALSE_ALARM = 1e-9


def agree(
    truth: ArrayLike, low: ArrayLike, high: ArrayLike, *, replicas: int, drawn: float = 1e-3
) -> bool:
    """Return whether the truth lies in Student intervals, widened to miss it with 1e-9.

    Parameters
    ----------
    truth, low, high : array_like, (n,)
        The truth and the sampled intervals, which together miss with probability ``drawn``.
    """
    known, lower, upper = (np.asarray(side, dtype=np.float64) for side in (truth, low, high))
    law = stats.t(replicas - 1)
    wider = law.isf(FALSE_ALARM / (2 * known.size)) / law.isf(drawn / (2 * known.size))
    centre, reach = (upper + lower) / 2, wider * (upper - lower) / 2
    return bool((np.abs(known - centre) <= reach + 1e-12).all())


def agrees(curve: BoundCurve, truth: ArrayLike) -> bool:
    """Return whether a curve's sample agrees with the truth, at an error probability of 1e-9."""
    assert curve.sampled is not None
    assert curve.interval is not None
    low, high = curve.sampled - curve.interval, curve.sampled + curve.interval
    return agree(truth, low, high, replicas=curve.replicas, drawn=curve.error_probability)
