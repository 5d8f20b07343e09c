"""Tests of what is worked out for every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fltheory.algorithms import Constant, FedAvg, Harmonic, Scheduled
from fltheory.algorithms.contract import Algorithm, State
from fltheory.engines import Setting, exact, monte_carlo, paths
from fltheory.engines.moments.moment_recursion import runs_of_rounds
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff
from fltheory.problems import QuadraticProblem

PARTICIPATION = [Bernoulli([0.5, 0.5]), MarkovOnOff([0.5, 0.5], [0.5, 0.5])]


def described(algorithm: Algorithm) -> float:
    assert isinstance(algorithm, FedAvg)
    return algorithm.client_lr


def test_what_changes_is_made_anew() -> None:
    schedule = Scheduled(FedAvg(0.5, 1), Harmonic(1.0, offset=1.0))
    found = list(runs_of_rounds(schedule, described, 9))
    assert [count for _, count in found] == [1] * 9
    assert [size for size, _ in found] == pytest.approx([1 / (1 + r) for r in range(1, 10)])


@pytest.mark.parametrize("algorithm", [FedAvg(0.5, 1), Scheduled(FedAvg(0.5, 1), Constant(0.5))])
def test_what_stays_is_made_once(algorithm: FedAvg | Scheduled) -> None:
    assert list(runs_of_rounds(algorithm, described, 5)) == [(0.5, 5)]


@dataclass(frozen=True)
class HalvedAfter:
    """A schedule of 0.5 that is halved once, after some rounds."""

    rounds: int

    def at(self, round_index: int) -> Algorithm:
        return FedAvg(0.5 if round_index <= self.rounds else 0.25, 1)


@pytest.mark.parametrize("length", [1, 3, 4, 7])
def test_rounds_of_a_kind_are_counted(length: int) -> None:
    found = list(runs_of_rounds(HalvedAfter(3), described, length))
    expected = [(0.5, min(length, 3)), (0.25, length - 3)]
    assert found == [run for run in expected if run[1] > 0]


class FromTwiceAsFar(FedAvg):
    """An algorithm that begins elsewhere."""

    def init(self, x0: Any, n_clients: int) -> State:
        return {"x": 2 * x0}


@dataclass(frozen=True)
class OtherwiseAtFirst:
    """A schedule whose first round's algorithm says where a run begins."""

    def at(self, round_index: int) -> Algorithm:
        return (FromTwiceAsFar if round_index == 1 else FedAvg)(0.5, 1)


@pytest.mark.parametrize(
    "engine", [exact, paths, lambda given: monte_carlo(given, replicas=8, seed=1)]
)
@pytest.mark.parametrize("participation", [*PARTICIPATION, Cyclic([2, 2], [0, 1])], ids=repr)
def test_the_first_rounds_algorithm_says_where_a_run_begins(engine, participation) -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    found = engine(Setting(OtherwiseAtFirst(), problem, participation, rounds=4, x0=[3.0]))
    right = engine(Setting(FedAvg(0.5, 1), problem, participation, rounds=4, x0=[6.0]))
    assert found.squared_distance[0] == 36.0
    np.testing.assert_allclose(found.squared_distance, right.squared_distance, rtol=1e-14)
