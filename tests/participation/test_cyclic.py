"""Cycles of presence and absence."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, exact
from fltheory.engines.affine.probe import DependentRoundsError
from fltheory.participation import Cyclic
from fltheory.participation.cyclic import fedau_cycles
from fltheory.problems import QuadraticProblem


def rounds_of(process: Cyclic, count: int) -> np.ndarray:
    drawn = islice(process.masks(np.random.default_rng(0), 2), count)
    first, second = np.swapaxes(np.array(list(drawn)), 0, 1)
    np.testing.assert_array_equal(first, second)
    return first.astype(int)


def test_by_hand() -> None:
    process = Cyclic([3, 4], [2, 1], [1, 2])
    expected = [[0, 1], [1, 0], [0, 0], [0, 1], [1, 1], [0, 0]]
    assert rounds_of(process, 6).tolist() == expected


def test_shares_are_those_of_a_whole_repetition() -> None:
    process = Cyclic([3, 4, 1], [2, 1, 0], [1, 2, 1])
    assert process.n_outcomes == 12
    seen = rounds_of(process, 12)
    np.testing.assert_allclose(process.marginals, seen.mean(axis=0))
    np.testing.assert_allclose(process.pair_inclusions, seen.T @ seen / 12)
    outcomes = list(process.outcomes())
    np.testing.assert_array_equal([mask for _, mask in outcomes], seen.astype(bool))
    assert sum(chance for chance, _ in outcomes) == pytest.approx(1)


def test_too_many_rounds_are_not_listed() -> None:
    process = Cyclic([101, 103, 107, 109], [0, 0, 0, 0])
    with pytest.raises(ValueError, match="periods must repeat within 1000000 rounds"):
        next(process.outcomes())


def test_dependent_unless_always_there() -> None:
    assert Cyclic([1, 2], [0, 0], [1, 2]).independent
    cycles = Cyclic([2, 2], [0, 1])
    assert not cycles.independent
    assert cycles.fixed_size is None


def test_exact_moments_round_by_round() -> None:
    """x <- (x + c)/2 towards the client that is there: 3, then 1, then 1, then 0."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    run = exact(Setting(FedAvg(0.5, 1), problem, Cyclic([2, 2], [0, 1]), 4, [3.0]))
    np.testing.assert_allclose(run.squared_distance, [9.0, 1.0, 1.0, 0.0, 0.25], atol=1e-15)


def test_too_long_a_cycle_is_refused_by_the_exact_engine() -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    with pytest.raises(DependentRoundsError, match=r"use .*engines\.monte_carlo"):
        exact(Setting(FedAvg(0.5, 1), problem, Cyclic([101, 103], [0, 0]), 4, [1.0]))


def test_cycles_of_the_experiments() -> None:
    p = np.array([0.004, 0.1, 0.255, 1.0])
    process = fedau_cycles(p, 100, np.random.default_rng(3))
    assert process.active.tolist() == [1, 10, 26, 100]
    seen = rounds_of(process, 200)
    assert seen.mean(axis=0).tolist() == [0.01, 0.1, 0.26, 1.0]
    assert seen[0].tolist() == [0, 0, 0, 1]
    places = [fedau_cycles([0.5], 4, np.random.default_rng(s)).offsets[0] for s in range(50)]
    assert set(places) == {2, 3}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2, 0], [0, 0]), "periods must be at least 1, got 0 for client 1"),
        (([2, 2], [0, -1]), "offsets must be at least 0, got -1 for client 1"),
        (([2, 2], [0]), r"offsets must have shape \(2,\)"),
        (([2, 2], [0, 0], [1, 3]), "active must be from 1 to the period, got 3 for client 1"),
        (([2.5], [0]), "periods must be a whole number, got 2.5 for client 0"),
        ((3, [0]), r"periods must have shape \(N,\)"),
    ],
)
def test_bad_cycles(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Cyclic(*arguments)


@pytest.mark.parametrize(("p", "period"), [([0.0], 10), ([0.5], 0), ([[0.5]], 10)])
def test_bad_experiments(p, period) -> None:
    with pytest.raises(ValueError, match="must"):
        fedau_cycles(p, period, np.random.default_rng(0))
