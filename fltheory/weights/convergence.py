"""The weights of fastest convergence in closed form (Appendix D), without the bias term.

At the optimum ``q_k = (lambda pi_k - theta)+ / a_k`` by equation (27), so the clients with positive
weight are the most available ones. For the m most available clients, the best ratio ``lambda`` is
the root of a quadratic. The right m is the largest for which the last client still gets a positive
weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fltheory.validation import FloatArray
from fltheory.weights.trade_off import TradeOff


def importance(problem: TradeOff) -> FloatArray:
    """Return p (N,) that minimises ``(1/2 q'Aq + b) / (pi'q)``, for positive ``a``."""
    q = fastest(problem.availability, problem.a, problem.b, problem.total)
    p = problem.availability * q
    return np.asarray(p / p.sum())


def fastest(availability: Any, a: Any, b: Any, total: Any) -> Any:
    """Return the minimiser q (N,), in exact numbers if the arguments are exact."""
    order = np.argsort(-availability, kind="stable")
    shown = availability[order]
    flexibility = 1 / a[order]
    mass = np.cumsum(flexibility)
    nothing = 0 * mass[:1]
    # ``above`` is the weighted mean of the m most available clients minus the last of them, and
    # ``spread`` is their weighted sum of squared deviations. Both are sums of nonnegative terms, in
    # which nothing cancels.
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
    # This gives zero in the same number type; adding 0 turns -0.0 into 0.0.
    q[order] = flexibility * np.where(np.asarray(price > 0, dtype=bool), price, 0 * price + 0)
    return q
