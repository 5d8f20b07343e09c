"""Which rounds add up what each participant does: by name, where they do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fltheory.algorithms import F3ast, FedVarp, Scaffold
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting, exact
from fltheory.engines.affine.numbers import FLOAT64
from fltheory.engines.affine.reading import reading_of
from fltheory.engines.affine.symbolic.clients import ClientNumbers
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

N = 9
PROBLEM = QuadraticProblem([[1.0]], np.arange(float(N))[:, None], sigma=0.5)
Weights = Callable[[Any], Any]


def read(function: Callable[..., Any], size: int = 4) -> None:
    origin = np.ones(1)
    reading_of(function, ClientNumbers(PROBLEM, FLOAT64), (origin, origin), np.array([size]))


def check(weights: Weights, size: int = 4) -> None:
    """Read the round x + sum_i w_i(who) Delta_i(x)."""

    def run(states: Any, clients: Any, who: Any) -> Any:
        return states + clients.summed_local_sgd(states, who, weights(who), steps=2, lr=0.25)

    read(run, size)


CHANCES = [1 / 50] * 50
GROUP = np.arange(N) < 3


@pytest.mark.parametrize(
    "weights",
    [
        lambda who: who * 0.25,
        lambda who: who / who.sum(axis=1, keepdims=True),
        lambda who: np.where(who, np.arange(N) + 1.0, 0.0) ** 2,
        lambda who: who.astype(float) * (np.sum(who, axis=1, keepdims=True) > 3),
        lambda who: who / np.maximum(who.sum(axis=1, keepdims=True), 1) * who.any(axis=1)[:, None],
        lambda who: np.sqrt(who[:, :, None] * 4.0).sum(axis=2),
        lambda who: ~who & GROUP,
        lambda who: who * np.mean(who * 1.0, axis=-1, keepdims=True),
    ],
)
def test_what_depends_on_a_client_and_on_how_many_there_are_is_a_sum(weights: Weights) -> None:
    check(weights)


@pytest.mark.parametrize(
    ("weights", "named"),
    [
        (lambda who: who * who[:, :3].all(axis=1, keepdims=True), "selects some"),
        (lambda who: who * (who & GROUP).any(axis=1, keepdims=True), "any over participants"),
        (lambda who: who * (who * GROUP).sum(axis=1, keepdims=True), "a product"),
        (lambda who: who / (who @ np.arange(N))[:, None], "a quotient"),
        (
            lambda who: who[:, :, None] * who[:, None, :],
            "combines different participants' contributions",
        ),
        (lambda who: who * ((who @ np.arange(N))[:, None] > 3), "a comparison of several"),
        (lambda who: who * who[:, ::-1], "selects some"),
        (lambda who: who * np.roll(who, 1, axis=1), "roll of the participation mask"),
        (lambda who: np.cumsum(who, axis=1) * 1.0, "cumsum"),
        (lambda who: np.add.accumulate(who, axis=1), "add.accumulate"),
        (lambda who: who * float(np.array(who).sum() > 3), "mask to numbers"),
        (lambda who: who * (1.0 if who else 0.0), "branches"),
        (lambda who: sum(iter(who)), "one by one"),
        (lambda who: who * who.sum(), "at once"),
        (lambda who: who * who.no_such, "raises AttributeError"),
    ],
)
def test_what_takes_participants_together_is_named(weights: Weights, named: str) -> None:
    with pytest.raises(NotAffineError, match=named):
        check(weights)


def test_a_refusal_that_is_caught_is_one_all_the_same() -> None:
    def weights(who: Any) -> Any:
        try:
            return who * who[:, :3].all(axis=1, keepdims=True)
        except Exception:
            return who * 1.0

    with pytest.raises(NotAffineError, match="selects some"):
        check(weights)


def test_clients_begin_where_all_do() -> None:
    def twice(states: Any, clients: Any, who: Any) -> Any:
        moved = states + clients.summed_local_sgd(states, who, who * 0.5, steps=1, lr=0.5)
        return moved + clients.summed_local_sgd(moved, who, who * 0.5, steps=1, lr=0.5)

    with pytest.raises(NotAffineError, match="clients start from a model"):
        read(twice)


@pytest.mark.parametrize(
    "algorithm",
    [
        Scaffold(0.1, 2),
        Scaffold(0.1, 2, option=2),
        FedVarp(0.1, 2),
        F3ast(CHANCES, 10, 0.1, 2, availability=CHANCES),
    ],
    ids=["SCAFFOLD", "its second option", "FedVARP", "F3AST"],
)
def test_those_that_are_no_weighted_sum_add_up(algorithm: Algorithm) -> None:
    """Of 50 clients ten take part: too many sets to list, and exact all the same."""
    problem = QuadraticProblem([[1.0]], np.linspace(-1.0, 1.0, 50)[:, None])
    run = exact(Setting(algorithm, problem, UniformSubset(50, 10), 2, [1.0]))
    assert (run.rounding_error.squared_distance < 1e-9).all()


class InThrees(Algorithm):
    """A sum that counts only if clients 0, 1 and 2 are all there."""

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        x, together = state["x"], who[:, :3].all(axis=1, keepdims=True)
        weights = who * np.where(np.arange(who.shape[1]) < 3, together, True) / 4
        return {"x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.5)}


def test_groups_of_three_are_enumerated_or_refused() -> None:
    """Optima 1 for the group of 3 in 9, 0 else; 4 take part; from x = 0 a step is 3/8 or nothing.

    All three are there in 6 of 126 sets: E x^2 = 6/126 9/64.
    """
    problem = QuadraticProblem([[1.0]], (np.arange(N) < 3)[:, None] * 1.0)
    run = exact(Setting(InThrees(), problem, UniformSubset(N, 4), 1, [0.0]))
    mean, square = 6 / 126 * 3 / 8, 6 / 126 * 9 / 64
    assert run.squared_distance[1] == pytest.approx(square - 2 * mean / 3 + 1 / 9, rel=1e-13)
    many = QuadraticProblem([[1.0]], (np.arange(20) < 3)[:, None] * 1.0)
    with pytest.raises(NotAffineError, match="selects some of the participants"):
        exact(Setting(InThrees(), many, UniformSubset(20, 8), 1, [0.0]))
