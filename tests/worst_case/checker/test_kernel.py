"""The checker's kernel: forms against clients written out, function values, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fltheory.worst_case.checker import kernel
from fltheory.worst_case.checker.kernel import Coordinates, Group, ProofError, SymmetricForm, Vector

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
        self.clients = Coordinates(1, groups)
        self.x = _numbers(rng, 1)[0]
        self.own = [_numbers(rng, n, 2) for n in COUNTS]

    def value(self, form: SymmetricForm) -> Fraction:
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
    form = SymmetricForm(clients)
    form.add(w, x, clients.mean(0, 0))
    assert data.value(form) == w * data.x * data.own[0][:, 0].mean()
    form = SymmetricForm(clients)
    form.add_each(w, 0, left, right)
    each = [data.of(left, 0, i) * data.of(right, 0, i) for i in range(3)]
    assert data.value(form) == w * sum(each) / 3
    form = SymmetricForm(clients)
    form.add_two(w, 0, 0, left, right)
    pairs = [data.of(left, 0, i) * data.of(right, 0, j) for i, j in permutations(range(3), 2)]
    assert data.value(form) == w * sum(pairs) / 6
    form = SymmetricForm(clients)
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
    form = SymmetricForm(clients)
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
    clients = Coordinates(1, [Group("a", 2, 1, 0), Group("b", 2, 1, 0)])
    x, a, b = clients.shared(0), clients.mean(0, 0), clients.mean(1, 0)
    form = SymmetricForm(clients)
    form.add(Fraction(1), x, x)
    form.add(Fraction(2), x, b)
    form.add(Fraction(4), b, b)
    form.add(Fraction(6), a, a)
    # a = -b/2: 6 |a|^2 is 3/2 |b|^2.
    assert form.blocks([2 * a + b])["means"] == [[1, 1], [1, Fraction(11, 2)]]
    assert form.blocks()["means"] == [[1, 0, 1], [0, 6, 0], [1, 0, 4]]


def test_what_has_a_negative_value_is_refused_by_its_block() -> None:
    clients = Coordinates(1, [Group("some", 2, 1, 0)])
    own, mean = clients.own(0, 0), clients.mean(0, 0)
    form = SymmetricForm(clients)
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
    clients = Coordinates(0, [Group("one", 1, 1, 0)])
    own, form = clients.own(0, 0), SymmetricForm(clients)
    form.add_each(Fraction(1), 0, own, own)
    assert list(form.blocks()) == ["means"]
    with pytest.raises(ValueError, match="no pairs"):
        form.add_two(Fraction(1), 0, 0, own, own)
    with pytest.raises(TypeError, match="add_each"):
        form.add(Fraction(1), own, own)


def test_pairs_of_a_group_without_bounds_say_nothing_of_differences() -> None:
    clients = Coordinates(0, [Group("many", None, 1, 0)])
    own, form = clients.own(0, 0), SymmetricForm(clients)
    form.add_two(Fraction(1), 0, 0, own, own)
    assert form.blocks() == {"means": [[1]], "differences of many": [[0]]}


def test_an_older_version_says_that_the_proof_must_be_made_again() -> None:
    with pytest.raises(ProofError, match="version: must be 2, got the earlier format 1: make"):
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", r"certificate: must be an object with fields, got \[\]"),
        ('{"kind": "a", "version": 1}', r"certificate\.size: the field is missing"),
        ('{"kind": "b", "version": 1, "size": 1}', "kind: must be 'a', got 'b'"),
        ('{"kind": "a", "version": 1, "size": 1, "more": 1}', r"more: is not a field"),
        ('{"kind": "a", "kind": "a", "version": 1, "size": 1}', "given twice"),
        ('{"kind": "a", "version": true, "size": 1}', "version: must be 1, got True"),
        ('{"kind": "a", "size": 1.5}', "1.5: numbers must be whole"),
        ('{"kind": "a", "size": NaN}', "NaN: numbers must be whole"),
        (" " * 101, "must have at most 100 characters"),
    ],
)
def test_what_is_no_document_is_refused(text: str, message: str) -> None:
    with pytest.raises(ProofError, match=message):
        kernel.document_of(text, "kind version size", 100, version=1, kind="a")


@pytest.mark.parametrize("found", ["1/0", "1.5", "1e3", "", "1/-2", " 1", 1, None, "9" * 2001])
def test_what_is_no_fraction_is_refused(found: Any) -> None:
    with pytest.raises(ProofError, match=r"^here: must be"):
        kernel.fraction("here", found)


def test_fractions_and_whole_numbers_are_read() -> None:
    assert kernel.row("here", ["-3/4", "10", "0/7"]) == [Fraction(-3, 4), 10, 0]
    assert kernel.whole("here", -3) == -3
    for found in (True, 1.0, "1", 10**16):
        with pytest.raises(ProofError, match="must be a whole number"):
            kernel.whole("here", found)


def test_the_folder_is_a_program_of_the_standard_library_alone(tmp_path: Path) -> None:
    """In isolation, with no package installed, it says how it is called and what it refuses."""
    folder = Path(str(kernel.__file__)).parent
    call = [sys.executable, "-I", "-S", str(folder)]
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (2, "usage: python checker FILE\n")
    other = tmp_path / "other.json"
    other.write_text('{"kind": "x"}')
    run = subprocess.run([*call, str(other)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr[:41]) == (1, "not proved: kind: must be one of 'proof f")
