"""The semidefinite programs behind the bounds, by cvxpy and Clarabel.

What a solver says of itself is not believed: a bound counts once the checker has accepted its
multipliers in fractions, and a solver that fails proves nothing either way.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.hstack import hstack
from cvxpy.atoms.affine.reshape import reshape
from cvxpy.atoms.affine.sum import sum as total_of

from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.worst_case.rounds.slack import Form, Slack

# Asked for in turn until the solver answers.
_PRECISIONS = (1e-11, 1e-9, 1e-7)
# Conditions of nearby points are nearly the same, so that each linear system is solved with care:
# as the solver does it by itself, optima were up to 4e-7 off.
_CARE = {
    "iterative_refinement_reltol": 1e-15,
    "iterative_refinement_abstol": 1e-15,
    "iterative_refinement_max_iter": 50,
}


@dataclass(frozen=True, eq=False)
class Multipliers(ReadOnlyArrays):
    """Multipliers of a slack's forms, over e.

    Attributes
    ----------
    pairs, budgets, noises : array
        Not negative.
    orthogonal : array
        Of any sign.
    """

    pairs: FloatArray
    budgets: FloatArray
    noises: FloatArray
    orthogonal: FloatArray


@dataclass(frozen=True, eq=False)
class Solution(ReadOnlyArrays):
    """What a program returned.

    Attributes
    ----------
    value : float
        Of the objective.
    decrease : float
        ``(1 - rate)/e``.
    multipliers : Multipliers
    gram : list of arrays
        Products of the worst clients' vectors, one matrix a block.
    """

    value: float
    decrease: float
    multipliers: Multipliers
    gram: list[FloatArray]


class Program:
    """A slack as a program in its multipliers.

    Parameters
    ----------
    slack : Slack
    bases : list of arrays
        Coordinates of each block in which the solver sees it.
    identical : bool
        Leave out what the budgets of heterogeneity bound, whose bases these then are.
    """

    def __init__(self, slack: Slack, bases: list[FloatArray], *, identical: bool = False) -> None:
        self._slack = slack
        self._bases = bases
        self._parts: list[tuple[Any, list[Form]]] = []
        self._pairs = self._variable(slack.conditions, nonneg=True)
        self._budgets = self._variable([] if identical else slack.budgets, nonneg=True)
        self._noises = self._variable(slack.noises, nonneg=True)
        self._orthogonal = self._variable(slack.orthogonal)

    def _variable(self, forms: list[Form], *, nonneg: bool = False) -> Any:
        if not forms:
            return None
        variable = cp.Variable(len(forms), nonneg=nonneg)
        self._parts.append((variable, forms))
        return variable

    def least_rate(self) -> Solution | None:
        """Find the largest decrease."""
        decrease = cp.Variable(1)
        unit = max(float(np.abs(self._slack.change[0]).max()), 1e-300)
        return self._solved(-decrease[0] / unit, decrease=decrease)

    def least_residual(self, decrease: float, budget: float, noise: float) -> Solution | None:
        """Find the least ``budget sum nu + noise sum s`` at a rate."""
        return self._solved(self._cost(budget, noise), decrease=decrease)

    def least_floor(
        self, budget: float, noise: float, fixed: float, decrease: float
    ) -> Solution | None:
        """Find the least ``(budget sum nu + noise sum s + fixed) / decrease``; value aside.

        A quotient of linear functions: all is divided by the decrease, whose place the scale
        takes, here in units of a decrease that is of the right size.
        """
        scale = cp.Variable(1, nonneg=True)
        cost = self._cost(budget, noise) + fixed * scale[0]
        return self._solved(cost, decrease=decrease, scale=scale)

    def fastest(self, budgets: float, noises: float) -> Solution | None:
        """Find the largest decrease within given sums of the budgets' multipliers."""
        decrease = cp.Variable(1)
        limits = self._at_most(budgets, noises)
        return self._solved(-decrease[0], decrease=decrease, limits=limits)

    def widest_slack(self, decrease: float, budgets: float, noises: float) -> Solution | None:
        """Find multipliers within given sums that leave the blocks' least eigenvalue largest."""
        least = cp.Variable(1)
        limits = self._at_most(budgets, noises)
        return self._solved(-least[0], decrease=decrease, limits=limits, least=least)

    def _at_most(self, budgets: float, noises: float) -> list[Any]:
        limits = ((self._budgets, budgets), (self._noises, noises))
        return [total_of(variable) <= most for variable, most in limits if variable is not None]

    def _cost(self, budget: float, noise: float) -> Any:
        cost: Any = cp.Constant(0)
        for variable, price in ((self._budgets, budget), (self._noises, noise)):
            if variable is not None:
                cost = cost + price * total_of(variable)
        return cost

    def _solved(
        self,
        objective: Any,
        *,
        decrease: Any,
        scale: Any = 1.0,
        limits: Sequence[Any] = (),
        least: Any = None,
    ) -> Solution | None:
        parts = [*self._parts]
        known: list[tuple[float, Form]] = []
        for number, form in (
            (scale, self._slack.change),
            (decrease, [-matrix for matrix in self._slack.decrease]),
        ):
            if isinstance(number, float):
                known.append((number, form))
            else:
                parts.append((number, [form]))
        blocks = list(self._blocks(parts, known, least))
        # One local step measured by F compares no two points.
        balance = [] if self._pairs is None else [self._slack.balance @ self._pairs == 0]
        program = cp.Problem(cp.Minimize(objective), [*limits, *balance, *(c for _, c in blocks)])
        if not solves(program):
            return None
        divisor = scale if isinstance(scale, float) else float(scale.value[0])
        if not divisor > 0:
            return None
        gram = [np.zeros((size, size)) for size in self._slack.sizes]
        for block, constraint in blocks:
            basis = self._bases[block]
            gram[block] = basis @ np.asarray(constraint.dual_value) @ basis.T
        found = decrease if isinstance(decrease, float) else float(decrease.value[0])
        return Solution(
            float(program.value),
            found / divisor,
            Multipliers(
                *(
                    np.zeros(0) if variable is None else np.asarray(variable.value) / divisor
                    for variable in (self._pairs, self._budgets, self._noises, self._orthogonal)
                )
            ),
            gram,
        )

    def _blocks(
        self, parts: list[tuple[Any, list[Form]]], known: list[tuple[float, Form]], least: Any
    ) -> Iterator[tuple[int, Any]]:
        """Yield each block that is not empty, as a constraint."""
        unknown = hstack([variable for variable, _ in parts])
        for block, basis in enumerate(self._bases):
            size = basis.shape[1]
            if size == 0:
                continue
            columns = [
                (basis.T @ form[block] @ basis).ravel() for _, forms in parts for form in forms
            ]
            fixed = sum(
                (number * (basis.T @ form[block] @ basis) for number, form in known),
                np.zeros((size, size)),
            )
            matrix = reshape(np.array(columns).T @ unknown, (size, size), order="C") + fixed
            if least is not None:
                matrix = matrix - least[0] * np.eye(size)
            yield block, matrix >> 0


def solves(program: cp.Problem) -> bool:
    """Solve a program as precisely as can be; say whether there is any point at all."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        for precision in _PRECISIONS:
            tolerances = {f"tol_{name}": precision for name in ("gap_abs", "gap_rel", "feas")}
            try:
                program.solve(solver=cp.CLARABEL, **tolerances, **_CARE)
            except cp.error.SolverError:
                continue
            if program.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
                return True
    return False
