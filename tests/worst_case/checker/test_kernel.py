"""The checker's kernel: forms against clients written out, function values, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from fltheory.worst_case.checker import kernel
from fltheory.worst_case.checker.kernel import Clients, Form, Group, ProofError, Vector

COUNTS = (3, 2)


def _numbers(rng: np.random.Generator, *shape: int) -> Any:
    numbers = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        numbers[index] = Fraction(int(rng.integers(-9, 10)), 7)
    return numbers


class Written:
    """Two groups whose vectors are numbers, one each: a shared one, and two of each client."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        groups = [Group(str(c), n, vectors=2, points=2) for c, n in enumerate(COUNTS)]
        self.clients = Clients(1, groups)
        self.x = _numbers(rng, 1)[0]
        self.own = [_numbers(rng, n, 2) for n in COUNTS]

    def value(self, form: Form) -> Fraction:
        means = np.array([self.x, *(v for own in self.own for v in own.mean(axis=0))])
        total = _of(form.means, means)
        for block, own in zip(form.differences, self.own, strict=True):
            total += sum(_of(block, row) for row in own - own.mean(axis=0)) / len(own)
        return total

    def of(self, vector: Vector, group: int, client: int) -> Fraction:
        """Return a client's vector from its coordinates."""
        means = np.array([self.x, *(v for own in self.own for v in own.mean(axis=0))])
        found = np.array(vector.means, dtype=object) @ means
        if vector.apart:
            own = self.own[group]
            found += np.array(vector.apart, dtype=object) @ (own[client] - own.mean(axis=0))
        return Fraction(found)


def _of(matrix: Any, vector: Any) -> Fraction:
    return Fraction(vector @ np.array(matrix, dtype=object) @ vector)


def test_forms_are_the_sums_over_clients_and_pairs_that_they_say() -> None:
    data = Written(0)
    clients, w = data.clients, Fraction(3, 5)
    x = clients.shared(0)
    left = x + 2 * clients.own(0, 0) - clients.mean(1, 1)
    right = clients.own(0, 1) - 3 * x
    other = clients.own(1, 0) + x
    form = Form(clients)
    form.add(w, x, clients.mean(0, 0))
    assert data.value(form) == w * data.x * data.own[0][:, 0].mean()
    form = Form(clients)
    form.add_each(w, 0, left, right)
    each = [data.of(left, 0, i) * data.of(right, 0, i) for i in range(3)]
    assert data.value(form) == w * sum(each) / 3
    form = Form(clients)
    form.add_two(w, 0, 0, left, right)
    pairs = [data.of(left, 0, i) * data.of(right, 0, j) for i, j in permutations(range(3), 2)]
    assert data.value(form) == w * sum(pairs) / 6
    form = Form(clients)
    form.add_two(w, 0, 1, left, other)
    crossed = [data.of(left, 0, i) * data.of(other, 1, j) for i in range(3) for j in range(2)]
    assert data.value(form) == w * sum(crossed) / 6


def test_own_vectors_are_each_clients() -> None:
    data = Written(1)
    assert [data.of(data.clients.own(0, 1), 0, i) for i in range(3)] == list(data.own[0][:, 1])


def test_conditions_are_the_interpolation_inequalities_pair_by_pair() -> None:
    data = Written(2)
    clients, mu = data.clients, Fraction(1, 7)
    x = clients.shared(0)
    points, gradients = [x, x - clients.own(0, 0)], [clients.own(0, 0), clients.own(0, 1)]
    weights = [[Fraction(0), Fraction(2)], [Fraction(5, 3), Fraction(0)]]
    form = Form(clients)
    form.add_conditions(0, weights, points, gradients, mu)
    total = Fraction(0)
    for a, b in ((0, 1), (1, 0)):
        for i in range(3):
            dx = data.of(points[a], 0, i) - data.of(points[b], 0, i)
            dg = data.of(gradients[a], 0, i) - data.of(gradients[b], 0, i)
            square = dg**2 + mu * dx**2 - 2 * mu * dg * dx
            at_b = data.of(gradients[b], 0, i)
            total += weights[a][b] * (at_b * dx + square / (2 * (1 - mu))) / 3
    assert data.value(form) == total
    assert form.values[0] == [Fraction(5, 3) - 2, 2 - Fraction(5, 3)]
    with pytest.raises(ProofError, match=r"here: the function values of point 0 of 0 do not"):
        form.check("here")


def test_a_combination_that_is_zero_is_put_in() -> None:
    clients = Clients(1, [Group("a", 2, 1, 0), Group("b", 2, 1, 0)])
    x, a, b = clients.shared(0), clients.mean(0, 0), clients.mean(1, 0)
    form = Form(clients)
    form.add(Fraction(1), x, x)
    form.add(Fraction(2), x, b)
    form.add(Fraction(4), b, b)
    # b = -2a: |x|^2 + 2 <x, b> + 4 |b|^2 is |x|^2 - 4 <x, a> + 16 |a|^2.
    assert form.blocks([2 * a + b])["means"] == [[1, -2], [-2, 16]]
    assert form.blocks()["means"] == [[1, 0, 1], [0, 0, 0], [1, 0, 4]]


def test_what_has_a_negative_value_is_refused_by_its_block() -> None:
    clients = Clients(1, [Group("some", 2, 1, 0)])
    own, mean = clients.own(0, 0), clients.mean(0, 0)
    form = Form(clients)
    form.add_each(Fraction(1), 0, own, own)
    form.check("it")
    form.add(Fraction(-1), mean, mean)
    form.check("it")
    form.add_two(Fraction(1, 10**30), 0, 0, own, own)
    form.add(Fraction(-2, 10**30), mean, mean)
    with pytest.raises(ProofError, match="it: the slack of means has a negative eigenvalue"):
        form.check("it")
    form.add(Fraction(1), mean, mean)
    form.add_each(Fraction(-1), 0, own - mean, own - mean)
    with pytest.raises(ProofError, match="it: the slack of differences of some has a negative"):
        form.check("it")


def test_one_client_has_no_differences_and_no_pairs() -> None:
    clients = Clients(0, [Group("one", 1, 1, 0)])
    own, form = clients.own(0, 0), Form(clients)
    form.add_each(Fraction(1), 0, own, own)
    assert list(form.blocks()) == ["means"]
    with pytest.raises(ValueError, match="no pairs"):
        form.add_two(Fraction(1), 0, 0, own, own)
    with pytest.raises(TypeError, match="add_each"):
        form.add(Fraction(1), own, own)


def test_pairs_of_a_group_without_bounds_say_nothing_of_differences() -> None:
    clients = Clients(0, [Group("many", None, 1, 0)])
    own, form = clients.own(0, 0), Form(clients)
    form.add_two(Fraction(1), 0, 0, own, own)
    assert form.blocks() == {"means": [[1]], "differences of many": [[0]]}


def test_an_older_version_says_that_the_proof_must_be_made_again() -> None:
    with pytest.raises(ProofError, match="version: 1 is of an earlier format and must be 2: make"):
        kernel.document_of('{"version": 1, "x": 0}', "version", 100, version=2)
    with pytest.raises(ProofError, match="version: must be 2, got 3"):
        kernel.document_of('{"version": 3}', "version", 100, version=2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["1", "2"]], "here: must be 2 rows of 2 numbers"),
        ([["0", "-1"], ["0", "0"]], "here: must not be negative"),
    ],
)
def test_weights_are_square_and_not_negative(rows: Any, message: str) -> None:
    with pytest.raises(ProofError, match=message):
        kernel.weights_of("here", rows, 2)


def test_shares_are_one_in_all_at_most() -> None:
    assert kernel.shares_of("here", ["1/2", "1/2"], 2) == [Fraction(1, 2)] * 2
    for parts in (["1/2"], ["2/3", "1/2"], ["-1", "1"]):
        with pytest.raises(ProofError, match="here: must"):
            kernel.shares_of("here", parts, 2)
