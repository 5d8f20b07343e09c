"""Limits of runs: of the moment recursion as the rounds grow."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np

from fltheory.algorithms.contract import Schedule
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.affine.probe import RoundOverflowError
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.guard import guard_affine
from fltheory.engines.history.jump_limits import limit_along_chain
from fltheory.engines.history.jump_linear import runs_along_chain
from fltheory.engines.moments.moment_map import MomentMap
from fltheory.engines.moments.moment_recursion import affine_problem, round_law
from fltheory.engines.moments.stationary_limit import StationaryLimit, limit_of, no_limit
from fltheory.engines.observables import QuadraticForm, standard_forms
from fltheory.engines.rounds import in_float64
from fltheory.engines.setting import Setting
from fltheory.validation import FloatArray

_LARGEST_DIRECT_STATE = 40
_KRYLOV_TOLERANCE = 1e-13


@checks_kinds
def stationary(setting: Setting) -> StationaryLimit:
    """Compute the limits of the expected errors as the rounds grow.

    Solves ``M = E[A M A'] + ...`` and ``m = E[A] m + E[b]``, along a chain of participants
    for each of its states. That the limit exists is certified: it does exactly when
    ``X - E[A' X A] = I`` has a positive definite solution.

    Parameters
    ----------
    setting : Setting
        On a `QuadraticProblem`; its rounds and initial model play no part.

    Raises
    ------
    NotAffineError
        Where the round is not affine; it names the sampled engine.
    ValueError
        For step sizes that depend on the round, or a record played from a given round, which
        goes round for ever.
    ArithmeticError
        If the iterative solver for large dimensions does not converge, or a chain's solution
        is too inexact to tell whether there is a limit.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> limit = stationary(Setting(FedAvg(0.5, 1), problem, UniformSubset(2, 1), 1, [0.0]))
    >>> round(limit.squared_distance, 12)
    0.333333333333
    """
    setting = in_float64(setting)
    algorithm, problem = setting.algorithm, setting.problem
    participation = setting.participation
    if isinstance(algorithm, Schedule):
        raise ValueError(
            "algorithm must be the same in every round to have a stationary limit, "
            f"got {algorithm!r}: follow engines.exact instead"
        )
    quadratic = affine_problem(problem)
    guard_affine(setting)
    layout = StateLayout.of(algorithm, quadratic)
    if runs_along_chain(participation):
        return limit_along_chain(algorithm, quadratic, participation.states(), layout)
    try:
        step = MomentMap(round_law(algorithm, quadratic, participation, layout))
    except RoundOverflowError:
        return no_limit(problem.dim)
    solver = _DirectSolver(step) if step.size <= _LARGEST_DIRECT_STATE else _KrylovSolver(step)
    dwell = solver.dwell()
    if not _positive_definite(dwell):
        return no_limit(problem.dim)
    resolvent = np.asarray(np.linalg.inv(np.eye(step.size) - step.law.mean_slope), np.float64)
    first = resolvent @ step.law.mean_offset
    second = solver.solve(step.law.cross(first) + step.law.inflow)
    forms = {name: layout.form(form) for name, form in standard_forms(quadratic).items()}
    errors = _rounding_error(step, second, dwell, resolvent, forms, quadratic.x_star_error)
    return limit_of(quadratic, forms, first, second, errors)


def _rounding_error(
    step: MomentMap,
    second: FloatArray,
    dwell: FloatArray,
    resolvent: FloatArray,
    forms: Mapping[str, QuadraticForm],
    x_star_error: float,
) -> dict[str, float]:
    """Bound the limits' errors: one round's rounding, summed over all rounds to come.

    What one round puts wrong in M adds at most ``tr(dwell M)`` in all, as ``dwell`` is the
    sum of the dual map's powers on the identity.
    """
    trace = np.array([max(float(np.trace(second)), 0.0)])
    fresh_second, fresh_first = step.rounding.of_one_round(trace)
    first_error = float(np.linalg.norm(resolvent, 2)) * fresh_first
    fresh_second = fresh_second + step.rounding.coupling * first_error
    second_error = float(np.linalg.norm(dwell, 2)) * fresh_second
    errors = {
        name: float(form.error(trace, second_error, first_error, x_star_error)[0])
        for name, form in forms.items()
    }
    return errors | {"bias": float(first_error[0]) + x_star_error}


class _DirectSolver:
    """Solves ``M - E[A M A'] = right`` by elimination.

    Where something in the state never decays the solutions are infinite, which says so.
    """

    def __init__(self, step: MomentMap) -> None:
        from scipy.linalg import LinAlgWarning, lu_factor

        self._size = step.size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            self._factors = lu_factor(np.eye(step.size**2) - step.spread_matrix)

    def solve(self, right: FloatArray) -> FloatArray:
        from scipy.linalg import lu_solve

        return np.asarray(lu_solve(self._factors, right.ravel()).reshape(self._size, self._size))

    def dwell(self) -> FloatArray:
        """Return X with ``X - E[A' X A] = I``."""
        from scipy.linalg import lu_solve

        right = np.eye(self._size).ravel()
        dual = lu_solve(self._factors, right, trans=1)
        return np.asarray(dual.reshape(self._size, self._size))


class _KrylovSolver:
    """Solves the same by GMRES, for states too large for elimination."""

    def __init__(self, step: MomentMap) -> None:
        self._law = step.law

    def solve(self, right: FloatArray) -> FloatArray:
        return self._solve(self._law.spread, right)

    def dwell(self) -> FloatArray:
        """Return X with ``X - E[A' X A] = I``."""
        return self._solve(self._law.dual, np.eye(self._law.size))

    def _solve(self, spread: Callable[[FloatArray], FloatArray], right: FloatArray) -> FloatArray:
        from scipy.sparse.linalg import LinearOperator, gmres

        n = right.shape[0]

        def apply(flat: FloatArray) -> FloatArray:
            matrix = flat.reshape(n, n)
            return np.asarray((matrix - spread(matrix)).ravel())

        operator = LinearOperator((n * n, n * n), matvec=apply, dtype=np.float64)
        solution, status = gmres(
            operator, right.ravel(), rtol=_KRYLOV_TOLERANCE, restart=50, maxiter=200
        )
        if status != 0:
            raise ArithmeticError(
                "the stationary second moments could not be solved for to a relative residual "
                f"of {_KRYLOV_TOLERANCE:g} (state of size {n}): follow engines.exact instead"
            )
        return np.asarray(solution.reshape(n, n))


def _positive_definite(matrix: FloatArray) -> bool:
    if not np.isfinite(matrix).all():
        return False
    return bool(np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min() > 0)
