"""Exact moments along a known path, for algorithms that count rounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import (
    CappedLinear,
    FedAR,
    FedAvg,
    FedVarp,
    Harmonic,
    Mifa,
    Safari,
    Scaffold,
    Scheduled,
)
from fltheory.engines import NotAffineError, along_path, exact, monte_carlo
from fltheory.participation import Bernoulli, Cyclic, Trace, UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex

X0 = np.array([1.5, -1.0])
CYCLES = Cyclic([1, 2, 3], [0, 1, 0])
FIELDS = ("squared_distance", "squared_gradient", "excess_loss")
AFFINE = {
    "FedAvg": FedAvg(0.2, 3),
    "FedVARP": FedVarp(0.2, 2),
    "SCAFFOLD": Scaffold(0.2, 2),
    "MIFA from zero": Mifa(0.2, 2, start="zero"),
}


@pytest.mark.parametrize("name", AFFINE)
def test_it_agrees_with_the_engine_along_chains(name: str) -> None:
    """Algorithms that do not count have exact moments by the jump-linear recursion too."""
    problem = random_problem(6, 3, 2, sigma=0.7)
    chain = exact(AFFINE[name], problem, CYCLES, 20, X0)
    path = along_path(AFFINE[name], problem, CYCLES, 20, X0)
    for field in FIELDS:
        assert path[field] == pytest.approx(chain[field], rel=1e-10)


def fedar_in_fractions(rounds: int) -> list[Fraction]:
    """E (w_t - w*)^2 of FedAR on a line, K = 1, one column a unit of noise, in fractions."""
    optima, sigma, start = [Fraction(1), Fraction(-3)], Fraction(1, 2), Fraction(2)
    centre, columns = sum(optima) / 2, 1 + 2 * rounds
    w = [start - centre] + [Fraction(0)] * (columns - 1)
    updates = [[Fraction(0)] * columns for _ in range(2)]
    tau, seen, used, squares = [0, 0], [False, False], 1, [w[0] ** 2]
    for t in range(rounds):
        eta = Fraction(1, t + 3)
        for i in range(2):
            tau[i] += 1
            if i == 1 or t % 3 == 1:
                tau[i], seen[i] = 0, True
                updates[i] = list(w)
                updates[i][0] -= optima[i] - centre
                updates[i][used] += sigma
                used += 1
        counted = [i for i in range(2) if seen[i] and tau[i] <= 1]
        w = [
            value
            - eta / len(counted) * sum((1 + Fraction(tau[i], 4)) * updates[i][c] for i in counted)
            for c, value in enumerate(w)
        ]
        squares.append(sum(value**2 for value in w))
    return squares


def test_fedar_in_fractions_and_the_bound_on_rounding() -> None:
    """First appearance, cut-off, weights and schedule, for 25 rounds."""
    problem = QuadraticProblem([[1.0]], [[1.0], [-3.0]], sigma=0.5)
    algorithm = Scheduled(
        FedAR(0.1, 1, weight=CappedLinear(0.25, 2.0), cutoff=1.0), Harmonic(1.0, offset=2.0)
    )
    run = along_path(algorithm, problem, Cyclic([3, 1], [2, 0]), 25, [2.0])
    assert run.rounding_error is not None
    for t, expected in enumerate(fedar_in_fractions(25)):
        error = abs(Fraction(run.squared_distance[t]) - expected)
        assert error <= Fraction(run.rounding_error.squared_distance[t])
        assert run.squared_distance[t] == pytest.approx(float(expected), rel=1e-11)
    assert run.rounding_error.squared_distance[-1] < 1e-9


@pytest.mark.parametrize(
    "algorithm", [FedAR(0.2, 2, cutoff=2.0), Mifa(0.2, 2)], ids=["FedAR", "waiting MIFA"]
)
def test_sampled_runs_agree(algorithm) -> None:
    """No mean of 20 000 noisy runs is 8 standard errors from its expectation.

    Given the path the model is Gaussian, its squares chi-square-like with skewness below 2.9, so
    the normal tail beyond 8, 1.3e-15, grows at most by exp(2.9 8^3/(6 sqrt(20 000))) < 6; for 2
    runs, 10 rounds and 3 quantities the false-alarm probability is below 1e-12. Detects 6% of a
    standard deviation.
    """
    problem = random_problem(6, 3, 2, sigma=0.7)
    truth = along_path(algorithm, problem, CYCLES, 10, X0)
    run = monte_carlo(algorithm, problem, CYCLES, 10, X0, replicas=20_000, seed=3)
    assert run.standard_error is not None
    for field in FIELDS:
        slack = 8 * run.standard_error[field] + 1e-12 * (1 + truth[field])
        assert (np.abs(run[field] - truth[field]) <= slack).all()


def test_errors_stay_bounded_over_many_rounds() -> None:
    """3,000 rounds of a map whose slope has norm above one: the bound does not explode."""
    problem = QuadraticProblem([[1.0]], [[1.0], [-3.0]], sigma=0.5)
    run = along_path(FedAR(0.01, 1), problem, Cyclic([3, 1], [2, 0]), 3000, [2.0])
    assert run.rounding_error is not None
    assert run.rounding_error.squared_distance[-1] < 1e-3 * run.squared_distance[-1]


def test_what_it_refuses() -> None:
    problem = random_problem(6, 3, 2)
    with pytest.raises(NotAffineError, match="participation must be known beforehand"):
        along_path(FedAR(0.1, 1), problem, Bernoulli([0.5] * 3), 3, X0)
    with pytest.raises(NotAffineError, match="algorithm must have one branch"):
        along_path(Safari(0.5, 0.1, 0.1, 1), problem, UniformSubset(3, 3), 3, X0)
    with pytest.raises(NotAffineError, match="problem must be a QuadraticProblem"):
        along_path(FedAR(0.1, 1), nonconvex(3, 2, L=1.0, sigma_G=0.1), CYCLES, 3, X0)


class Clipped(FedAvg):
    """FedAvg whose model is cut to [-1, 1]: not affine."""

    def round(self, state, clients, who, branch):
        after = super().round(state, clients, who, branch)
        return {**after, "x": np.clip(after["x"], -1.0, 1.0)}


def test_a_round_that_is_not_affine_is_refused() -> None:
    path = Trace([[1, 1, 1], [1, 0, 1]], start=0)
    with pytest.raises(NotAffineError, match="must be affine in what is not a count"):
        along_path(Clipped(0.1, 1), random_problem(6, 3, 2), path, 3, X0)
