"""The optimal weights as a conic program, by cvxpy and Clarabel.

With ``z_k = p_k / u_k``, u a fixed point of the simplex, every term is convex by cvxpy's rules:
s is affine in z, so ``1/2 sum_k c_k p_k^2 / s`` is a quadratic over a linear function, ``b s`` is
affine, and ``chi2 = sum_k alpha_k^2 / p_k - 1`` is a sum of inverses. The scale u matters: in p
itself the solver stops 1e-3 too high at a thousand clients and says "optimal". It is 1/N at first
and, where that is not good enough, the point just found.

The solver is asked for more than it can do and its status is not read: callers judge the point.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.binary_operators import multiply
from cvxpy.atoms.elementwise.inv_pos import inv_pos
from cvxpy.atoms.elementwise.power import power
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.quad_over_lin import quad_over_lin

from fltheory.validation import FloatArray
from fltheory.weights import total_variation
from fltheory.weights.trade_off import TradeOff

_PRECISION = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
_PASSES = 3
_GOOD_ENOUGH = 1e-4
_LEAST_UNIT = 1e-6

_Bias = Callable[[cp.Variable, FloatArray], cp.Expression]


def importance(problem: TradeOff) -> FloatArray:
    """Return p (N,) that minimises the optimisation error plus the chi-square bias.

    Raises
    ------
    ArithmeticError
        If the solver returns no point.
    """

    def divergence(z: cp.Variable, unit: FloatArray) -> cp.Expression:
        counted = np.flatnonzero(problem.target_weights)
        return (problem.target_weights[counted] ** 2 / unit[counted]) @ inv_pos(z[counted])

    return _importance(problem, divergence, problem.kkt_residual)


def total_variation_importance(problem: TradeOff) -> FloatArray:
    """Return p (N,) that minimises the optimisation error plus ``bias * d_TV(alpha, p)^2``.

    Raises
    ------
    ArithmeticError
        If the solver returns no point.
    """

    def squared_distance(z: cp.Variable, unit: FloatArray) -> cp.Expression:
        return power(0.5 * norm1(problem.target_weights - multiply(unit, z)), 2)

    def gap(p: FloatArray) -> float:
        return total_variation.relative_gap(problem, p)

    return _importance(problem, squared_distance, gap)


def _importance(
    problem: TradeOff, divergence: _Bias, miss: Callable[[FloatArray], float]
) -> FloatArray:
    unit = np.full(problem.n_clients, 1.0 / problem.n_clients)
    found: list[tuple[float, FloatArray]] = []
    for _ in range(_PASSES):
        p = _solve(problem, divergence, unit)
        if p is None:
            break
        found.append((miss(p), p))
        if found[-1][0] <= _GOOD_ENOUGH:
            break
        unit = np.maximum(p, _LEAST_UNIT / problem.n_clients)
    if not found:
        raise ArithmeticError("Clarabel found no weights at all")
    return min(found, key=lambda pair: pair[0])[1]


def _solve(problem: TradeOff, divergence: _Bias, unit: FloatArray) -> FloatArray | None:
    """Return the solver's p for variables in units of ``unit`` (N,), or None if it has none."""
    z = cp.Variable(problem.n_clients, nonneg=True)
    spread = problem.spread(unit)
    size = problem.optimization_error(unit) + problem.bias
    s = (problem.rarity * unit / (problem.total * spread)) @ z
    root = np.sqrt(problem.curvature / (spread * size)) * unit
    objective = 0.5 * quad_over_lin(multiply(root, z), s) + (problem.b * spread / size) * s
    if problem.bias > 0:
        objective += (problem.bias / size) * divergence(z, unit)
    program = cp.Problem(cp.Minimize(objective), [unit @ z == 1])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        try:
            program.solve(solver=cp.CLARABEL, **_PRECISION)
        except cp.error.SolverError:
            return None
    if z.value is None:
        return None
    p = unit * np.maximum(z.value, 0.0)
    return np.asarray(p / p.sum(), dtype=np.float64)
