"""Arrays that cannot be written to: the helpers."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pytest

from fltheory.problems import QuadraticProblem
from fltheory.read_only import ReadOnlyArrays, read_only, read_only_copy
from tests.arrays import can_be_written_to


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True, eq=False)
class Kept(ReadOnlyArrays):
    array: np.ndarray
    inside: tuple[np.ndarray, ...] = ()
    named: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def total(self) -> np.ndarray:
        return self.array.sum(axis=0, keepdims=True)

    @property
    def doubled(self) -> np.ndarray:
        return (2 * self.array).reshape(-1)

    @property
    def size(self) -> int:
        """Its size."""
        return self.array.size


class TestReadOnly:
    def test_nothing_is_copied(self) -> None:
        array = np.zeros(3)
        assert read_only(array) is array
        assert not array.flags.writeable

    def test_a_view_locks_what_it_is_a_view_of(self) -> None:
        array = np.zeros((2, 3))
        view = read_only(array.T[1:])
        assert view.base is array
        assert not can_be_written_to(view)

    def test_memory_of_others_is_copied(self) -> None:
        memory = bytearray(8)
        array = read_only(np.frombuffer(memory))
        memory[:] = b"12345678"
        assert array.tolist() == [0.0]

    @pytest.mark.parametrize("value", [None, 3.0, "text", range(3), np.float64(2.0)])
    def test_other_things_stay(self, value: object) -> None:
        assert read_only(value) is value
        assert read_only_copy(value) is value

    def test_containers(self) -> None:
        pair, named = Pair(np.zeros(1), np.ones(1)), {"a": [np.zeros(2), 3]}
        assert read_only(pair) is pair
        assert read_only(named) is named
        assert not any(map(can_be_written_to, [*pair, named["a"][0]]))

    def test_copies_keep_the_kind_of_container(self) -> None:
        pair = Pair(np.zeros(1), np.ones(1))
        copied = read_only_copy(pair)
        assert isinstance(copied, Pair)
        assert copied.first is not pair.first
        assert pair.first.flags.writeable
        assert read_only_copy(copied) is copied


class TestReadOnlyArrays:
    def test_a_callers_arrays_are_copied_and_left_as_they_are(self) -> None:
        array = np.arange(4.0)
        kept = Kept(array, (array,), {"a": array})
        array[0] = 9.0
        for found in (kept.array, kept.inside[0], kept.named["a"]):
            assert found.tolist() == [0.0, 1.0, 2.0, 3.0]
            assert not can_be_written_to(found)

    def test_a_read_only_view_of_a_callers_array_is_copied(self) -> None:
        array = np.zeros(2)
        view = array[:]
        view.flags.writeable = False
        kept = Kept(view)
        array[0] = 9.0
        assert kept.array.tolist() == [0.0, 0.0]

    def test_what_nobody_can_write_to_is_not_copied(self) -> None:
        array = read_only(np.zeros(2))
        assert Kept(array).array is array
        assert replace(Kept(array)).array is array

    def test_properties(self) -> None:
        kept = Kept(np.ones(3))
        assert kept.total is kept.total
        assert not can_be_written_to(kept.total)
        assert not can_be_written_to(kept.doubled)
        assert kept.size == 3
        assert Kept.size.__doc__ == "Its size."

    @pytest.mark.parametrize(
        "again", [copy.copy, copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))]
    )
    def test_copies_and_what_comes_from_other_processes(self, again: Any) -> None:
        kept = Kept(np.ones(3), (np.ones(1),), {"a": np.ones(1)})
        _ = kept.total
        found = again(kept)
        arrays = [found.array, *found.inside, *found.named.values(), found.total]
        assert not any(map(can_be_written_to, arrays))

    def test_own_initialisers(self) -> None:
        class Checked(Kept):
            def __post_init__(self) -> None:
                object.__setattr__(self, "array", self.array + 1)

        class Plain(ReadOnlyArrays):
            def __init__(self, array: np.ndarray) -> None:
                self.array = array

        source = np.ones(2)
        for kept in (Checked(source), Plain(source)):
            assert not can_be_written_to(kept.array)
        assert source.flags.writeable


def test_the_optimum_cannot_be_moved() -> None:
    """Writing to it changed later results by a factor of a hundred and more."""
    problem = QuadraticProblem([[2.0]], [[-1.0], [1.0]])
    for array in (problem.x_star, problem.gradients_at_optimum, problem.alpha):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9.0
