"""The exact engine against path enumeration, exact arithmetic, closed forms and symmetries."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import RawMoments, convert, many_digits, random_problem, solve

from fltheory.algorithms import FedAvg, Safari
from fltheory.engines import (
    NotAffineError,
    ParticipantExcessLoss,
    ParticipantGradientSum,
    exact,
    moment_recursion,
    probing,
)
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex, quadratic

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")


# --- every path of a tiny run, in rational arithmetic ---------------------------------------


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

    def expected_form(self, matrix: np.ndarray) -> Fraction:
        """``E (.)' matrix (.)``."""
        spread = [
            variance * (column @ matrix @ column)
            for variance, column in zip(self.variances, self.columns.T, strict=True)
        ]
        return self.mean @ matrix @ self.mean + sum(spread, Fraction(0))


def padded_average(parts: list[Expression], shared: int) -> Expression:
    """Average expressions that share their first ``shared`` noises and no others."""
    count, dim = len(parts), parts[0].mean.size
    total = sum(part.columns[:, :shared] for part in parts)
    own = [part.columns[:, shared:] for part in parts]
    variances = parts[0].variances[:shared]
    for part in parts:
        variances += part.variances[shared:]
    return Expression(
        sum(part.mean for part in parts) / Fraction(count),
        np.concatenate([total, *own], axis=1).reshape(dim, -1) / Fraction(count),
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
ROUNDS = 3
SETS = list(combinations(range(3), 2))


def enumerate_paths(shared_hessian: bool) -> dict[str, list[Fraction]]:
    """Run SAFARI along every sequence of branches and participant sets, noise by noise."""
    as_fractions = lambda value: convert(value, Fraction)  # noqa: E731
    hessians = as_fractions([HESSIANS[0]] * 3 if shared_hessian else HESSIANS)
    optima, alpha = as_fractions(OPTIMA), as_fractions(ALPHA)
    mean_hessian = sum(a * h for a, h in zip(alpha, hessians, strict=True))
    x_star = solve(
        mean_hessian, sum(a * h @ c for a, h, c in zip(alpha, hessians, optima, strict=True))
    )
    identity = as_fractions(np.eye(2, dtype=int))
    client_variance, server_variance = SIGMA**2 / 2, SERVER_SIGMA**2 / 2

    def local_run(x: Expression, client: int) -> tuple[Expression, Expression]:
        """Return the local model after K steps, and the sum of exact gradients on the way."""
        hessian, optimum = hessians[client], optima[client]
        total = x.mapped(0 * identity, 0 * optimum)
        y = x
        for _ in range(LOCAL_STEPS):
            gradient = y.mapped(hessian, -hessian @ optimum)
            wider = len(gradient.variances) - len(total.variances)
            columns = np.concatenate(
                [total.columns, convert(np.zeros((2, wider), dtype=int), Fraction)], axis=1
            )
            total = Expression(
                total.mean + gradient.mean, columns + gradient.columns, gradient.variances
            )
            moved = y.mapped(identity - CLIENT_LR * hessian, CLIENT_LR * (hessian @ optimum))
            noisy = moved.with_noise(client_variance * CLIENT_LR**2)
            y = noisy
        return y, total

    expected: dict[str, list[Fraction]] = {
        name: [Fraction(0)] * (ROUNDS + 1)
        for name in (*FIELDS, "participant_gradient_sum", "participant_excess_loss")
    }

    def visit(x: Expression, round_: int, probability: Fraction) -> None:
        offset = x.mapped(identity, -x_star)
        forms = {
            "squared_distance": identity,
            "squared_gradient": mean_hessian @ mean_hessian,
            "excess_loss": mean_hessian / Fraction(2),
        }
        for name, matrix in forms.items():
            expected[name][round_] += probability * offset.expected_form(matrix)
        for members in SETS:
            chance = probability / len(SETS)
            ends, sums = zip(*(local_run(x, client) for client in members), strict=True)
            gradient_sum = padded_average(list(sums), len(x.variances))
            expected["participant_gradient_sum"][round_] += chance * gradient_sum.expected_form(
                identity
            )
            for client in members:
                here = x.mapped(identity, -optima[client]).expected_form(hessians[client])
                gap = x_star - optima[client]
                there = gap @ hessians[client] @ gap
                expected["participant_excess_loss"][round_] += chance * (here - there) / 4
            if round_ < ROUNDS:
                following = padded_average(list(ends), len(x.variances))
                visit(following, round_ + 1, chance * Q)
        if round_ < ROUNDS:
            moved = x.mapped(identity - ASSIST_LR * mean_hessian, ASSIST_LR * mean_hessian @ x_star)
            assisted = moved.with_noise(server_variance * ASSIST_LR**2)
            visit(assisted, round_ + 1, probability * (1 - Q))

    start = Expression(
        as_fractions(X0), np.zeros((2, 0), dtype=object), ()
    )
    visit(start, 0, Fraction(1))
    return expected


@pytest.mark.parametrize("shared_hessian", [False, True])
def test_agrees_with_every_path_of_a_tiny_run(shared_hessian: bool) -> None:
    """N = 3, m = 2, R = 3, both branches, K = 2, noise symbol by symbol; all rational."""
    expected = enumerate_paths(shared_hessian)
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
        algorithm, problem, UniformSubset(3, 2), ROUNDS, np.array(X0, dtype=float), observe=observe
    )
    for name, values in expected.items():
        np.testing.assert_allclose(run[name], np.array(values, dtype=float), rtol=1e-12)
