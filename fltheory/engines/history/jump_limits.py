"""The limit of the moments along a chain of participants, by linear solves with a certificate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fltheory.algorithms.contract import Algorithm
from fltheory.engines.affine.probe import UNIT_ROUNDOFF, RoundOverflowError
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.history.jump_map import DistinctSets, JumpMap, MomentErrors, Moments, jump_map
from fltheory.engines.moments.stationary_limit import StationaryLimit, limit_of, no_limit
from fltheory.engines.observables import standard_forms
from fltheory.participation.process import States
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_LARGEST_DIRECT_SYSTEM = 1024
_KRYLOV_TOLERANCE = 1e-13
_WORST_DWELL_RESIDUAL = 0.5


def limit_along_chain(
    algorithm: Algorithm, problem: QuadraticProblem, states: States, layout: StateLayout
) -> StationaryLimit:
    """Return the limits of the expected errors.

    Raises
    ------
    NotAffineError
        Where the round is not affine.
    ValueError
        If the states' law does not converge.
    ArithmeticError
        If the solution is too inexact to tell whether there is a limit.
    """
    if states.limit is None:
        raise ValueError(
            "participation must have a law that converges to have a stationary limit, got a "
            "record played from a given round: leave out its start, or follow engines.exact"
        )
    try:
        step = jump_map(algorithm, problem, layout, states, DistinctSets.of(states))
        dwell = _dwell(step)
    except (RoundOverflowError, np.linalg.LinAlgError):
        return no_limit(problem.dim)
    if dwell is None:
        return no_limit(problem.dim)
    moments, second_error, first_error = _fixed_point(step, states.limit, dwell)
    first, second = moments.first.sum(axis=0), moments.second.sum(axis=0)
    forms = {name: layout.form(form) for name, form in standard_forms(problem).items()}
    trace = np.array([moments.traces.sum()])
    second_errors, first_errors = np.array([second_error]), np.array([first_error])
    errors = {
        name: float(form.error(trace, second_errors, first_errors, problem.x_star_error)[0])
        for name, form in forms.items()
    }
    errors["bias"] = first_error + problem.x_star_error
    return limit_of(problem, forms, first, second, errors)


def _dwell(step: JumpMap) -> float | None:
    """Bound what a matrix in M now adds up to over all rounds to come, in terms of its trace.

    None where the second moments do not converge.

    Let X solve ``X_i - E[A_i' (sum_j P_ij X_j) A_i] = I - R_i`` with ``||R_i|| <= r < 1``,
    however it was found. If all X_i are positive definite, the moments converge, and X / (1 - r)
    bounds the sum of the dual map's powers on the identity; if they converge, that sum applied to
    I - R > 0 is X, which is positive definite. So the residual certifies either answer.
    """
    size = step.mean_offset.shape[1]
    identity = np.broadcast_to(np.eye(size), step.noise.shape)
    solution = _solve(step.dual, identity)
    solution = 0.5 * (solution + solution.swapaxes(1, 2))
    norm = float(np.abs(np.linalg.eigvalsh(solution)).max())
    residual = identity - solution + step.dual(solution)
    operations = 2 * size + step.states.operations + len(step.slopes) + 2
    gain = 1 + float(np.max(step.rounding.slope_work))
    rest = float(np.linalg.norm(residual, 2, axis=(1, 2)).max())
    rest += UNIT_ROUNDOFF * operations * np.sqrt(size) * gain * norm
    if not rest <= _WORST_DWELL_RESIDUAL:
        raise ArithmeticError(
            "the stationary second moments could not be solved for well enough to tell whether "
            f"they exist (a residual of {rest:.1e}): follow engines.exact instead"
        )
    if float(np.linalg.eigvalsh(solution).min()) <= 0:
        return None
    return norm / (1 - rest)


def _dwell_of_first(step: JumpMap, dwell: float) -> float:
    """Bound the same for m, in the sum over states of its norms.

    With k for ``dwell`` the traces of second moments fall by 1 - 1/k a round, from k times the
    first; the roots of these numbers add up to at most 2 k^(3/2). Where norms alone contract,
    numbers ``y_i >= 1 + ||E A_i|| sum_j P_ij y_j`` are a closer bound.
    """
    always = float(2 * dwell**1.5)

    def image(y: FloatArray) -> FloatArray:
        return np.asarray(step.rounding.first_gain * step.states.backward(y))

    try:
        y = _solve(image, np.ones(len(step.noise)))
    except (ArithmeticError, np.linalg.LinAlgError):
        return always
    least = float((y - image(y)).min())
    usable = least > _WORST_DWELL_RESIDUAL and float(y.min()) > 0
    return min(always, float(y.max()) / least) if usable else always


def _fixed_point(step: JumpMap, law: FloatArray, dwell: float) -> tuple[Moments, float, float]:
    """Return the limit of the moments, and bounds on the errors of M and m.

    Whatever is wrong with them, residuals of the solver and a round's rounding, is what one
    round gets wrong, summed over all rounds to come.
    """
    still = Moments(law, np.zeros_like(step.mean_offset), np.zeros_like(step.noise))

    def first_image(first: FloatArray) -> FloatArray:
        return step.states.forward((step.mean_slope @ first[:, :, None])[:, :, 0])

    first = _solve(first_image, step(still).first)
    inflow = step(Moments(law, first, still.second)).second
    second = _solve(step.spread, inflow)
    limit = Moments(law, first, 0.5 * (second + second.swapaxes(1, 2)))
    image = step(limit)
    no_errors = MomentErrors(np.zeros_like(law), np.zeros_like(law), np.zeros_like(law))
    _, (fresh_second, fresh_first) = no_errors.after(step, limit)
    first_gap = np.linalg.norm(image.first - limit.first, axis=1).sum()
    second_gap = np.linalg.norm(image.second - limit.second, "nuc", axis=(1, 2)).sum()
    first_error = _dwell_of_first(step, dwell) * float(first_gap + fresh_first)
    coupled = float(np.max(step.rounding.coupling)) * first_error
    second_error = dwell * (float(second_gap + fresh_second) + coupled)
    return limit, second_error, first_error


def _solve(image: Callable[[FloatArray], FloatArray], right: FloatArray) -> FloatArray:
    """Return x with ``x - image(x) = right``, by elimination or, where it is large, GMRES."""
    from scipy.sparse.linalg import LinearOperator, gmres

    size, shape = right.size, right.shape
    if size <= _LARGEST_DIRECT_SYSTEM:
        columns = [image(unit.reshape(shape)).ravel() for unit in np.eye(size)]
        matrix = np.eye(size) - np.stack(columns, axis=1)
        return np.asarray(np.linalg.solve(matrix, right.ravel()).reshape(shape))

    def apply(flat: FloatArray) -> FloatArray:
        return np.asarray(flat - image(flat.reshape(shape)).ravel())

    operator = LinearOperator((size, size), matvec=apply, dtype=np.float64)
    solution, status = gmres(
        operator, right.ravel(), rtol=_KRYLOV_TOLERANCE, restart=100, maxiter=100
    )
    if status != 0:
        raise ArithmeticError(
            "the stationary moments could not be solved for to a relative residual of "
            f"{_KRYLOV_TOLERANCE:g} ({size} unknowns): follow engines.exact instead"
        )
    return np.asarray(solution.reshape(shape))
