"""Stationary limits: what is known of a run after infinitely many rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fltheory.engines.observables import QuadraticForm
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


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
        Bounds, to first order, on the rounding errors of the three errors and the bias. They
        grow without limit as a round contracts less and less.
    """

    converges: bool
    squared_distance: float
    squared_gradient: float
    excess_loss: float
    mean: FloatArray
    bias: float
    rounding_error: Mapping[str, float]


def limit_of(
    problem: QuadraticProblem,
    forms: Mapping[str, QuadraticForm],
    first: FloatArray,
    second: FloatArray,
    rounding_error: Mapping[str, float],
) -> StationaryLimit:
    """Return the limit whose moments around x* are ``first`` (n,) and ``second`` (n, n)."""
    limits = {
        name: float((form.matrix * second).sum() + 2 * form.vector @ first + form.constant)
        for name, form in forms.items()
    }
    offset = first[: problem.dim]
    return StationaryLimit(
        converges=True,
        squared_distance=limits["squared_distance"],
        squared_gradient=limits["squared_gradient"],
        excess_loss=limits["excess_loss"],
        mean=problem.x_star + offset,
        bias=float(np.linalg.norm(offset)),
        rounding_error=rounding_error,
    )


def no_limit(dim: int) -> StationaryLimit:
    """Return what stands for a run whose second moments do not converge."""
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
