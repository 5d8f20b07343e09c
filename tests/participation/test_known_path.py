"""Participation that is known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.engines.affine.numbers import Balls
from fltheory.engines.enclosure.exact_setting import exact_setting
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, Trace, UniformSubset
from fltheory.problems import QuadraticProblem

RECORD = [[1, 0], [0, 1], [1, 1]]


def test_paths_are_those_that_are_drawn() -> None:
    path = Trace(RECORD, start=1).known_path(5)
    assert path is not None
    assert path.astype(int).tolist() == [[0, 1], [1, 1], [1, 0], [0, 1], [1, 1]]
    cycle = Cyclic([1, 3], [0, 2]).known_path(4)
    assert cycle is not None
    assert cycle.astype(int).tolist() == [[1, 0], [1, 1], [1, 0], [1, 0]]


@pytest.mark.parametrize("everybody", [UniformSubset(3, 3), Bernoulli([1.0, 1.0, 1.0])])
def test_everybody_always_is_known(everybody) -> None:
    assert np.array_equal(everybody.known_path(2), np.ones((2, 3), dtype=bool))


def test_everybody_is_known_where_availabilities_are_fractions() -> None:
    """Where floats would be drawn and compared with them, a verdict would not be exact."""
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]])
    with Balls(128).in_use():
        twin = exact_setting(Setting(FedAvg(0.1, 1), problem, Bernoulli([1.0, 1.0]), 2, [1.0]))
        assert twin.participation.known_path(2).all()


@pytest.mark.parametrize(
    "participation",
    [Trace(RECORD), UniformSubset(3, 2), Bernoulli([0.5, 1.0]), MarkovOnOff([0.5], 0.0)],
    ids=repr,
)
def test_chance_is_not(participation) -> None:
    assert participation.known_path(3) is None


def test_rounds_are_checked() -> None:
    with pytest.raises(ValueError, match="rounds must be a whole number of at least 1"):
        UniformSubset(2, 2).known_path(0)
