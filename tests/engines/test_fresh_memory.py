"""What memory held before an engine was given it is in none of its numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from oracles import random_problem

from fltheory.engines import Setting, exact, monte_carlo, paths
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.moments import moment_recursion
from fltheory.participation import UniformSubset
from tests.comparison import ALGORITHMS, PROBLEM, PROCESSES, X0

ROUNDS = 5


@pytest.fixture
def used_memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function after which new arrays of floats hold NaN, instead of anything."""
    empty = np.empty

    def spoilt(*arguments: Any, **options: Any) -> Any:
        array = empty(*arguments, **options)
        if array.dtype.kind == "f":
            array.fill(np.nan)
        return array

    return lambda: monkeypatch.setattr(np, "empty", spoilt)


def numbers(setting: Setting) -> list[np.ndarray]:
    """Return all that engines say of a setting, as far as they do."""
    found = [monte_carlo(setting, replicas=16, seed=1)]
    for engine in (exact, paths):
        try:
            found.append(engine(setting))
        except NotAffineError:
            continue
    return [run[name] for run in found for name in ("squared_distance", "excess_loss")]


@pytest.mark.parametrize(
    ("name", "who"), [*zip(ALGORITHMS, cycle(PROCESSES)), *(("FedAvg", who) for who in PROCESSES)]
)
def test_every_number_is_written_before_it_is_read(name: str, who: str, used_memory) -> None:
    setting = Setting(ALGORITHMS[name], PROBLEM, PROCESSES[who], ROUNDS, X0)
    agree(setting, used_memory)


@pytest.mark.parametrize("size", [3, 2])
@pytest.mark.parametrize("name", ["FedAvg", "SAFARI", "averaged", "step by step"])
def test_so_it_is_in_many_dimensions_where_moments_come_in_blocks(
    name: str, size: int, used_memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models of so many entries are not moved by one matrix of all moments."""
    monkeypatch.setattr(moment_recursion, "_NUMBERS_AT_ONCE", 1)
    problem = random_problem(6, 3, 16, sigma=0.7)
    agree(Setting(ALGORITHMS[name], problem, UniformSubset(3, size), 3, np.ones(16)), used_memory)


def agree(setting: Setting, used_memory: Callable[[], None]) -> None:
    expected = numbers(setting)
    used_memory()
    for found, right in zip(numbers(setting), expected, strict=True):
        np.testing.assert_array_equal(found, right)
