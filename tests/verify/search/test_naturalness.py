"""What a referee would call odd about a setting, one thing at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fltheory.algorithms import FedAvg, Projected, Safari
from fltheory.engines import Setting
from fltheory.learnability.system import FederatedSystem, TailCase, UniformPair
from fltheory.participation import Bernoulli
from fltheory.problems import Ball, QuadraticProblem
from fltheory.verify.search.search import oddities

PROBLEM = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0)
NATURAL = Setting(FedAvg(0.1, 5), PROBLEM, Bernoulli([0.5, 0.3]), 100, [3.0])


@pytest.mark.parametrize(
    ("changed", "odd"),
    [
        ({}, ()),
        ({"rounds": 99}, ("99 rounds",)),
        ({"participation": Bernoulli([0.5, 0.01])}, ("a probability of 0.01",)),
        ({"participation": Bernoulli([0.5, 1.0])}, ()),
        ({"problem": QuadraticProblem([[1.0]], [[-1.0], [1.0]])}, ("no gradient noise",)),
        (
            {"problem": QuadraticProblem([[1.0]], [[1.0], [1.0]], sigma=1.0)},
            ("clients that are all identical",),
        ),
        (
            {"problem": QuadraticProblem([[500.0]], [[-1.0], [1.0]], sigma=1.0)},
            ("a curvature of 500", "a client step of 50/L"),
        ),
        ({"x0": [1000.0]}, ("a distance of 1e+03",)),
        ({"algorithm": Safari(1.0, 0.1, 0.1, 5)}, ("one kind of round alone",)),
        ({"algorithm": FedAvg(0.1, 5, server_lr=1e-5)}, ("a server step size of 1e-05",)),
    ],
)
def test_what_is_odd(changed: dict[str, Any], odd: tuple[str, ...]) -> None:
    assert oddities(replace(NATURAL, **changed)) == odd


def test_one_client_is_odd_and_exact_gradients_are_not_under_a_projection() -> None:
    alone = QuadraticProblem([[1.0]], [[1.0]], sigma=1.0)
    one = replace(NATURAL, problem=alone, participation=Bernoulli([0.5]))
    assert oddities(one) == ("one client",)
    exact = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    projected = Projected(FedAvg(0.1, 5), Ball([0.0], 5.0))
    assert oddities(replace(NATURAL, problem=exact, algorithm=projected)) == ()


@pytest.mark.parametrize(
    ("problem", "odd"),
    [
        (FederatedSystem(10, 20, 5), ()),
        (FederatedSystem(2, 20, 1), ("2 clients with 20 samples",)),
        (FederatedSystem(10, 1, 5), ("10 clients with 1 samples",)),
        (FederatedSystem(400, 10, 399), ("a capacity of 0.998",)),
        (TailCase(100, "1/1000000"), ()),
        (TailCase(100, "1e-40"), ("delta = 1e-40 with 100 samples",)),
        (UniformPair(0, 1, 0, "1/2", "3/8"), ()),
        (UniformPair(0, 1, 0, "1/2", "1/2"), ("a target at the end of a support",)),
    ],
)
def test_what_is_odd_about_a_learning_problem(problem, odd: tuple[str, ...]) -> None:
    assert oddities(problem) == odd
