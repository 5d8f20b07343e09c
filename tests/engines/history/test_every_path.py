"""The exact engine against every path of a tiny run, in rational arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from oracles import convert, solve

from fltheory.algorithms import Safari
from fltheory.engines import Setting, exact
from fltheory.engines.observables import ParticipantExcessLoss, ParticipantGradientSum
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")


@dataclass(frozen=True)
class Expression:
    """``mean + sum_j columns[:, j] xi_j`` with independent xi_j of given variances."""

    mean: np.ndarray
    columns: np.ndarray
    variances: tuple[Fraction, ...]

    def with_noise(self, variance: Fraction) -> Expression:
        """Add fresh white noise."""
        dim = self.mean.size
        fresh = convert(np.eye(dim, dtype=int), Fraction)
        return Expression(
            self.mean,
            np.concatenate([self.columns, fresh], axis=1),
            self.variances + (variance,) * dim,
        )

    def mapped(self, slope: np.ndarray, offset: np.ndarray) -> Expression:
        return Expression(slope @ self.mean + offset, slope @ self.columns, self.variances)

    def plus(self, later: Expression) -> Expression:
        """Add an expression whose noises begin with this one's."""
        fresh = len(later.variances) - len(self.variances)
        padding = np.zeros((self.mean.size, fresh), dtype=object)
        columns = np.concatenate([self.columns, padding], axis=1)
        return Expression(self.mean + later.mean, columns + later.columns, later.variances)

    def expected_form(self, matrix: np.ndarray) -> Fraction:
        """``E (.)' matrix (.)``."""
        spread = [
            variance * (column @ matrix @ column)
            for variance, column in zip(self.variances, self.columns.T, strict=True)
        ]
        return self.mean @ matrix @ self.mean + sum(spread, Fraction(0))


def average(parts: Sequence[Expression], before: Expression) -> Expression:
    """Average expressions that share the noises of ``before`` and no others."""
    shared, count = len(before.variances), Fraction(len(parts))
    common = sum(part.columns[:, :shared] for part in parts)
    own = [part.columns[:, shared:] for part in parts]
    variances = before.variances
    for part in parts:
        variances += part.variances[shared:]
    return Expression(
        sum(part.mean for part in parts) / count,
        np.concatenate([common, *own], axis=1) / count,
        variances,
    )


HESSIANS = [
    [[Fraction(2), Fraction(1, 2)], [Fraction(1, 2), Fraction(1)]],
    [[Fraction(1), Fraction(-1, 4)], [Fraction(-1, 4), Fraction(3)]],
    [[Fraction(3, 2), Fraction(0)], [Fraction(0), Fraction(1, 2)]],
]
OPTIMA = [
    [Fraction(1), Fraction(-2)],
    [Fraction(-1, 2), Fraction(3, 2)],
    [Fraction(3), Fraction(1, 4)],
]
ALPHA = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
SIGMA, SERVER_SIGMA = Fraction(3, 4), Fraction(1, 2)
Q, CLIENT_LR, ASSIST_LR, LOCAL_STEPS = Fraction(3, 4), Fraction(1, 8), Fraction(1, 4), 2
X0 = [Fraction(2), Fraction(-3, 2)]
ROUNDS = 2
SETS = list(combinations(range(3), 2))


def rational(value: Any) -> np.ndarray:
    return convert(value, Fraction)


class EveryPath:
    """SAFARI along every sequence of branches and participant sets, noise by noise."""

    def __init__(self, shared_hessian: bool) -> None:
        self.hessians = rational([HESSIANS[0]] * 3 if shared_hessian else HESSIANS)
        self.optima, alpha = rational(OPTIMA), rational(ALPHA)
        self.identity = rational(np.eye(2, dtype=int))
        pulls = [h @ c for h, c in zip(self.hessians, self.optima, strict=True)]
        self.mean_hessian = sum(a * h for a, h in zip(alpha, self.hessians, strict=True))
        self.mean_pull = sum(a * pull for a, pull in zip(alpha, pulls, strict=True))
        self.x_star = solve(self.mean_hessian, self.mean_pull)
        names = (*FIELDS, "participant_gradient_sum", "participant_excess_loss")
        self.expected = {name: [Fraction(0)] * (ROUNDS + 1) for name in names}

    def local_run(self, x: Expression, client: int) -> tuple[Expression, Expression]:
        """Return the local model after K steps, and the sum of exact gradients on the way."""
        hessian, optimum = self.hessians[client], self.optima[client]
        y, total = x, x.mapped(0 * self.identity, 0 * optimum)
        for _ in range(LOCAL_STEPS):
            total = total.plus(y.mapped(hessian, -hessian @ optimum))
            slope = self.identity - CLIENT_LR * hessian
            moved = y.mapped(slope, CLIENT_LR * (hessian @ optimum))
            y = moved.with_noise(CLIENT_LR**2 * SIGMA**2 / 2)
        return y, total

    def server_step(self, x: Expression) -> Expression:
        slope = self.identity - ASSIST_LR * self.mean_hessian
        moved = x.mapped(slope, ASSIST_LR * self.mean_pull)
        return moved.with_noise(ASSIST_LR**2 * SERVER_SIGMA**2 / 2)

    def visit(self, x: Expression, round_: int, probability: Fraction) -> None:
        """Record the model ``x``, reached with ``probability``, and go on from it."""
        offset = x.mapped(self.identity, -self.x_star)
        forms = {
            "squared_distance": self.identity,
            "squared_gradient": self.mean_hessian @ self.mean_hessian,
            "excess_loss": self.mean_hessian / Fraction(2),
        }
        for name, matrix in forms.items():
            self.expected[name][round_] += probability * offset.expected_form(matrix)
        for members in SETS:
            chance = probability / len(SETS)
            ends, sums = zip(*(self.local_run(x, client) for client in members), strict=True)
            self.record_participants(x, members, average(sums, x), round_, chance)
            if round_ < ROUNDS:
                self.visit(average(ends, x), round_ + 1, chance * Q)
        if round_ < ROUNDS:
            self.visit(self.server_step(x), round_ + 1, probability * (1 - Q))

    def record_participants(
        self,
        x: Expression,
        members: tuple[int, ...],
        gradient_sum: Expression,
        round_: int,
        chance: Fraction,
    ) -> None:
        squared = gradient_sum.expected_form(self.identity)
        self.expected["participant_gradient_sum"][round_] += chance * squared
        for client in members:
            hessian, optimum = self.hessians[client], self.optima[client]
            here = x.mapped(self.identity, -optimum).expected_form(hessian)
            gap = self.x_star - optimum
            excess = (here - gap @ hessian @ gap) / 2 / len(members)
            self.expected["participant_excess_loss"][round_] += chance * excess


@pytest.mark.parametrize("shared_hessian", [False, True])
def test_agrees_with_every_path_of_a_tiny_run(shared_hessian: bool) -> None:
    """N = 3, m = 2, R = 2, both branches, K = 2, noise symbol by symbol; all rational."""
    paths = EveryPath(shared_hessian)
    start = Expression(rational(X0), np.zeros((2, 0), dtype=object), ())
    paths.visit(start, 0, Fraction(1))
    problem = QuadraticProblem(
        np.array(HESSIANS[0] if shared_hessian else HESSIANS, dtype=float),
        np.array(OPTIMA, dtype=float),
        sigma=float(SIGMA),
        server_sigma=float(SERVER_SIGMA),
        target_weights=np.array(ALPHA, dtype=float),
    )
    algorithm = Safari(float(Q), float(CLIENT_LR), float(ASSIST_LR), LOCAL_STEPS)
    observe = [ParticipantGradientSum(LOCAL_STEPS, float(CLIENT_LR)), ParticipantExcessLoss()]
    run = exact(
        Setting(algorithm, problem, UniformSubset(3, 2), ROUNDS, np.array(X0, dtype=float)),
        observe=observe,
    )
    for name, values in paths.expected.items():
        np.testing.assert_allclose(run[name], np.array(values, dtype=float), rtol=1e-12)
