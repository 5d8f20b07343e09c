"""The checker of Lyapunov functions: its forms against rounds that are played, and mutants."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from fltheory.worst_case import ClientClass
from fltheory.worst_case.checker import memory as memory_checker
from fltheory.worst_case.memory import MemoryRound, lyapunov_bound_of, proved_gap
from tests.drawn import a_tenth
from tests.worst_case.checker.mutants import mutant_of

CLIENTS = ClientClass(2, "1/5")
Checker = Any

ROUNDS = {
    "drawn": MemoryRound(3, 2, Fraction(2, 3), Fraction(1, 2), Fraction(1, 6), "zero"),
    "saga": MemoryRound(4, 1, Fraction(1, 4), Fraction(1), Fraction(1, 8), "zero"),
    "independent": MemoryRound(3, 0, Fraction(2, 5), Fraction(1, 3), Fraction(1, 8), "zero"),
    "waits": MemoryRound(3, 1, Fraction(1, 3), Fraction(1, 3), Fraction(1, 8), "gradients"),
    "alone": MemoryRound(1, 1, Fraction(1), Fraction(1), Fraction(1, 4), "zero"),
}


@cache
def text_of(name: str) -> str:
    if name == "gap":
        made = proved_gap(ROUNDS["drawn"], CLIENTS, 1, 1.0)
        assert made is not None
        return made.text
    found = lyapunov_bound_of(ROUNDS[name], CLIENTS, margin=Fraction(1, 100))
    assert found.certificate is not None
    return found.certificate.text


def edited(name: str, change: Callable[[dict[str, Any]], None]) -> str:
    document = json.loads(text_of(name))
    change(document)
    return json.dumps(document)


def _random(document: dict[str, Any]) -> None:
    """Numbers that prove nothing: only what they are multiplied by is looked at."""
    rng = np.random.default_rng(5)

    def square(size: int) -> list[list[str]]:
        rows = rng.integers(-9, 10, size=(size, size))
        return [[str(value) for value in row] for row in rows + rows.T]

    document["function"] = {
        "means": square(3),
        "differences": square(2),
        "memory_value": "-7/3",
        "model_value": "5/2",
    }
    document["multipliers"] = {
        name: [[str(value) for value in row] for row in rng.integers(0, 9, size=(3, 3))]
        for name in ("positive", "decrease", "begin")
    }
    gap = "3/5" if document["method"]["n_clients"] == 3 else "0"
    document["bound"] = {"rate": "4/5", "gap": gap, "start": "7/4", "heterogeneity": "2/3"}
    document["claim"] = memory_checker.CLAIM if gap == "0" else memory_checker.GAP_CLAIM


def _sets(proof: Any) -> Iterator[tuple[float, np.ndarray]]:
    n, p = proof.n_clients, float(proof.probability)
    sizes = [proof.participants] if proof.sampling == "drawn" else range(n + 1)
    for size in sizes:
        for chosen in combinations(range(n), size):
            drawn = 1 / comb(n, size) if proof.sampling == "drawn" else None
            chance = p**size * (1 - p) ** (n - size) if drawn is None else drawn
            yield chance, np.isin(np.arange(n), chosen)[:, None]


def _value(proof: Any, x: np.ndarray, w: np.ndarray, phi: np.ndarray) -> float:
    """Return V without function values, by hand."""
    P, Q = (np.array(rows, dtype=float) for rows in (proof.means, proof.differences))
    means = np.vstack([x, w.mean(axis=0), phi.mean(axis=0)])
    apart = np.stack([w - w.mean(axis=0), phi - phi.mean(axis=0)])
    within = np.einsum("aid,bid->ab", apart, apart) / len(w)
    return float(np.sum(P * (means @ means.T)) + np.sum(Q * within))


def check_identity(checker: Checker, name: str, seed: int) -> None:
    """The forms at vectors of no function at all, against a round over all sets."""
    proof = checker.parsed(edited(name, _random))
    rng, n = np.random.default_rng(seed), proof.n_clients
    x, (w, phi, u) = rng.normal(size=2), rng.normal(size=(3, n, 2))
    heights = np.column_stack([rng.normal(size=(n, 2)), np.zeros(n)])
    c, d, L = float(proof.memory_value), float(proof.model_value), float(proof.L)
    step, surprise = float(proof.step), float(proof.surprise)
    now = _value(proof, x, w, phi) + c * heights[:, 0].mean() + d * heights[:, 1].mean()
    after = 0.0
    for chance, inside in _sets(proof):
        move = -step * (w.mean(axis=0) + surprise * ((u - w) * inside).sum(axis=0))
        new = _value(proof, x + move, np.where(inside, u, w), np.where(inside, x, phi))
        kept = np.where(inside[:, 0], heights[:, 1], heights[:, 0]).mean()
        descent = u.mean(axis=0) @ move + L / 2 * move @ move
        after += chance * (new + c * kept + d * (heights[:, 1].mean() + descent))
    if proof.start == "zero":
        first = now
    else:
        first = _value(proof, x, u, np.tile(x, (n, 1))) + (c + d) * heights[:, 1].mean()
    level = (w**2).sum() / n if proof.start == "zero" else 0.0
    gap = 0.6 if n == 3 else 0.0
    targets = {
        "positive": now if gap else now - x @ x,
        "decrease": 0.8 * now - after - gap * heights[:, 1].mean(),
        "begin": 7 / 4 * x @ x + 2 / 3 * level - first,
    }
    points = np.stack([phi, np.tile(x, (n, 1)), np.zeros((n, 2))])
    gradients = np.stack([w, u, np.zeros((n, 2))])
    for key, (form, _) in checker.slacks(proof).items():
        expected = targets[key]
        for a in range(3):
            for b in range(3):
                multiplier = float(proof.multipliers[key][a][b])
                expected += multiplier * _condition(proof, points, gradients, heights, a, b)
        # There gradients and function values are over L.
        vectors = np.stack([w / L, phi, u / L], axis=1)
        assert _by_blocks(form, x, vectors, heights / L) == pytest.approx(expected)


def _condition(
    proof: Any, points: np.ndarray, gradients: np.ndarray, heights: np.ndarray, a: int, b: int
) -> float:
    """Return the clients' mean of an interpolation condition, written out."""
    L, mu = float(proof.L), float(proof.mu)
    x, g = points[a] - points[b], gradients[a] - gradients[b]
    curved = (g**2).sum(1) / L + mu * (x**2).sum(1) - 2 * mu / L * (g * x).sum(1)
    value = heights[:, b] - heights[:, a] + (gradients[b] * x).sum(1)
    return float((value + curved / (2 * (1 - mu / L))).mean())


def _by_blocks(form: Any, x: np.ndarray, vectors: np.ndarray, heights: np.ndarray) -> float:
    means, differences = (np.array(rows, dtype=float) for rows in (form.means, form.differences[0]))
    all_means = np.vstack([x, vectors.mean(axis=0)])
    apart = vectors - vectors.mean(axis=0)
    values = np.array(form.values[0], dtype=float) @ heights.mean(axis=0)
    return float(
        np.sum(means * (all_means @ all_means.T))
        + np.sum(differences * np.einsum("iad,ibd->ab", apart, apart)) / len(vectors)
        + values
    )


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        *way, last = path.split(".")
        place: Any = document
        for name in way:
            place = place[int(name)] if name.isdigit() else place[name]
        place[int(last) if last.isdigit() else last] = value

    return change


def _more(path: str, by: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for name in path.split("."):
            place = place[int(name)] if name.isdigit() else place[name]
        _set(path, str(Fraction(place) + Fraction(by)))(document)

    return change


def _faster(document: dict[str, Any]) -> None:
    """1 - rate larger by a twentieth; function values cancel still."""
    before = Fraction(document["bound"]["rate"])
    after = 1 - (1 - before) * Fraction(21, 20)
    document["bound"]["rate"] = str(after)
    rows = document["multipliers"]["decrease"]
    for point, name in enumerate(("memory_value", "model_value")):
        change = (after - before) * Fraction(document["function"][name])
        place = (point, 2) if change > 0 else (2, point)
        rows[place[0]][place[1]] = str(Fraction(rows[place[0]][place[1]]) + abs(change))


def _times(name: str, factor: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        value = Fraction(document["bound"][name]) * Fraction(factor)
        document["bound"][name] = str(value)

    return change


def _negative(document: dict[str, Any]) -> None:
    """A pair both ways, so that function values cancel still."""
    rows = document["multipliers"]["decrease"]
    rows[0][1], rows[1][0] = (str(Fraction(rows[a][b]) - 50) for a, b in ((0, 1), (1, 0)))


def _smaller(document: dict[str, Any]) -> None:
    """A function that is below the distance."""
    document["function"]["means"][0][0] = "1/2"


REFUSED = {
    "a closer start of a sum of gaps": ("gap", _times("start", "97/100"), "begin: the slack of"),
    "a larger gap": ("gap", _times("gap", "21/20"), "decrease: the function values of point 1"),
    "a gap below zero": ("gap", _times("gap", "-1"), "bound.gap"),
    "a rate of 1 without a gap": ("drawn", _set("bound.rate", "1"), "bound.rate"),
    "the claim of another": (
        "gap",
        _set("claim", memory_checker.CLAIM),
        "claim: must be 'gap sum_",
    ),
    "a faster rate": ("saga", _faster, "decrease: the slack of"),
    "a closer start": ("drawn", _times("start", "97/100"), "begin: the slack of means"),
    "less heterogeneity": (
        "saga",
        _times("heterogeneity", "1/2"),
        "begin: the slack of differences",
    ),
    "a smaller function": ("drawn", _smaller, "positive: the slack of means"),
    "a function that memory makes negative": (
        "drawn",
        _more("function.means.1.1", "-1000000"),
        "positive: the slack of means",
    ),
    "negative multipliers": ("drawn", _negative, "multipliers.decrease: must not be negative"),
    "memory's values": (
        "drawn",
        _more("multipliers.decrease.0.2", "1"),
        "point 0 of clients do not",
    ),
    "model's values": (
        "drawn",
        _more("multipliers.positive.2.1", "1"),
        "point 1 of clients do not",
    ),
    "no symmetry": ("drawn", _more("function.means.0.1", "1"), "means: must be symmetric"),
    "no symmetry of differences": (
        "drawn",
        _more("function.differences.1.0", "1"),
        "differences: must be symmetric",
    ),
    "a longer step": ("drawn", _set("method.step", "7/5"), "decrease: the slack of"),
    "fewer drawn": ("drawn", _set("method.participants", 1), "method.probability: out of range"),
    "more drawn than there are": ("drawn", _set("method.participants", 4), "participants: out of"),
    "drawn and by themselves": ("independent", _set("method.participants", 1), "participants: out"),
    "a probability above 1": ("independent", _set("method.probability", "3/2"), "probability: out"),
    "a probability of zero": ("independent", _set("method.probability", "0"), "probability: out"),
    "another sampling": ("drawn", _set("method.sampling", "cyclic"), "sampling: out of range"),
    "a list of samplings": ("drawn", _set("method.sampling", []), "sampling: out of range"),
    "another start": ("drawn", _set("method.start", "warm"), "start: out of range"),
    "no step": ("drawn", _set("method.step", "0"), "step: out of range"),
    "a negative surprise": ("drawn", _set("method.surprise", "-1"), "surprise: out of range"),
    "no clients": ("drawn", _set("method.n_clients", 0), "n_clients: out of range"),
    "no strong convexity": ("drawn", _set("class.mu", "0"), "class.mu: out of range"),
    "mu above L": ("drawn", _set("class.mu", "3"), "class.mu: out of range"),
    "a rate of one": ("drawn", _set("bound.rate", "1"), "bound.rate: out of range"),
    "a negative rate": ("drawn", _set("bound.rate", "-1/2"), "bound.rate: out of range"),
    "negative heterogeneity": (
        "drawn",
        _set("bound.heterogeneity", "-1"),
        "bound.heterogeneity: out of range",
    ),
    "a negative value of F": (
        "drawn",
        _set("function.model_value", "-1"),
        "function.model_value: out of range",
    ),
    "two rows": ("drawn", _set("function.means", [["1"]]), "must be 3 rows of 3 numbers"),
    "a number": ("drawn", _set("class.L", 2.5), "numbers must be whole"),
    "an exponent": ("drawn", _set("class.L", "1e99"), "class.L: must be a fraction"),
    "another kind": ("drawn", _set("kind", "proof"), "kind: must be"),
    "another claim": ("drawn", _set("claim", "x"), "claim: must be"),
    "version true": ("drawn", _set("version", True), "version: must be 3"),
    "another field": ("drawn", _set("more", 1), "more: is not a field"),
    "a start of memory that it has not": (
        "waits",
        _set("method.start", "zero"),
        "begin: the (slack|function)",
    ),
}


def check_refused(checker: Checker, case: str) -> None:
    name, change, message = REFUSED[case]
    with pytest.raises(checker.ProofError, match=message):
        checker.check_proof(checker.parsed(edited(name, change)))


@pytest.mark.parametrize("name", ROUNDS)
def test_the_forms_are_what_the_play_gives(name: str) -> None:
    check_identity(memory_checker, name, 0)


@pytest.mark.parametrize("name", ROUNDS)
def test_certificates_are_accepted(name: str) -> None:
    memory_checker.check_proof(memory_checker.parsed(text_of(name)))


@pytest.mark.parametrize("case", REFUSED)
def test_a_certificate_that_was_edited_is_refused(case: str) -> None:
    check_refused(memory_checker, case)


def _leaves(found: Any, way: str = "") -> Iterator[str]:
    if isinstance(found, str | int):
        yield way
    elif isinstance(found, dict | list):
        items = found.items() if isinstance(found, dict) else enumerate(found)
        for name, item in items:
            yield from _leaves(item, f"{way}.{name}" if way else str(name))


@pytest.mark.parametrize("junk", [None, [], {}, True, 1.5, "1/0", "x", "9" * 2001])
def test_every_field_refuses_junk(junk: object) -> None:
    places = list(_leaves(json.loads(text_of("waits"))))
    assert len(places) > 50
    for place in places:
        with pytest.raises(memory_checker.ProofError):
            memory_checker.check_proof(memory_checker.parsed(edited("waits", _set(place, junk))))


@pytest.mark.parametrize(
    "text", ["[", "[]", "1", '{"kind": 1, "kind": 2}', "[" * 10**5, " " * 30_001]
)
def test_what_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(memory_checker.ProofError):
        memory_checker.parsed(text)


MUTATIONS = {
    "pairs are drawn with replacement": (
        "Fraction(self.participants * (self.participants - 1), max",
        "Fraction(self.participants**2, max",
    ),
    "F may count against": ("proof.model_value >= 0,", "True,"),
    "nothing is drawn too often": ("1 <= proof.participants <= proof.n_clients", "True"),
    "any probability is one": (
        "proof.probability == Fraction(proof.participants, proof.n_clients)",
        "True",
    ),
    "independent clients may be drawn": ("else proof.participants == 0", "else True"),
    "a probability may be large": ("else 0 < proof.probability <= 1", "else True"),
    "convexity is not asked": ("0 < proof.mu < proof.L", "0 <= proof.mu < proof.L"),
    "no rate is too large": ('0 <= proof.bound["rate"] < 1', "True"),
    "heterogeneity may help": ('proof.bound["heterogeneity"] >= 0', "True"),
    "claims are not read": (", claim=CLAIM)", ")"),
    "a round is not random": (
        "one, two = proof.probability, proof.together",
        "one, two = proof.probability, proof.probability**2",
    ),
    "a surprise has another sign": ("(-step * proof.surprise)", "(step * proof.surprise)"),
    "memory does not move the model": (
        "absent = Fate(memory, self.w",
        "absent = Fate(self.nothing, self.w",
    ),
    "memory is not renewed": (
        "Fate(memory + surprise, self.u, self.x, MODEL)",
        "Fate(memory + surprise, self.w, self.phi, MEMORY)",
    ),
    "memory has another point": (
        "Fate(memory + surprise, self.u, self.x, MODEL)",
        "Fate(memory + surprise, self.u, self.phi, MODEL)",
    ),
    "memory has another value": (
        "Fate(memory + surprise, self.u, self.x, MODEL)",
        "Fate(memory + surprise, self.u, self.x, MEMORY)",
    ),
    "descent has no square": ("square = P[0][0] + model / 2", "square = P[0][0]"),
    "descent has no slope": ("form.add_each(weight * model, 0, self.u, fate.moves)", "pass"),
    "descent has no slope among pairs": (
        "form.add_two(weight * model, 0, 0, self.u, other.moves)",
        "pass",
    ),
    "differences are means": (
        "(P[a + 1][b + 1] - Q[a][b]) / n\n                    form.add_each",
        "P[a + 1][b + 1] / n\n                    form.add_each",
    ),
    "pairs do not differ": ("pair = (P[a + 1][b + 1] - Q[a][b]) / n", "pair = P[a + 1][b + 1] / n"),
    "units of memory": ("self._scaled(proof.means, 1)", "self._scaled(proof.means, 2)"),
    "values need not cancel": ("if value != 0:", "if False:"),
    "a value of x* is free": ("form.add_value(-weight, 0, OPTIMUM)", "pass"),
    "conditions are turned round": (
        "entering[a] - leaving[a], group",
        "leaving[a] - entering[a], group",
    ),
    "multipliers may be negative": ("if any(weight < 0 for one", "if any(weight < -99 for one"),
    "a function needs no symmetry": ("if any(rows[i][j] != rows[j][i]", "if any(False"),
    "memory starts where it likes": (
        'if proof.start == "zero":\n        # Memory',
        "if False:\n        # Memory",
    ),
    "the mean of memory is free of charge": (
        'zero if name == "begin" else []',
        "[played.clients.mean(0, 0)]",
    ),
    "the distance is half of it": (
        '["positive"].add(-one, x, x)',
        '["positive"].add(-one / 2, x, x)',
    ),
}


@pytest.mark.parametrize("name", a_tenth(MUTATIONS, of=3))
def test_a_checker_that_was_weakened_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = mutant_of(memory_checker, MUTATIONS[name], monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_all(mutant)


def check_all(checker: Checker) -> None:
    for name in ROUNDS:
        check_identity(checker, name, 0)
    for case in REFUSED:
        check_refused(checker, case)


def test_the_checker_itself_passes_what_catches_mutants() -> None:
    check_all(memory_checker)
