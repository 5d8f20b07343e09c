"""Step sizes that depend on the round, and averages of the models, on every engine."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles import random_problem
from scipy.special import stdtrit

from fltheory.algorithms import (
    AveragedIterate,
    Constant,
    FedAvg,
    Harmonic,
    Safari,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import in_round
from fltheory.engines import Setting, exact, monte_carlo, stationary
from fltheory.engines.trajectory import FIELDS
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

ROUNDS = 6


def test_step_sizes() -> None:
    assert Constant(0.3).at(7) == 0.3
    assert [Harmonic(2.0, 3.0).at(t) for t in (1, 2, 5)] == [0.5, 0.4, 0.25]
    assert Harmonic(2.0).at(1) == 2.0


def test_in_round_leaves_other_algorithms_alone() -> None:
    plain = FedAvg(0.1, 2)
    assert in_round(plain, 5) is plain
    assert in_round(Scheduled(plain, Harmonic(1.0, 3.0)), 5) == FedAvg(0.125, 2)


class OneClient:
    """``s_t = (1 - lr_t h) s_{t-1} + lr_t sigma xi_t``, coefficient by coefficient."""

    h, sigma, start = Fraction(3, 2), Fraction(1, 2), Fraction(2)
    steps = tuple(Fraction(1, t + 2) for t in range(1, ROUNDS + 1))

    def models(self) -> list[list[Fraction]]:
        """Coefficients of (s_0, xi_1, ..., xi_R) in the model before each round and at last."""
        rows = [[Fraction(1)] + [Fraction(0)] * ROUNDS]
        for t, lr in enumerate(self.steps, start=1):
            row = [(1 - lr * self.h) * value for value in rows[-1]]
            row[t] += lr * self.sigma
            rows.append(row)
        return rows

    def averages(self, weights: tuple[Fraction, ...]) -> list[list[Fraction]]:
        rows = self.models()
        averages = [rows[0]]
        for t in range(1, ROUNDS + 1):
            total = sum(weights[:t])
            averages.append(
                [
                    sum(w * row[j] for w, row in zip(weights, rows[:t], strict=False)) / total
                    for j in range(ROUNDS + 1)
                ]
            )
        return averages

    def squares(self, rows: list[list[Fraction]]) -> list[float]:
        return [float((self.start * row[0]) ** 2 + sum(c**2 for c in row[1:])) for row in rows]


PROBLEM = QuadraticProblem([[1.5]], [[0.0]], sigma=0.5)
SCHEDULED = Scheduled(FedAvg(9.0, 1), Harmonic(1.0, 2.0))


def test_scheduled_steps_of_one_client() -> None:
    run = exact(Setting(SCHEDULED, PROBLEM, UniformSubset(1, 1), ROUNDS, [2.0]))
    expected = OneClient().squares(OneClient().models())
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("algorithm", "weights"),
    [
        (AveragedIterate(SCHEDULED), OneClient.steps),
        (AveragedIterate(SCHEDULED, Constant(3.0)), (Fraction(1),) * ROUNDS),
    ],
    ids=["weighted by steps", "equal weights"],
)
def test_average_of_one_clients_models(
    algorithm: AveragedIterate, weights: tuple[Fraction, ...]
) -> None:
    """All covariances between rounds enter; rational, noise by noise."""
    run = exact(Setting(algorithm, PROBLEM, UniformSubset(1, 1), ROUNDS, [2.0]))
    expected = OneClient().squares(OneClient().averages(weights))
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-12)
    assert run.rounding_error is not None
    gap = np.abs(run.squared_distance - expected)
    assert (gap <= run.rounding_error.squared_distance + 2e-16 * np.array(expected)).all()


def test_average_of_an_algorithm_without_schedule_weighs_rounds_equally() -> None:
    problem = QuadraticProblem([[1.0]], [[0.0]])
    run = exact(Setting(AveragedIterate(FedAvg(0.5, 1)), problem, UniformSubset(1, 1), 3, [1.0]))
    expected = np.array([1.0, 1.0, 1.5 / 2, 1.75 / 3]) ** 2
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-13)


def test_a_constant_schedule_is_none() -> None:
    problem = random_problem(3, 4, 2)
    arguments = (problem, UniformSubset(4, 2), 12, [1.0, -2.0])
    left = exact(Setting(Scheduled(Safari(0.5, 9.0, 0.1, 2), Constant(0.2)), *arguments))
    right = exact(Setting(Safari(0.5, 0.2, 0.1, 2), *arguments))
    for name in FIELDS:
        np.testing.assert_array_equal(left[name], right[name])


@pytest.mark.parametrize(
    "algorithm",
    [
        Scheduled(Safari(0.5, 9.0, 0.2, 2), Harmonic(1.0, 2.0)),
        AveragedIterate(Scheduled(WeightedFedAvg((0.1, 0.2, 0.3, 0.4), 9.0, 3), Harmonic(1.0))),
        AveragedIterate(Safari(0.5, 0.3, 0.2, 2)),
    ],
    ids=["scheduled branches", "averaged weights", "averaged branches"],
)
def test_monte_carlo_agrees(algorithm: Scheduled | AveragedIterate) -> None:
    """4,000 runs; all t-intervals together miss with a probability below 1e-9."""
    arguments = (algorithm, random_problem(4, 4, 2), UniformSubset(4, 2), 8, [1.0, -2.0])
    truth, replicas = exact(Setting(*arguments)), 4000
    sampled = monte_carlo(Setting(*arguments), replicas=replicas, seed=0)
    assert sampled.standard_error is not None
    quantile = -stdtrit(replicas - 1, 1e-9 / (2 * 9 * len(FIELDS)))
    for name in FIELDS:
        slack = quantile * sampled.standard_error[name] + 1e-12 * truth[name]
        assert (np.abs(sampled[name] - truth[name]) <= slack).all()


def test_overflow_of_a_later_round_is_dated() -> None:
    """Steps that grow until one round's power leaves the range of float64."""

    class Growing:
        def at(self, round_index: int) -> FedAvg:
            return FedAvg(0.5 if round_index < 3 else 1e3, 120)

    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0)
    run = exact(Setting(Growing(), problem, UniformSubset(2, 1), 5, [1.0]))
    assert run.diverged_at == 3
    assert run.rounding_error is not None
    assert np.isfinite(run.squared_distance[:3]).all()
    for arrays in (run, run.rounding_error):
        assert np.isposinf(arrays.squared_distance[3:]).all()


@pytest.mark.parametrize("algorithm", [SCHEDULED, AveragedIterate(FedAvg(0.1, 1))], ids=str)
def test_no_stationary_limit(algorithm: Scheduled | AveragedIterate) -> None:
    with pytest.raises(ValueError, match=r"the same in every round .*follow engines\.exact"):
        stationary(Setting(algorithm, PROBLEM, UniformSubset(1, 1), 1, PROBLEM.x_star))


def test_what_has_no_client_lr_is_refused() -> None:
    with pytest.raises(ValueError, match=r"algorithm must have a client_lr to schedule, got "):
        Scheduled(AveragedIterate(FedAvg(0.1, 1)), Constant(0.1))
    with pytest.raises(ValueError, match=r"value must be a finite number above 0, got 0\.0"):
        Constant(0.0)
    with pytest.raises(ValueError, match=r"offset must be a finite number of at least 0, got -1"):
        Harmonic(1.0, -1.0)
