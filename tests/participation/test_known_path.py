"""Participation that is known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.engines.enclosure.exact_setting import exact_numbers
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, Trace, UniformSubset

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
    """In exact numbers, too, which no draw is compared with."""
    twin = everybody.in_numbers(exact_numbers)
    assert np.array_equal(twin.known_path(2), np.ones((2, 3), dtype=bool))
    assert np.array_equal(everybody.known_path(2), np.ones((2, 3), dtype=bool))


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
