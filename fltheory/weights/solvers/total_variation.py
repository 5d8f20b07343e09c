"""The total-variation bias of Theorem 3, and a bound on how far weights are from optimal."""

from __future__ import annotations

import numpy as np

from fltheory.validation import FloatArray
from fltheory.weights.trade_off import TradeOff


def distance(problem: TradeOff, p: FloatArray) -> float:
    """Return ``d_TV(alpha, p) = 1/2 sum_k |alpha_k - p_k|``."""
    return 0.5 * float(np.abs(problem.target_weights - p).sum())


def relative_gap(problem: TradeOff, p: FloatArray) -> float:
    """Return a bound on ``1 - minimum / value`` at p, for any p of the simplex.

    Both terms are replaced by tangents from below: the first by its linearisation, the second
    by ``2 d d' - d^2`` for its distance d at p. What is left moves mass from alpha, a client's
    whole mass or none of it, to the client of least slope: it pays where the slopes differ by
    more than the toll ``2 bias d``. So the minimum of the bound is known in closed form.
    """
    s = problem.spread(p)
    _, theta = problem.multipliers(p)
    slope = problem.curvature * p / s + theta * problem.rarity
    at_p = distance(problem, p)
    toll = 2 * problem.bias * at_p
    gained = np.maximum(slope - slope.min() - toll, 0.0)
    value = problem.optimization_error(p)
    least = value + float(slope @ (problem.target_weights - p) - problem.target_weights @ gained)
    least -= problem.bias * at_p**2
    value += problem.bias * at_p**2
    return max(value - least, 0.0) / value if value > 0 else 0.0
