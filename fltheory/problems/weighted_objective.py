"""The objective of the same quadratic clients under other weights than the target weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.exact_or_float import is_exact
from fltheory.problems.quadratic_problem import (
    QuadraticProblem,
    weighted_hessian,
    weighted_minimiser,
)
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class WeightedObjective(ReadOnlyArrays):
    """``F_B = sum_k p_k F_k``, the objective that averaging over participants minimises.

    CA-Fed's equation (4). Some p may be zero, unlike target weights.

    Parameters
    ----------
    problem : QuadraticProblem
    weights : array, (N,)
        p, not negative with sum one.

    Raises
    ------
    ValueError
        If a weight is negative, or the weights do not sum to one.

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
            # Exact numbers come from the package itself; the checks need floats.
            object.__setattr__(self, "problem", problem)
            object.__setattr__(self, "weights", weights)
            return
        array = validation.array_of("weights", weights, problem.n_clients)
        if array.min() < 0 or abs(array.sum() - 1) > 1e-12:
            raise ValueError(
                f"weights must be nonnegative and sum to 1, got a smallest of {array.min():.6g} "
                f"and a sum of {array.sum():.15g}"
            )
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "weights", array)

    @cached_property
    def hessian(self) -> FloatArray:
        """(d, d) Hessian."""
        return weighted_hessian(self.problem.hessians, self.weights)

    @cached_property
    def minimiser(self) -> FloatArray:
        """(d,) minimiser, CA-Fed's ``w_B*``."""
        return weighted_minimiser(self.problem.hessians, self.problem.optima, self.weights)

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F_B(x) - F_B*`` at points of shape (..., d), without cancellation."""
        offset = x - self.minimiser
        return (offset * (offset @ self.hessian)).sum(axis=-1) / 2
