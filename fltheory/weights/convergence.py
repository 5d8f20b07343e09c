"""The weights of fastest convergence in closed form: Appendix D, without any bias.

At the optimum ``q_k = (lambda pi_k - theta)+ / a_k`` by equation (27), so the clients in use are
the most available ones. For the m most available, the best ratio ``lambda`` is the root of a
quadratic; the right m is the largest for which the last client still gets a positive weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fltheory.validation import FloatArray
from fltheory.weights.trade_off import TradeOff


def importance(problem: TradeOff) -> FloatArray:
    """Return p (N,) that minimises ``(1/2 q'Aq + b) / (pi'q)``; needs positive ``a``."""
    q = fastest(problem.availability, problem.a, problem.b, problem.total)
    p = problem.availability * q
    return np.asarray(p / p.sum())


def fastest(availability: Any, a: Any, b: Any, total: Any) -> Any:
    """Return the minimiser q (N,) itself; from exact numbers, in exact numbers."""
    order = np.argsort(-availability, kind="stable")
    shown = availability[order]
    flexibility = 1 / a[order]
    mass = np.cumsum(flexibility)
    nothing = 0 * mass[:1]
    # How far the mean of the m most available is above the last of them, and further down that
    # above the next: sums of what is not negative, in which nothing cancels.
    steps = shown[:-1] - shown[1:]
    above = np.concatenate([nothing, np.cumsum(mass[:-1] * steps)]) / mass
    joins = flexibility[1:] * (mass[:-1] / mass[1:]) * (above[:-1] + steps) ** 2
    spread = np.concatenate([nothing, np.cumsum(joins)])
    even = total / mass
    load = total * even + 2 * b
    middle = total * (shown + above)
    ratio = load / (middle + np.sqrt(middle**2 + spread * load))
    last = int(np.flatnonzero(even > ratio * above)[-1])
    price = ratio[last] * ((shown - shown[last]) - above[last]) + even[last]
    q = np.empty_like(price)
    # Zero of the same kind of number; what is added makes 0.0 of -0.0.
    q[order] = flexibility * np.where(np.asarray(price > 0, dtype=bool), price, 0 * price + 0)
    return q
