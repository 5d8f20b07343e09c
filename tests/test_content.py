"""Keys made of what objects hold: equal exactly while nothing in them has changed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from flint import arb, fmpq

from fltheory.algorithms import FedAvg
from fltheory.content import (
    cached_by_content,
    content,
    put_back,
    runs_users_code,
    seed_again,
    state_of,
)
from fltheory.read_only import read_only


class Steps:
    total = 0

    def __init__(self, lr: float) -> None:
        self.lr = lr

    @cached_property
    def worked_out(self) -> float:
        return 2 * self.lr


@dataclass
class Slotted:
    __slots__ = ("step",)
    step: float


def cell(value):
    return lambda: value


THIRD = arb(1) / 3
VALUES = [
    None,
    True,
    1,
    1.0,
    -0.0,
    0.0,
    float("nan"),
    "1",
    (1, 2),
    [1, 2],
    {1: 2},
    {1, 2},
    np.array([1.0, 2.0]),
    np.array([1.0, 2.0], dtype=np.float32),
    np.array([[1.0, 2.0]]),
    np.array([fmpq(1, 3)], dtype=object),
    fmpq(1, 3),
    THIRD,
    THIRD + arb(0, 1e-30),
    Steps(0.5),
    Steps(0.25),
    Slotted(0.5),
    cell(1),
    cell(2),
    partial(max, 1),
    partial(max, 2),
    np.random.default_rng(1),
    np.random.default_rng(2),
    random.Random(1),
]


def test_different_things_have_different_keys() -> None:
    """Balls that print alike, zeros of both signs, and closures of one function among them."""
    keys = [content(value) for value in VALUES]
    assert all(hash(key) == hash(content(value)) for key, value in zip(keys, VALUES, strict=True))
    assert all(key == content(value) for key, value in zip(keys, VALUES, strict=True))
    assert [(i, j) for (i, a), (j, b) in combinations(enumerate(keys), 2) if a == b] == []


@pytest.mark.parametrize(
    "change",
    [
        lambda held: held["steps"].__setattr__("lr", 0.1),
        lambda held: setattr(Steps, "total", Steps.total + 1),
        lambda held: held["list"][0].append(1),
        lambda held: held["array"].__setitem__(0, 9.0),
        lambda held: held["rng"].normal(),
    ],
)
def test_a_change_anywhere_in_it_changes_the_key(change) -> None:
    held = {
        "steps": Steps(0.5),
        "list": [[], 2],
        "array": np.zeros(2),
        "rng": np.random.default_rng(0),
    }
    held["itself"] = held
    before = content(held)
    assert content(held) == before
    assert held["steps"].worked_out == 1.0
    assert content(held) == before, "what is cached of the rest is no change"
    change(held)
    assert content(held) != before


def test_large_arrays_that_cannot_be_written_to_are_told_by_identity() -> None:
    one = read_only(np.zeros(1 << 16))
    assert content(one) == content(one)
    assert content(one) != content(read_only(np.zeros(1 << 16)))
    assert content(np.zeros(1 << 16)) == content(np.zeros(1 << 16))


@pytest.mark.parametrize(
    "generator",
    [np.random.default_rng(3), np.random.RandomState(3), random.Random(3)],
    ids=lambda generator: type(generator).__name__,
)
def test_generators_go_back_and_begin_at_a_seed(generator) -> None:
    state = state_of(generator)
    drawn = generator.random()
    put_back(generator, state)
    assert generator.random() == drawn
    seeds = [np.random.SeedSequence(4) for _ in range(2)]
    seed_again(generator, seeds[0])
    first = generator.random()
    seed_again(generator, seeds[1])
    assert generator.random() == first != drawn


def test_results_are_kept_by_what_arguments_hold() -> None:
    asked: list[float] = []

    @cached_by_content(2)
    def doubled(steps: Steps) -> float:
        asked.append(steps.lr)
        return 2 * steps.lr

    steps = Steps(0.5)
    assert [doubled(steps), doubled(Steps(0.5))] == [1.0, 1.0]
    steps.lr = 0.25
    assert doubled(steps) == 0.5
    assert asked == [0.5, 0.25]
    doubled(Steps(3.0))
    doubled(Steps(0.5))
    assert asked == [0.5, 0.25, 3.0, 0.5], "the oldest of three is forgotten"


class Pair(NamedTuple):
    """A user's class that is a container, which is walked through for its entries only."""

    client_lr: float
    local_steps: int


def test_a_users_tuple_is_users_code() -> None:
    assert runs_users_code(Pair(0.1, 2))
    assert not runs_users_code(FedAvg(0.1, 2))
