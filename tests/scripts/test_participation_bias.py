"""The biases of limits: fixed points by hand, drawn paths against exact limits, bad input."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from docs.scripts.bias import (
    AVAILABILITY,
    LR,
    STEPS,
    WEIGHTS,
    BiasEvidence,
    Effort,
    algorithms,
    bias_table,
    late_means,
    limit_bias,
    problem,
    processes,
)
from fltheory.algorithms import FedAR, FedAvg, FedAvgIS, Mifa

EFFORT = Effort(2, rounds=40)
EQUAL = problem(WEIGHTS["equal"])


def fixed_point(shares: np.ndarray) -> np.ndarray:
    """Return x with ``sum a_i (I - (I - lr H_i)^K)(x - c_i) = 0``."""
    moves = [np.eye(2) - np.linalg.matrix_power(np.eye(2) - LR * h, STEPS) for h in EQUAL.hessians]
    pull = sum(a * m @ c for a, m, c in zip(shares, moves, EQUAL.optima, strict=True))
    return np.linalg.solve(sum(a * m for a, m in zip(shares, moves, strict=True)), pull)


def mean_share() -> np.ndarray:
    """E 1{i present}/|S| of the Bernoulli process, set by set."""
    p, total = np.array(AVAILABILITY), np.zeros(5)
    for mask in product((0, 1), repeat=5):
        here = np.array(mask)
        total += np.where(here, p, 1 - p).prod() * here / max(here.sum(), 1)
    return total


@pytest.mark.parametrize(
    ("name", "process", "shares"),
    [
        ("FedAvg", "everybody", np.full(5, 0.2)),
        ("FedAvg", "uniform", np.full(5, 0.2)),
        ("FedAvg", "Bernoulli", mean_share()),
        ("FedAvg over all N", "Bernoulli", np.array(AVAILABILITY)),
        ("FedAvg-IS", "Bernoulli", np.ones(5)),
        ("MIFA", "Markov", np.ones(5)),
        ("FedVARP", "Markov", np.ones(5)),
        ("FedVARP", "cyclic", np.ones(5)),
    ],
)
def test_means_end_where_the_mean_round_stands_still(name, process, shares) -> None:
    participation = processes()[process]
    algorithm = algorithms(WEIGHTS["equal"], participation.marginals)[name]
    found = limit_bias(algorithm, EQUAL, participation, EFFORT)
    expected = np.linalg.norm(fixed_point(shares) - EQUAL.x_star)
    assert found.grade is BiasEvidence.EXACT
    assert abs(found.size - expected) <= found.error + 1e-12


@pytest.mark.parametrize("process", ["Bernoulli", "Markov"])
def test_drawn_paths_agree_with_exact_limits(process: str) -> None:
    """FedAvg-IS, both ways, within 7 standard errors of each coordinate (600 paths).

    Two-sided normal tail beyond 7: 2.6e-12; four comparisons.
    """
    from fltheory.engines import Setting, stationary

    participation = processes()[process]
    algorithm = FedAvgIS(AVAILABILITY, LR, STEPS)
    means = late_means(algorithm, EQUAL, participation, 600, 400)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    limit = stationary(Setting(algorithm, EQUAL, participation, 1, EQUAL.x_star)).mean
    assert (np.abs(means.mean(axis=0) - limit) <= 7 * error).all()
    assert (error < 0.01).all()


def test_a_drawn_bias_has_the_standard_error_of_its_mean() -> None:
    participation = processes()["Bernoulli"]
    algorithm = FedAR(LR, STEPS)
    found = limit_bias(algorithm, EQUAL, participation, Effort(50, rounds=40))
    means = late_means(algorithm, EQUAL, participation, 50, 40)
    assert found.grade is BiasEvidence.PATHS
    assert found.size == np.linalg.norm(means.mean(axis=0) - EQUAL.x_star)
    assert found.error**2 == pytest.approx(np.trace(np.cov(means.T)) / 50, rel=1e-12)


def test_waiting_mifa_ends_where_the_zero_table_does() -> None:
    """The table lists MIFA once: when all have appeared both starts do the same."""
    participation = processes()["Bernoulli"]
    late = late_means(Mifa(LR, STEPS), EQUAL, participation, 20, 1600)
    limit = limit_bias(Mifa(LR, STEPS, start="zero"), EQUAL, participation, EFFORT)
    sizes = np.linalg.norm(late - EQUAL.x_star, axis=1)
    np.testing.assert_allclose(sizes, limit.size, atol=1e-9)


def test_one_path_where_everybody_is_there() -> None:
    found = limit_bias(FedAR(LR, STEPS), EQUAL, processes()["everybody"], Effort(5, rounds=800))
    expected = limit_bias(FedAvg(LR, STEPS), EQUAL, processes()["everybody"], EFFORT)
    assert (found.grade, found.error) == (BiasEvidence.PATHS, 0.0)
    assert found.size == pytest.approx(expected.size, rel=1e-9)


def test_progress_counts_cells() -> None:
    seen: list[tuple[int, int, str]] = []
    table = bias_table(EFFORT, progress=lambda *done: seen.append(done))
    assert [next(table).weights for _ in range(2)] == ["equal", "unequal"]
    assert seen == [(1, 188, "FedAvg, everybody"), (2, 188, "FedAvg, everybody")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paths": 1}, "paths must be a whole number of at least 2"),
        ({"rounds": 50}, "rounds must be a multiple of 40, got 50"),
        ({"rounds": 0}, "rounds must be a whole number of at least 1"),
    ],
)
def test_bad_effort(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Effort(**arguments)
