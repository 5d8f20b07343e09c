"""Sampled means against the truth, with a stated probability of a false alarm."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from fltheory.claims.curves import BoundCurve

FALSE_ALARM = 1e-9


def agree(
    truth: ArrayLike, low: ArrayLike, high: ArrayLike, *, replicas: int, drawn: float = 1e-3
) -> bool:
    """Tell whether the truth lies in Student intervals made wide enough to miss with 1e-9.

    Parameters
    ----------
    truth, low, high : array_like, (n,)
        The latter are the intervals as drawn, which together miss with probability ``drawn``.
    """
    known, lower, upper = (np.asarray(side, dtype=np.float64) for side in (truth, low, high))
    law = stats.t(replicas - 1)
    wider = law.isf(FALSE_ALARM / (2 * known.size)) / law.isf(drawn / (2 * known.size))
    centre, reach = (upper + lower) / 2, wider * (upper - lower) / 2
    return bool((np.abs(known - centre) <= reach + 1e-12).all())


def agrees(curve: BoundCurve, truth: ArrayLike) -> bool:
    """Tell whether a curve's sample agrees with the truth, up to chances of 1e-9."""
    assert curve.sampled is not None
    assert curve.interval is not None
    low, high = curve.sampled - curve.interval, curve.sampled + curve.interval
    return agree(truth, low, high, replicas=curve.replicas, drawn=curve.error_probability)
