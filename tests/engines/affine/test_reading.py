"""Maps read off symbols for who takes part, against the same rounds on every set."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from fltheory.algorithms import F3ast, FedNova, LocalSgd, Mifa, Scaffold, ServerMomentum
from fltheory.algorithms.contract import Algorithm, in_round
from fltheory.algorithms.fedavg import FedAvg
from fltheory.algorithms.shared.step_sizes import Constant
from fltheory.algorithms.table import ALGORITHMS
from fltheory.engines.affine.numbers import (
    FLOAT64,
    RATIONAL,
    Arithmetic,
    entries,
    with_parameters,
)
from fltheory.engines.affine.reading import reading_of
from fltheory.engines.affine.symbolic.clients import ClientNumbers, FormClients, joined, split
from fltheory.engines.affine.symbolic.forms import (
    AffineArray,
    NotAffineError,
    Space,
    noise_covariance,
)
from fltheory.problems import QuadraticProblem
from tests.comparison import OF_FOUR_CLIENTS

N = 4
PROBLEM = QuadraticProblem(
    [[[1.0, 0.0], [0.0, 0.5]], [[2.0, 0.5], [0.5, 1.0]], [[0.5, 0.0], [0.0, 0.25]], np.eye(2)],
    [[1.0, -1.0], [0.5, 0.0], [2.0, 0.25], [-0.75, 1.5]],
    sigma=0.5,
    server_sigma=0.25,
)
SETS = np.array(list(product([False, True], repeat=N)))
EVERY_NUMBER = np.arange(N + 1)
Function = Callable[[Any, Any, Any], Any]


def on_a_set(
    function: Function, clients: ClientNumbers, origin: Any, who: np.ndarray
) -> tuple[Any, ...]:
    """Return slope, offset and covariance of a round run on forms with participants known."""
    space = Space(clients.arithmetic, origin.size)
    states = np.full((1, origin.size, 1 + origin.size), space.zero)
    states[0, :, 0] = origin
    states[0, :, 1:] = entries(clients.arithmetic, np.eye(origin.size, dtype=int))
    form = AffineArray(space, states)
    image = space.forms(function(form, FormClients(clients, space), who[None]))
    return image.linear(origin.size)[0], image.constant[0], noise_covariance(image)[0]


def rounds_of(
    algorithm: Algorithm, branch: str, arithmetic: Arithmetic
) -> tuple[Function, np.ndarray]:
    """Return a round as a function of the state as one vector, and a state."""
    start = algorithm.init(np.array([[0.5, -0.25]]), N)
    shapes = {name: np.shape(array)[1:] for name, array in start.items()}
    made = with_parameters(algorithm, arithmetic)

    def run(states: Any, clients: Any, who: Any) -> Any:
        return joined(made.round(split(states, shapes), clients, who, branch), shapes)

    return run, entries(arithmetic, joined(start, shapes)[0] + 0.125)


LISTED = {name: line.tried(N, OF_FOUR_CLIENTS) for name, line in ALGORITHMS.items()}
READ = {
    name: LISTED[name]
    for name in (
        *("fedavg", "weighted-fedavg", "fedavg-is", "unbiased", "fedprox", "fednova", "fedvarp"),
        *("scaffold", "safari"),
    )
} | {
    "MIFA, at once": Mifa(0.25, 2, start="zero"),
    "SCAFFOLD, first option": Scaffold(0.25, 2, option=1),
    "momentum": ServerMomentum(FedAvg(0.25, 2), 0.5),
    "single steps": in_round(LocalSgd(Constant(0.25), 2, (0.25, 0.25, 0.25, 0.25)), 1),
    "single steps, averaged": in_round(LocalSgd(Constant(0.25), 2, (0.25, 0.25, 0.25, 0.25)), 2),
}
SIZED = READ | {"F3AST": F3ast([0.25] * N, 2, 0.25, 2, availability=[0.5] * N)}
REFUSED = {
    "adafed": LISTED["adafed"],
    "clusters": LISTED["cluster-fedvarp"],
    "FedNova, steps of their own": FedNova(0.25, (1, 2, 1, 3)),
    "F3AST, any number": SIZED["F3AST"],
}


def check_all(
    function: Function, clients: ClientNumbers, origin: Any, numbers: np.ndarray, tolerance: float
) -> None:
    reading = reading_of(function, clients, (origin, origin[:1] * 0), numbers)
    for who in SETS[np.isin(SETS.sum(axis=1), numbers)]:
        for found, expected in zip(
            reading.of(who), on_a_set(function, clients, origin, who), strict=True
        ):
            if tolerance:
                np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
            else:
                assert (found == expected).all()


@pytest.mark.parametrize("name", SIZED)
def test_two_of_four_in_fractions(name: str) -> None:
    clients = ClientNumbers(PROBLEM, RATIONAL)
    for branch, _ in SIZED[name].branches:
        function, origin = rounds_of(SIZED[name], branch, RATIONAL)
        check_all(function, clients, origin, np.array([2]), 0.0)


@pytest.mark.parametrize("name", READ)
def test_any_number_of_four_in_fractions(name: str) -> None:
    clients = ClientNumbers(PROBLEM, RATIONAL)
    for branch, _ in READ[name].branches:
        function, origin = rounds_of(READ[name], branch, RATIONAL)
        check_all(function, clients, origin, EVERY_NUMBER, 0.0)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_sum_is_refused(name: str) -> None:
    clients = ClientNumbers(PROBLEM, RATIONAL)
    function, origin = rounds_of(REFUSED[name], "clients", RATIONAL)
    with pytest.raises(NotAffineError, match="must be a sum of the participants' contributions"):
        reading_of(function, clients, (origin, origin), EVERY_NUMBER)


def count(who: Any) -> Any:
    return np.maximum(who.sum(axis=1, keepdims=True), 1)


GROUP = np.array([True, False, True, False])


@pytest.mark.parametrize(
    "weights",
    [
        lambda who: 0.5 * who / count(who) + 0.25 * who,
        lambda who: who + who.sum(axis=1, keepdims=True),
        lambda who: np.where(who.sum(axis=1, keepdims=True) > 2, who / count(who), 0.0),
        lambda who: np.where(who, count(who), 1.5),
        lambda who: who * (np.arange(N) * count(who)),
        lambda who: who / count(who) * (who * 2.0 - who / count(who)),
        lambda who: who * who.all(axis=1, keepdims=True) + 1.0 * who.any(axis=1)[:, None],
        lambda who: (~who & GROUP) / count(who),
        lambda who: ((who * 0.5) @ np.arange(float(N * N)).reshape(N, N)) / count(who),
        lambda who: (who * np.arange(N)).mean(axis=1, keepdims=True) * np.ones((1, N)),
        lambda who: who.max(axis=1, keepdims=True) * who - 2 * who.min(axis=1, keepdims=True),
        lambda who: who * (count(who) / np.arange(1.0, N + 1)),
        lambda who: np.concatenate([who[:, None] * 1.0, who[:, None] / 2], axis=1).sum(axis=1),
    ],
)
def test_functions_of_a_client_and_of_how_many_there_are(weights: Callable[[Any], Any]) -> None:
    """Fails where a function of the number is lost, or multiplied by another client's entry."""

    def run(states: Any, clients: Any, who: Any) -> Any:
        made = weights(who)
        changes = clients.local_sgd(states, who, steps=2, lr=0.25)
        return states + 0.5 * made.sum(axis=1, keepdims=True) + changes.mean(axis=1)

    clients, origin = ClientNumbers(PROBLEM, FLOAT64), np.array([0.5, -0.25])
    check_all(run, clients, origin, EVERY_NUMBER, 1e-14)
    check_all(run, clients, origin, np.array([3]), 1e-14)


def test_what_is_weighted_by_functions_of_a_client_and_of_how_many_there_are() -> None:
    def run(states: Any, clients: Any, who: Any) -> Any:
        weights = 0.5 * who / count(who) + 0.25 * who * np.arange(N)
        push = np.where(who[:, :, None], 0.5, 0.25) * np.ones((1, N, 2))
        moved = clients.summed_local_sgd(states, who, weights, steps=2, lr=0.25, correction=push)
        gradients = clients.summed_local_gradients(states, who, who / count(who), steps=3, lr=0.25)
        noise = clients.server_gradient(states) / count(who)
        return np.concatenate([states + moved, states - gradients, noise], axis=1)

    clients, origin = ClientNumbers(PROBLEM, FLOAT64), np.array([0.5, -0.25])
    check_all(run, clients, origin, EVERY_NUMBER, 1e-13)


def test_clients_who_are_all_alike_have_noise_of_their_own() -> None:
    """Of 20 clients like one another eight take half a step: noise of variance 1/4 over eight."""
    alike = QuadraticProblem([[1.0]], np.zeros((20, 1)), sigma=1.0)

    def run(states: Any, clients: Any, who: Any) -> Any:
        changes = clients.local_sgd(states, who, steps=1, lr=0.5)
        return states + changes.sum(axis=1) / who.sum(axis=1, keepdims=True)

    for numbers in (np.array([8]), np.arange(21)):
        reading = reading_of(run, ClientNumbers(alike, FLOAT64), (np.ones(1), np.ones(1)), numbers)
        slope, _, noise = reading.of(np.arange(20) < 8)
        np.testing.assert_allclose((slope, noise), ([[0.5]], [[1 / 32]]), rtol=1e-14)


def steps(x: Any, clients: Any, who: Any) -> Any:
    return clients.local_sgd(x, who, steps=1, lr=0.5)


def test_who_trains_in_any_case_has_noise_in_any_case() -> None:
    """The first client is invited always, all are asked for a gradient, and absent ones for two."""
    first = np.arange(N) == 0

    def run(states: Any, clients: Any, who: Any) -> Any:
        invited = clients.local_sgd(states, who | first, steps=2, lr=0.25)
        every = clients.local_sgd(states, np.ones((1, N), dtype=bool), steps=1, lr=1.0)
        others = clients.local_sgd(states, ~who, steps=2, lr=0.5)
        total = (invited + 0.5 * others).sum(axis=1) / count(who) + every.mean(axis=1)
        return np.concatenate([states + total, (invited - others).mean(axis=1)], axis=1)

    clients, origin = ClientNumbers(PROBLEM, FLOAT64), np.array([0.5, -0.25])
    check_all(run, clients, origin, EVERY_NUMBER, 1e-13)


@pytest.mark.parametrize(
    ("run", "named"),
    [
        (
            lambda x, clients, who: x + np.median(steps(x, clients, who), axis=1),
            "median of the participation mask",
        ),
        (
            lambda x, clients, who: x + np.sort(steps(x, clients, who), axis=1)[:, 0],
            "sort of the participation mask",
        ),
        (lambda x, clients, who: x + np.clip(steps(x, clients, who), -1, 1).sum(axis=1), "clip"),
        (lambda x, clients, who: x + steps(x, clients, who).max(axis=1), "depends on the model"),
        (lambda x, clients, who: x + abs(steps(x, clients, who)).sum(axis=1), "absolute value"),
        (lambda x, clients, who: x + steps(x, clients, who)[:, 0], "selects some"),
        (lambda x, clients, who: x + who[:, :2].sum(axis=1)[:, None], "selects some"),
        (
            lambda x, clients, who: x + (who + who.any(axis=1)[:, None]).sum(axis=1)[:, None],
            "boolean",
        ),
        (lambda x, clients, who: x * (who * np.arange(N)).sum(axis=1)[:, None], "a product"),
        (
            lambda x, clients, who: x + (who.sum(axis=1, keepdims=True) * 1.0 > x),
            "it takes greater of several clients' contributions",
        ),
        (
            lambda x, clients, who: (
                x + (who * np.arange(N) * clients.server_gradient(x)[:, :1]).sum(axis=1)[:, None]
            ),
            "it multiplies noise by the participation mask",
        ),
    ],
)
def test_what_is_refused_is_named(run: Function, named: str) -> None:
    clients, origin = ClientNumbers(PROBLEM, FLOAT64), np.array([0.5, -0.25])
    with pytest.raises(NotAffineError, match=named):
        reading_of(run, clients, (origin, origin), EVERY_NUMBER)


# --- clients who come several times ------------------------------------------------------------

SHARES = np.array([0.5, 0.25, 0.125, 0.125])
LINE = QuadraticProblem(
    [[[h]] for h in (1.0, 2.0, 0.5, 1.5)], [[1.0], [-1.0], [2.0], [0.5]], sigma=2
)
