"""The optimal weights from a conic program, by cvxpy and Clarabel.

Let ``z_k = p_k / u_k``, where u is a fixed point of the simplex. Every term is then convex by
cvxpy's rules: s is affine in z, so ``1/2 sum_k c_k p_k^2 / s`` is a quadratic over a linear
function, ``b s`` is affine, and ``chi2 = sum_k alpha_k^2 / p_k - 1`` is a sum of inverses. The
scale u matters. In terms of p itself, the solver stops 1e-3 too high for a thousand clients and
still reports "optimal". The scale is first 1/N and then, if that is not good enough, the point just
found.

This reaches an accuracy of about 1e-8 of the objective if its terms are of similar size. It reaches
no more, because the solver's tolerances are relative to the whole. So the program is then expanded
about the point found, r. The slopes of the Lagrangian there are known to rounding, and the
remainder of every term beyond its tangent is again a quadratic over a linear function, without
cancellation. With ``d = p - r``, ``e = s(p) - s(r)``,

``p^2 / s - tangent = (d - e r / s(r))^2 / (s(r) + e)``,   ``1/p - tangent = d^2 / (r^2 p)``.

Solving for d, in units in which the curvature is one and the step is about one, improves the result
by a further factor of the solver's accuracy. A few repetitions reach rounding accuracy.

The tolerances are set tighter than the solver can reach, and its status is ignored, because callers
judge the point.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.binary_operators import multiply
from cvxpy.atoms.affine.vstack import vstack
from cvxpy.atoms.elementwise.inv_pos import inv_pos
from cvxpy.atoms.elementwise.power import power
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.quad_over_lin import quad_over_lin

from fltheory.validation import FloatArray
from fltheory.weights.trade_off import TradeOff

_PRECISION = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
_PASSES = 3
_GOOD_ENOUGH = 1e-4
# The solver's tolerance is absolute, so variables are in units of the last solution, with units of
# at least a millionth of an equal share.
_LEAST_UNIT = 1e-6
_MOST_REFINEMENTS = 20
_EXACT_ENOUGH = 1e-9
# No client with a target may lie below this fraction of the point implied by its price.
_LEAST_SHARE = 0.1

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

    p = _importance(problem, divergence, problem.kkt_residual)
    best, least = p, problem.kkt_residual(p)
    for _ in range(_MOST_REFINEMENTS):
        if least <= _EXACT_ENOUGH:
            break
        refined = _refined(problem, p)
        if refined is None:
            break
        p, residual = refined, problem.kkt_residual(refined)
        if residual < least:
            best, least = p, residual
    return best


def total_variation_importance(problem: TradeOff) -> FloatArray:
    """Return p (N,) that minimises the optimisation error plus ``bias * d_TV(alpha, p)^2``.

    Raises
    ------
    ArithmeticError
        If the solver returns no point.
    """

    def squared_distance(z: cp.Variable, unit: FloatArray) -> cp.Expression:
        return power(0.5 * norm1(problem.target_weights - multiply(unit, z)), 2)

    return _importance(problem, squared_distance, problem.total_variation_gap)


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
    """Return the solver's p for variables in units of ``unit`` (N,), or None if it finds none."""
    z = cp.Variable(problem.n_clients, nonneg=True)
    spread = problem.spread(unit)
    size = problem.optimization_error(unit) + problem.bias
    s = (problem.rarity * unit / (problem.total * spread)) @ z
    root = np.sqrt(problem.curvature / (spread * size)) * unit
    objective = 0.5 * quad_over_lin(multiply(root, z), s) + (problem.b * spread / size) * s
    if problem.bias > 0:
        objective += (problem.bias / size) * divergence(z, unit)
    found = _solution(cp.Problem(cp.Minimize(objective), [unit @ z == 1]), z)
    return None if found is None else _on_simplex(unit * found)


def _refined(problem: TradeOff, p: FloatArray) -> FloatArray | None:
    """Return the solver's p for the program expanded about a point, or None if it finds none."""
    reference = _inside(problem, p)
    s = problem.spread(reference)
    lagrange, theta = problem.multipliers(reference)
    counted = np.flatnonzero(problem.bias * problem.target_weights)
    pull = problem.bias * problem.target_weights[counted] ** 2
    inverse = 1 / reference[counted]
    slope = problem.curvature * reference / s + theta * problem.rarity - lagrange
    slope[counted] -= pull * inverse**2
    bend = problem.curvature / s
    bend[counted] += 2 * pull * inverse**3
    free = np.where(reference > 0, slope, np.minimum(slope, 0.0))
    # No client's weight can fall by more than its whole size.
    bend = np.maximum(bend, np.divide(free, reference, out=0 * bend, where=reference > 0))
    step = float(np.linalg.norm(free / np.sqrt(bend)))
    if not 0 < step < np.inf:
        return None
    unit = step / np.sqrt(bend)
    d = cp.Variable(problem.n_clients)
    # This is a separate variable, because otherwise every client's term would contain all clients,
    # which takes N^2 numbers.
    grown = cp.Variable()
    root = np.sqrt(problem.curvature / s) / step
    lean = multiply(root * unit, d) - (root * reference) * grown
    objective = (slope * unit / step**2) @ d + 0.5 * quad_over_lin(lean, 1 + grown)
    constraints = [
        grown == (problem.rarity * unit / (problem.total * s)) @ d,
        unit @ d == 1 - float(reference.sum()),
        d >= -reference / unit,
    ]
    if counted.size:
        # The sum of the terms d^2 / (1 + ratio d), each of which is bounded by its entry of
        # "beyond".
        ratio = unit[counted] * inverse
        beyond, share = cp.Variable(counted.size), 1 + multiply(ratio, d[counted])
        constraints.append(cp.SOC(beyond + share, vstack([beyond - share, 2 * d[counted]])))
        objective += (pull * inverse * (ratio / step) ** 2) @ beyond
    found = _solution(cp.Problem(cp.Minimize(objective), constraints), d)
    return None if found is None else _on_simplex(reference + unit * found)


def _inside(problem: TradeOff, p: FloatArray) -> FloatArray:
    """Return p, raising clients with a target that are far below the point their price implies."""
    lagrange, theta = problem.multipliers(p)
    price = np.maximum(theta * problem.rarity - lagrange, 0.0)
    pull = problem.bias * problem.target_weights**2
    with np.errstate(divide="ignore", invalid="ignore"):
        by_price = np.sqrt(pull / (2 * price))
        by_curvature = np.cbrt(pull * problem.spread(p) / (2 * problem.curvature))
    least = np.where(pull > 0, np.fmin(by_price, by_curvature), 0.0)
    return np.asarray(np.maximum(p, _LEAST_SHARE * np.where(np.isfinite(least), least, 0.0)))


def _solution(program: cp.Problem, variable: cp.Variable) -> FloatArray | None:
    """Return the solver's value for a variable, whatever status it reports."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        # With looser tolerances, the solver may return a point where it failed before.
        for precision in (_PRECISION, {}):
            try:
                program.solve(solver=cp.CLARABEL, **precision)
            except cp.error.SolverError:
                continue
            if variable.value is not None:
                return np.asarray(variable.value, dtype=np.float64)
    return None


def _on_simplex(p: FloatArray) -> FloatArray:
    positive = np.maximum(p, 0.0)
    return np.asarray(positive / positive.sum(), dtype=np.float64)
