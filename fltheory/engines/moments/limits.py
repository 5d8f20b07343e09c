"""Limits of the moment recursion as the number of rounds grows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from fltheory.algorithms.contract import Schedule
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.affine.probe import UNIT_ROUNDOFF, RoundOverflowError
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.guard import guard_affine
from fltheory.engines.moments.moment_map import MomentMap, packed, parted, traces_of
from fltheory.engines.moments.moment_recursion import affine_problem, moment_map, participants_of
from fltheory.engines.observables import standard_forms
from fltheory.engines.setting import Setting, in_float64
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

# The matrix takes 20 MB. Beyond this, GMRES is used, which needs only images and stops near float64
# accuracy.
_LARGEST_DIRECT_SYSTEM = 1600
_KRYLOV_TOLERANCE = 1e-13
# Any residual below 1 is a certificate. At this value, the bound, norm / (1 - residual), doubles.
_WORST_RESIDUAL = 0.5

Image = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class StationaryLimit(ReadOnlyArrays):
    """Limits of a trajectory's expected errors.

    Attributes
    ----------
    converges : bool
        Whether the second moments have a limit that does not depend on the initial model.
        If not, every error is infinite.
    squared_distance, squared_gradient, excess_loss : float
        Limits of ``E||x_r - x*||^2``, ``E||grad F(x_r)||^2`` and ``E F(x_r) - F*``.
    mean : array, (d,)
        Limit of ``E x_r``.
    bias : float
        ``||lim E x_r - x*||``.
    rounding_error : mapping of str to float
        Bounds, to first order, on the rounding errors of the three errors and the bias. The bounds
        tend to infinity as the contraction of a round vanishes.
    """

    converges: bool
    squared_distance: float
    squared_gradient: float
    excess_loss: float
    mean: FloatArray
    bias: float
    rounding_error: Mapping[str, float]


@checks_kinds
def stationary(setting: Setting) -> StationaryLimit:
    """Compute the limits of the expected errors as the number of rounds grows.

    This solves ``M = E[A M A'] + ...`` and ``m = E[A] m + E[b]``, for each state if participants
    follow a chain. The existence of the limit is certified. It exists if and only if ``X - E[A' X
    A] = I`` has a positive definite solution.

    Parameters
    ----------
    setting : Setting
        A setting on a `QuadraticProblem`; its ``rounds`` and ``x0`` are not used.

    Raises
    ------
    NotAffineError
        If the round is not affine. The message names the sampled engine.
    ValueError
        If step sizes depend on the round, or participation is a record that starts from a given
        round, and so repeats periodically without a limit.
    ArithmeticError
        If the iterative solver for large dimensions does not converge, or its solution is too
        inaccurate to decide whether there is a limit.

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
    algorithm = setting.algorithm
    if isinstance(algorithm, Schedule):
        raise ValueError(
            "algorithm must be the same in every round to have a stationary limit, "
            f"got {algorithm!r}: follow engines.exact instead"
        )
    problem = affine_problem(setting.problem)
    losses = guard_affine(setting).losses
    layout, who = StateLayout.of(algorithm, problem), participants_of(setting.participation)
    if who.limit is None:
        raise ValueError(
            "participation must have a law that converges to have a stationary limit, got a "
            "record played from a given round: leave out its start, or follow engines.exact"
        )
    try:
        step = moment_map(algorithm, problem, who, layout, losses)
    except RoundOverflowError:
        return _no_limit(problem.dim)
    found = _fixed_point(_Equations(step), who.limit)
    if found is None:
        return _no_limit(problem.dim)
    moments, second_error, first_error = found
    limits, errors = {}, {"bias": first_error + problem.x_star_error}
    for name, plain in standard_forms(problem).items():
        form = layout.form(plain)
        limits[name] = float(moments @ form.row)
        errors[name] = float(
            form.error(
                traces_of(moments, step.size),
                np.asarray(second_error),
                np.asarray(first_error),
                problem.x_star_error,
            )
        )
    offset = parted(moments, step.size)[1][: problem.dim]
    return StationaryLimit(
        converges=True,
        mean=problem.x_star + offset,
        bias=float(np.linalg.norm(offset)),
        rounding_error=errors,
        **limits,
    )


def _no_limit(dim: int) -> StationaryLimit:
    """Return the result for a run whose second moments do not converge."""
    infinite = float("inf")
    return StationaryLimit(
        converges=False,
        squared_distance=infinite,
        squared_gradient=infinite,
        excess_loss=infinite,
        mean=np.full(dim, infinite),
        bias=infinite,
        rounding_error={},
    )


def _fixed_point(equations: _Equations, law: FloatArray) -> tuple[FloatArray, float, float] | None:
    """Return the limit of the moments, with bounds on the errors of M and m, or None.

    Moments of several states are added up. ``law`` is the limit of the states' probabilities.
    Without a limit, the result is None. The error of the limit is the error made in one round
    (residuals of the solver and rounding), summed over all rounds to come.
    """
    step = equations.step
    n, states = step.size, step.states
    growth = equations.summed_growth()
    if growth is None:
        return None
    still = np.zeros_like(step.law.noise)
    first = equations.first(states.forward(step.law.mean_offset * law[..., None]))
    second = equations.second(parted(step(packed(still, first, law)), n)[0])
    limit = packed(0.5 * (second + second.swapaxes(-1, -2)), first, law)
    gap_second, gap_first, _ = parted(step(limit) - limit, n)
    fresh_second, fresh_first = step.rounding.of_one_round(traces_of(limit, n), law)
    second_wrong = float(np.sum(np.linalg.norm(gap_second, "nuc", axis=(-2, -1)) + fresh_second))
    first_wrong = float(np.sum(np.linalg.norm(gap_first, axis=-1) + fresh_first))
    first_error = equations.summed_growth_of_first(growth) * first_wrong
    second_error = growth * (second_wrong + float(np.max(step.rounding.coupling)) * first_error)
    return limit.reshape(-1, n * n + n + 1).sum(axis=0), second_error, first_error


class _Equations:
    """The fixed-point equations of a round's map, solved by elimination or, if large, by GMRES."""

    def __init__(self, step: MomentMap) -> None:
        self.step = step

    def first(self, right: FloatArray) -> FloatArray:
        """Return m that solves ``m - E[A] m = right``, where the chain moves ``E[A] m``."""
        if self._resolvent is not None:
            return (self._resolvent @ right.ravel()).reshape(right.shape)
        return self._iterated(lambda first: self.step.states.forward(self.step.mean(first)), right)

    def second(self, right: FloatArray) -> FloatArray:
        """Return M that solves ``M - E[A M A'] = right``."""
        return self._solved(self.step.spread, right, transposed=0)

    def summed_growth(self) -> float | None:
        """Bound the sum, over all rounds to come, of the images of a matrix in M of trace one.

        The result is None if the second moments do not converge.

        Let X solve ``X_i - E[A_i' (sum_j P_ij X_j) A_i] = I - R_i`` with ``||R_i|| <= r < 1``,
        however it was found. If all X_i are positive definite, the moments converge, and X / (1 -
        r) bounds the sum of the dual map's powers on the identity. Conversely, if the moments
        converge, that sum applied to I - R > 0 is X, which is therefore positive definite. So the
        residual certifies either answer. If a round contracts by less than rounding, there is no
        certificate. Then either X is not positive definite, or its residual is too large and an
        error is raised.
        """
        step, n = self.step, self.step.size
        solution = self._solved(step.dual, step.identity, transposed=1)
        if not np.isfinite(solution).all():
            return None
        solution = 0.5 * (solution + solution.swapaxes(-1, -2))
        eigenvalues = np.linalg.eigvalsh(solution)
        if float(eigenvalues.min()) <= 0:
            return None
        norm = float(eigenvalues.max())
        residual = step.identity - solution + step.dual(solution)
        # An entry of the dual's image sums n terms on either side of X, over r factors, and is
        # moved by the chain. The residual adds two more terms.
        operations = 2 * n + step.states.operations + len(step.law.slopes) + 2
        gain = 1 + float(np.max(step.rounding.slope_work))
        rest = float(np.linalg.norm(residual, 2, axis=(-2, -1)).max())
        rest += UNIT_ROUNDOFF * operations * np.sqrt(n) * gain * norm
        if not rest <= _WORST_RESIDUAL:
            raise ArithmeticError(
                "the stationary second moments could not be solved for well enough to tell "
                f"whether they exist (a residual of {rest:.1e}): follow engines.exact instead"
            )
        return norm / (1 - rest)

    def summed_growth_of_first(self, growth: float) -> float:
        """Bound the same sum for m, in the sum over states of its norms.

        This is the largest block column of the resolvent. If the resolvent is too large to compute,
        let k be ``growth``. Starting from k times the first, the traces of second moments fall by a
        factor 1 - 1/k per round, and the square roots of these numbers sum to at most 2 k^(3/2). If
        the norms themselves contract, numbers ``y_i >= 1 + ||E A_i|| sum_j P_ij y_j`` give a closer
        bound.
        """
        n = self.step.size
        if self._resolvent is not None:
            blocks = self._resolvent.reshape(-1, n, len(self._resolvent) // n, n)
            return float(np.linalg.norm(blocks, 2, axis=(1, 3)).sum(axis=0).max())
        always = float(2 * growth**1.5)
        gain, backward = self.step.rounding.first_gain, self.step.states.backward

        def image(y: FloatArray) -> FloatArray:
            return np.asarray(gain * backward(y))

        try:
            y = self._iterated(image, np.ones(np.shape(gain)))
        except ArithmeticError:
            return always
        least = float((y - image(y)).min())
        usable = least > _WORST_RESIDUAL and float(y.min()) > 0
        return min(always, float(y.max()) / least) if usable else always

    @cached_property
    def _resolvent(self) -> FloatArray | None:
        """The inverse of ``m -> m - E[A] m`` on the m of all states, or None if it is too large."""
        if self.step.law.mean_offset.size > _LARGEST_DIRECT_SYSTEM:
            return None
        mean = self._on_all_states(self.step.law.mean_slope)
        return np.asarray(np.linalg.inv(np.eye(len(mean)) - mean), np.float64)

    def _on_all_states(self, blocks: FloatArray) -> FloatArray:
        """Return the matrix of a round that applies a separate block to each state's values."""
        if blocks.ndim == 2:
            return blocks
        count, size = blocks.shape[:2]
        whole = np.zeros((count, size, count, size))
        whole[np.arange(count), :, np.arange(count)] = blocks
        return self.step.states.forward(whole).reshape(count * size, count * size)

    @cached_property
    def _factors(self) -> Any:
        """Factors of ``M -> M - E[A M A']`` on flattened M, by elimination.

        If part of the state never decays, the solutions are infinite, which indicates this.
        """
        from scipy.linalg import LinAlgWarning, lu_factor

        spread = self._on_all_states(self.step.spread_matrix)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            return lu_factor(np.eye(len(spread)) - spread)

    def _solved(self, image: Image, right: FloatArray, *, transposed: Literal[0, 1]) -> FloatArray:
        """Return X that solves ``X - image(X) = right`` for `MomentMap.spread` or its adjoint."""
        from scipy.linalg import lu_solve

        if right.size > _LARGEST_DIRECT_SYSTEM:
            return self._iterated(image, right)
        flat = lu_solve(self._factors, right.ravel(), trans=transposed)
        return np.asarray(flat.reshape(right.shape))

    def _iterated(self, image: Image, right: FloatArray) -> FloatArray:
        """Return x that solves ``x - image(x) = right``."""
        from scipy.sparse.linalg import LinearOperator, gmres

        def apply(flat: FloatArray) -> FloatArray:
            return np.asarray(flat - image(flat.reshape(right.shape)).ravel())

        operator = LinearOperator((right.size, right.size), matvec=apply, dtype=np.float64)
        solution, status = gmres(
            operator, right.ravel(), rtol=_KRYLOV_TOLERANCE, restart=50, maxiter=200
        )
        if status != 0:
            raise ArithmeticError(
                "the stationary second moments could not be solved for to a relative residual "
                f"of {_KRYLOV_TOLERANCE:g} (state of size {self.step.size}): follow "
                "engines.exact instead"
            )
        return np.asarray(solution.reshape(right.shape))
