"""The semidefinite programs behind the bounds on a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.worst_case.rounds.slack import Form, Slack
from fltheory.worst_case.semidefinite import ProgramOptimum, optimum

Limit: TypeAlias = tuple[FloatArray, float]
"""Numbers whose product with the unknowns, plus the last one, must not be negative."""


@dataclass(frozen=True, eq=False)
class Multipliers(ReadOnlyArrays):
    """Multipliers of a slack's forms, divided by e.

    Attributes
    ----------
    pairs, budgets, noises : array
        Multipliers that must not be negative.
    orthogonal : array
        Multipliers of any sign.
    """

    pairs: FloatArray
    budgets: FloatArray
    noises: FloatArray
    orthogonal: FloatArray


@dataclass(frozen=True, eq=False)
class Solution(ReadOnlyArrays):
    """A program's solution.

    Attributes
    ----------
    value : float
        Value of the objective.
    decrease : float
        ``(1 - rate)/e``.
    multipliers : Multipliers
    gram : list of arrays
        Products of the worst clients' vectors, one matrix per block.
    """

    value: float
    decrease: float
    multipliers: Multipliers
    gram: list[FloatArray]


class Program:
    """A slack as a program whose unknowns are its multipliers and at most one more.

    Parameters
    ----------
    slack : Slack
    bases : list of arrays
        The solver's coordinates of each block.
    identical : bool
        Whether to leave out the vectors bounded by the budgets of heterogeneity. If so, ``bases``
        are those without these vectors.
    """

    def __init__(self, slack: Slack, bases: list[FloatArray], *, identical: bool = False) -> None:
        self._slack = slack
        self._bases = bases
        self._change, self._decrease = self._seen(slack.change), self._seen(slack.decrease)
        budgets = [] if identical else slack.budgets
        kinds = (budgets, slack.noises, slack.conditions, slack.orthogonal)
        self._forms = [self._seen(form) for kind in kinds for form in kind]
        # There is room for one additional unknown before the multipliers.
        ends = np.cumsum([1, *map(len, kinds)]).tolist()
        self._budgets, self._noises, self._pairs, self._orthogonal = map(slice, ends, ends[1:])

    def _seen(self, form: Form) -> Form:
        """Return a form in the solver's coordinates."""
        pairs = zip(self._bases, form, strict=True)
        return [basis.T @ matrix @ basis for basis, matrix in pairs]

    def least_rate(self) -> Solution | None:
        """Find the largest decrease."""
        unit = max(float(np.abs(self._slack.change[0]).max()), 1e-300)
        return self._fastest([], 1 / unit)

    def least_residual(self, decrease: float, budget: float, noise: float) -> Solution | None:
        """Find the least ``budget sum nu + noise sum s`` at a rate."""
        prices = self._prices(budget, noise)
        found = self._optimum(prices, self._at(decrease), decrease=decrease)
        return None if found is None else self._solution(found, decrease)

    def least_floor(
        self, budget: float, noise: float, fixed: float, decrease: float
    ) -> Solution | None:
        """Find the least ``(budget sum nu + noise sum s + fixed) / decrease``.

        As this is a quotient of linear functions, everything is divided by the decrease. The scale
        replaces the decrease as an unknown, in units of the given ``decrease``.
        """
        prices = self._prices(budget, noise, own=fixed)
        below = [-decrease * matrix for matrix in self._decrease]
        scale_is_positive = [(np.eye(len(prices))[0], 0.0)]
        found = self._optimum(prices, below, self._change, scale_is_positive, decrease=decrease)
        if found is None or not found.unknowns[0] > 0:
            return None
        scale = float(found.unknowns[0])
        return self._solution(found, decrease / scale, scale)

    def fastest(self, budgets: float, noises: float) -> Solution | None:
        """Find the largest decrease within given sums of the budgets' multipliers."""
        return self._fastest(self._at_most(budgets, noises))

    def _fastest(self, limits: Sequence[Limit], worth: float = 1.0) -> Solution | None:
        falling = [-matrix for matrix in self._decrease]
        found = self._optimum(
            self._prices(own=-worth), self._change, falling, limits, values=self._slack.values
        )
        return None if found is None else self._solution(found, float(found.unknowns[0]))

    def widest_slack(self, decrease: float, budgets: float, noises: float) -> Solution | None:
        """Find the multipliers within given sums that maximise the blocks' least eigenvalue."""
        least = [-np.eye(len(matrix)) for matrix in self._change]
        limits = self._at_most(budgets, noises)
        prices, fixed = self._prices(own=-1.0), self._at(decrease)
        found = self._optimum(prices, fixed, least, limits, decrease=decrease)
        return None if found is None else self._solution(found, decrease)

    def _prices(self, budget: float = 0.0, noise: float = 0.0, own: float = 0.0) -> FloatArray:
        prices = np.zeros(1 + len(self._forms))
        prices[0], prices[self._budgets], prices[self._noises] = own, budget, noise
        # This is the dissimilarity term that the assumption about a run adds.
        prices[self._pairs.stop - 1] -= budget * (self._slack.given_level or 0.0)
        return prices

    def _at_most(self, budgets: float, noises: float) -> list[Limit]:
        limits: list[Limit] = []
        for kind, most in ((self._budgets, budgets), (self._noises, noises)):
            row = np.zeros(1 + len(self._forms))
            row[kind] = -1.0
            if kind is self._budgets:
                row[self._pairs.stop - 1] += self._slack.given_level or 0.0
            limits += [(row, most)] if row.any() else []
        return limits

    def _at(self, decrease: float) -> Form:
        """Return the slack at a decrease, without the multipliers' terms."""
        pairs = zip(self._change, self._decrease, strict=True)
        return [change - decrease * matrix for change, matrix in pairs]

    def _optimum(
        self,
        prices: FloatArray,
        fixed: Form,
        own: Form | None = None,
        limits: Sequence[Limit] = (),
        *,
        decrease: float = 0.0,
        values: FloatArray | None = None,
    ) -> ProgramOptimum | None:
        """Solve, given all unknowns' costs; the extra first unknown, if any, has the form ``own``.

        Multipliers of pairs must cancel the function values of the given decrease, or the first
        unknown's ``values``.
        """
        forms = self._forms if own is None else [own, *self._forms]
        there = np.s_[:, len(prices) - len(forms) :]
        signed = np.eye(len(prices))[1 : self._pairs.stop]
        rows = np.array([*signed, *(row for row, _ in limits)]).reshape(-1, len(prices))
        offsets = np.array([*np.zeros(len(signed)), *(offset for _, offset in limits)])
        balance = np.zeros((len(self._slack.balance), len(prices)))
        # For the descent of F with one local step, there are no pairs of points.
        if self._slack.conditions:
            balance[:, self._pairs] = self._slack.balance
        if values is not None:
            balance[:, 0] = -values
        equal = (balance[there], decrease * self._slack.values)
        blocks = [
            (np.array([form[block] for form in forms]), fixed[block]) for block in self._filled
        ]
        limited = (rows[there], offsets)
        found = optimum(prices[there[1]], equal=equal, nonnegative=limited, blocks=blocks)
        if found is None or own is not None:
            return found
        return replace(found, unknowns=np.append(0.0, found.unknowns))

    @property
    def _filled(self) -> list[int]:
        """Indices of the blocks that are not empty."""
        return [block for block, basis in enumerate(self._bases) if basis.shape[1]]

    def _solution(self, found: ProgramOptimum, decrease: float, scale: float = 1.0) -> Solution:
        gram = [np.zeros((size, size)) for size in self._slack.sizes]
        for block, dual in zip(self._filled, found.duals, strict=True):
            gram[block] = self._bases[block] @ dual @ self._bases[block].T
        kinds = (self._pairs, self._budgets, self._noises, self._orthogonal)
        multipliers = Multipliers(*(found.unknowns[kind] / scale for kind in kinds))
        return Solution(found.value, decrease, multipliers, gram)
