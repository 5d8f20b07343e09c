"""The objective that other weights than the target's make of the same quadratic clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.exact_or_float import is_exact, solve
from fltheory.problems.base import weighted_mean
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class WeightedObjective(ReadOnlyArrays):
    """``F_B = sum_k p_k F_k``, what weighted averaging of the clients who show up minimises.

    CA-Fed's equation (4). Some p may be zero, unlike target weights.

    Parameters
    ----------
    problem : QuadraticProblem
    weights : array, (N,)
        p, not negative with sum one.

    Raises
    ------
    ValueError
        For other weights.

    Examples
    --------
    >>> problem = QuadraticProblem([[2.0]], [[-1.0], [1.0]])
    >>> WeightedObjective(problem, [0.0, 1.0]).minimiser.tolist()
    [1.0]
    """

    problem: QuadraticProblem
    weights: FloatArray

    def __init__(self, problem: QuadraticProblem, weights: ArrayLike) -> None:
        if is_exact(weights):
            # Made from exact numbers by the package itself; checks want floats.
            object.__setattr__(self, "problem", problem)
            object.__setattr__(self, "weights", weights)
            return
        array = validation.real_array("weights", weights, shape=f"({problem.n_clients},)")
        if array.shape != (problem.n_clients,):
            raise ValueError(f"weights must have shape ({problem.n_clients},), got {array.shape}")
        if array.min() < 0 or abs(array.sum() - 1) > 1e-12:
            raise ValueError(
                "weights must not be negative and sum to 1, got a smallest of "
                f"{array.min():.6g} and a sum of {array.sum():.15g}"
            )
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "weights", array)

    @cached_property
    def hessian(self) -> FloatArray:
        """(d, d) Hessian."""
        if self.problem.shared_hessian:
            return self.problem.hessians
        return np.einsum("i,iab->ab", self.weights, self.problem.hessians)

    @cached_property
    def minimiser(self) -> FloatArray:
        """(d,) minimiser, CA-Fed's ``w_B*``."""
        optima = self.problem.optima
        if is_exact(self.weights):
            return solve(self.hessian, self.hessian_times_optima)
        centre = weighted_mean(optima, self.weights)
        if self.problem.shared_hessian:
            return centre
        pull = np.einsum("i,iab,ib->a", self.weights, self.problem.hessians, optima - centre)
        return centre + np.linalg.solve(self.hessian, pull)

    @property
    def hessian_times_optima(self) -> FloatArray:
        """(d,) ``sum_k p_k H_k c_k``."""
        problem = self.problem
        if problem.shared_hessian:
            return np.asarray(problem.hessians @ (self.weights @ problem.optima))
        return np.einsum("i,iab,ib->a", self.weights, problem.hessians, problem.optima)

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F_B(x) - F_B*`` at points of shape (..., d), without cancellation."""
        offset = x - self.minimiser
        return (offset * (offset @ self.hessian)).sum(axis=-1) / 2
