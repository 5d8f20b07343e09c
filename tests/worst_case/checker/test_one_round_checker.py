"""The checker: its slack against a round played on numbers, its refusals, and mutants of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.worst_case import ClientClass, certificate
from fltheory.worst_case.checker import kernel, one_round
from fltheory.worst_case.rounds.bound import best_bound_of
from fltheory.worst_case.rounds.one_round import OneRound
from tests.drawn import a_tenth
from tests.worst_case.checker.mutants import mutant_of
from tests.worst_case.settings import a_round

Checker = Any


def _text(played: OneRound, kind: str, sigma: int) -> str:
    clients = ClientClass(2, "0.2", kind, sigma=sigma)  # type: ignore[arg-type]
    return certificate(best_bound_of(played, clients)).text


PLAYED = a_round(5, 2, 2, 3, "1/3", "1/10", "1/7", "3/2")
TEXTS = {
    (kind, sigma): _text(PLAYED, kind, sigma)
    for kind in ("optimum", "everywhere")
    for sigma in (0, 1)
}


def _random(rng: np.random.Generator, *shape: int) -> Any:
    numbers = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        numbers[index] = Fraction(int(rng.integers(-9, 10)), 7)
    return numbers


def played_slack(proof: Any, rng: np.random.Generator) -> tuple[Fraction, tuple[Any, ...]]:
    """Return the slack over e of clients with any numbers as gradients, by play, and the numbers.

    In one dimension; gradients need not belong to any function, as the slack is an identity. The
    play goes over every set of participants, and takes each condition of each client by itself.
    """
    box = proof.boxes[0]
    eta, L, mu = box.client_lr[0], proof.L, proof.mu / proof.L
    who = proof.taking_part
    e, steps, n, n_clients = proof.L * eta, proof.local_steps, who.n_eligible, who.n_clients
    s = n_clients - n
    z, g, u = _random(rng, 1)[0], _random(rng, n, steps), _random(rng, s)
    at = _random(rng, n_clients)
    at[-1] = -at[:-1].sum()
    value = {name: c[0] for name, c in proof.bound.items()}
    reach, own = proof.server_lr * e, proof.assist_ratio * e
    mean_gradient = (g[:, 0].sum() + u.sum()) / n_clients
    sets = list(combinations(range(n), proof.taking_part.participants))
    ends = [(z - reach * g[list(c)].sum() / proof.taking_part.participants) ** 2 for c in sets]
    after = proof.q * sum(ends) / len(sets) + (1 - proof.q) * (z - own * mean_gradient) ** 2
    total = (value["rate"] * z**2 - after) / e
    budgets = value["heterogeneity"] * L**2 / e
    squares = [(g[list(c)].sum() / proof.taking_part.participants) ** 2 for c in sets]
    given = {name: box.given * proof.given.get(name, 0) for name in one_round.GIVEN}
    total += given["gradient"] * mean_gradient**2 + given["moved"] * sum(squares) / len(sets)
    budgets += given["heterogeneity"]
    off = [(g[:, 0], at[:n]), (u, at[n:])]
    if proof.heterogeneity == "optimum":
        total += budgets * box.budgets[0] * (at**2).sum() / n_clients
    else:
        parts = iter(box.budgets)
        for here, there in off:
            total += budgets * next(parts) * (there**2).sum() / len(there)
            total += budgets * next(parts) * ((here - mean_gradient) ** 2).sum() / len(here)
    for group, gradients, members in ((0, g, n), (1, u[:, None], s)):
        for i in range(members):
            x = [z]
            for k in range(1, gradients.shape[1]):
                x.append(x[-1] - e * gradients[i, k - 1])
            points = [*x, Fraction(0)]
            seen = [*gradients[i], at[i + n * group]]
            for a, row in enumerate(box.pairs[group]):
                for b, weight in enumerate(row):
                    dx, dg = points[a] - points[b], seen[a] - seen[b]
                    curved = (dg**2 + mu * dx**2 - 2 * mu * dg * dx) / (2 * (1 - mu))
                    total += weight * (seen[b] * dx + curved) / members
    return total, (z, g, u, at)


def form(matrix: Any, vector: Any) -> Fraction:
    return Fraction(vector @ np.array(matrix, dtype=object) @ vector)


def check_identity(checker: Checker, text: str, seed: int) -> None:
    """The blocks at means and differences are what the play gives, for any numbers."""
    proof = checker.parsed(text)
    total, data = played_slack(proof, np.random.default_rng(seed))
    z, g, u, at = data
    n = len(g)
    blocks = checker.slack_blocks(proof, proof.boxes[0], proof.boxes[0].client_lr[0])
    mean = np.concatenate([[z], g.sum(axis=0) / n, [u.sum() / len(u)], [at[n:].sum() / len(u)]])
    found = form(blocks["means"], mean)
    own = np.column_stack([g, at[:n]])
    for difference in own - own.sum(axis=0) / n:
        found += form(blocks["differences of eligible clients"], difference) / n
    others = np.column_stack([u, at[n:]])
    for difference in others - others.sum(axis=0) / len(u):
        found += form(blocks["differences of excluded clients"], difference) / len(u)
    assert found == total


def check_fluctuations(checker: Checker, text: str, seed: int) -> None:
    """One client's noise and what it does, step by step."""
    proof = checker.parsed(text)
    box, rng = proof.boxes[0], np.random.default_rng(seed)
    count, mu = proof.local_steps - 1, proof.mu / proof.L
    e = proof.L * box.client_lr[0]
    h, xi = [Fraction(0), *_random(rng, count)], [*_random(rng, count), Fraction(0)]
    x, points = Fraction(0), []
    for k in range(count + 1):
        points.append(x)
        x -= e * (h[k] + xi[k])
    points.append(Fraction(0))
    seen = [*h, Fraction(0)]
    moved = proof.server_lr * sum(a + b for a, b in zip(h, xi, strict=True))
    total = -proof.q * e * moved**2 / proof.taking_part.participants
    if proof.given:
        times = box.given * proof.given["moved"] / proof.taking_part.participants
        total += times * sum(h) ** 2
    for a, row in enumerate(box.pairs[0]):
        for b, weight in enumerate(row):
            dx, dg = points[a] - points[b], seen[a] - seen[b]
            curved = (dg**2 + mu * dx**2 - 2 * mu * dg * dx) / (2 * (1 - mu))
            total += weight * (seen[b] * dx + curved)
    left = proof.bound["noise"][0] - (
        proof.q * (proof.server_lr * box.client_lr[0]) ** 2 / proof.taking_part.participants
    )
    for k, part in enumerate(box.noises):
        total += left * proof.L**2 / e * part * xi[k] ** 2
    free = iter(box.orthogonal)
    for k in range(count):
        for other in [*h[1 : k + 1], *xi[:k]]:
            total += 2 * next(free) * xi[k] * other
    blocks = checker.slack_blocks(proof, box, box.client_lr[0])
    assert (
        form(blocks["fluctuations of eligible clients"], np.array([*h[1:], *xi[:-1]], dtype=object))
        == total
    )


def edited(text: str, change: Callable[[dict[str, Any]], None]) -> str:
    document = json.loads(text)
    change(document)
    return json.dumps(document)


def _lower(name: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        value = Fraction(document["bound"][name][0])
        document["bound"][name] = [str(value * Fraction(98, 100))]

    return change


def _negative_pair(document: dict[str, Any]) -> None:
    """A pair both ways, so that function values still cancel."""
    rows = document["boxes"][0]["pairs"][1]
    rows[0][1] = rows[1][0] = "-1"


def _unbalanced(document: dict[str, Any]) -> None:
    rows = document["boxes"][0]["pairs"][0]
    rows[0][1] = str(Fraction(rows[0][1]) + 1)


def _twice_the_budget(document: dict[str, Any]) -> None:
    document["boxes"][0]["budgets"] = [
        str(2 * Fraction(part)) for part in document["boxes"][0]["budgets"]
    ]


def _negative_budget(document: dict[str, Any]) -> None:
    parts = [Fraction(part) for part in document["boxes"][0]["budgets"]]
    parts[-1], parts[0] = parts[-1] + 2, parts[0] - 2
    document["boxes"][0]["budgets"] = [str(part) for part in parts]


def _more_clients(document: dict[str, Any]) -> None:
    document["round"]["taking_part"]["n_clients"] = 50


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        *way, last = path.split(".")
        place: Any = document
        for name in way:
            place = place[int(name)] if name.isdigit() else place[name]
        place[int(last) if last.isdigit() else last] = value

    return change


def _supposed(document: dict[str, Any]) -> None:
    """Numbers that prove nothing: only what they are multiplied by is looked at."""
    document["given"] = {
        "gradient": "-2/3", "moved": "5/7", "values": "0", "heterogeneity": "3/4"
    }  # fmt: skip
    document["boxes"][0]["given"] = "4/5"


TEXTS["everywhere", 2] = edited(TEXTS["everywhere", 1], _supposed)
EVERYWHERE, NOISY = TEXTS["everywhere", 0], TEXTS["optimum", 1]
REFUSED = {
    "supposed values": (
        edited(EVERYWHERE, _supposed),
        _set("given.values", "1"),
        "function values of point 0",
    ),
    "a multiplier of what is not supposed": (
        EVERYWHERE,
        _set("boxes.0.given", "1"),
        "boxes\\[0\\].given: out of range",
    ),
    "less than what is supposed": (
        edited(EVERYWHERE, _supposed),
        _set("boxes.0.given", "-1"),
        "given: out of range",
    ),
    "what the optimum does not bound": (
        NOISY,
        _set("given", dict.fromkeys(one_round.GIVEN, "0")),
        "given: out of range",
    ),
    "heterogeneity": (EVERYWHERE, _lower("heterogeneity"), "negative eigenvalue"),
    "noise": (NOISY, _lower("noise"), "negative eigenvalue|less than the last"),
    "server_noise": (NOISY, _lower("server_noise"), "bound.server_noise: is less"),
    "void noise": (EVERYWHERE, _set("bound.noise.0", "-1"), "negative eigenvalue|less than"),
    "negative pair": (EVERYWHERE, _negative_pair, "must not be negative"),
    "unbalanced": (EVERYWHERE, _unbalanced, "values of point 0 of eligible clients do not cancel"),
    "twice the budget": (EVERYWHERE, _twice_the_budget, "nor more than one in all"),
    "negative budget": (EVERYWHERE, _negative_budget, "must not be negative"),
    "more clients": (EVERYWHERE, _more_clients, "negative eigenvalue"),
    "no noise parts": (NOISY, _set("boxes.0.noises", []), r"noises: must be 2 numbers"),
    "another kind": (EVERYWHERE, _set("kind", "refutation"), "kind: must be"),
    "another claim": (EVERYWHERE, _set("claim", "x"), "claim: must be"),
    "version true": (EVERYWHERE, _set("version", True), "version: must be 3"),
    "mu above L": (EVERYWHERE, _set("class.mu", "3"), "class.mu: out of range"),
    "negative q": (EVERYWHERE, _set("round.q", "-1/2"), "round.q: out of range"),
    "too many drawn": (
        EVERYWHERE,
        _set("round.taking_part.participants", 4),
        "participants: out of range",
    ),
    "no whole clients": (
        EVERYWHERE,
        _set("round.taking_part.n_clients", 6),
        "n_clients: out of range",
    ),
    "a point": (EVERYWHERE, _set("class.L", "1.5"), "class.L: must be a fraction"),
    "an exponent": (EVERYWHERE, _set("class.L", "1e9999999"), "class.L: must be a fraction"),
    "a number": (EVERYWHERE, _set("class.L", 1.5), "numbers must be whole"),
    "no box": (EVERYWHERE, _set("boxes", []), "boxes: out of range"),
    "steps out of order": (
        EVERYWHERE,
        _set("boxes.0.client_lr", ["1/10", "1/20"]),
        "must be above 0 and in order",
    ),
    "an interval": (
        EVERYWHERE,
        _set("boxes.0.client_lr", ["1/20", "1/10"]),
        "must be 1 at a step size of 0",
    ),
    "another field": (EVERYWHERE, _set("more", 1), "more: is not a field"),
}


def check_refused(checker: Checker, name: str) -> None:
    check_refused_text(checker, *REFUSED[name])


def check_refused_text(
    checker: Checker, text: str, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    with pytest.raises(checker.ProofError, match=message):
        checker.check_proof(checker.parsed(edited(text, change)))


def check_matrices(checker: Checker) -> None:
    def psd(rows: list[list[int]]) -> bool:
        matrix = [[Fraction(v) for v in row] for row in rows]
        return bool(checker.kernel.is_positive_semidefinite(matrix))

    assert psd([[0, 0], [0, 1]])
    assert psd([[4, 2, 0], [2, 1, 0], [0, 0, 0]])
    assert not psd([[0, 1], [1, 5]])
    assert not psd([[1, 2], [2, 1]])
    assert not psd([[1, 0], [0, -1]])
    assert not psd([[1, 1, 1], [1, 1, 0], [1, 0, 9]])
    assert not psd([[1, 2], [0, 9]])


@pytest.mark.parametrize("key", TEXTS)
@pytest.mark.parametrize("seed", range(3))
def test_the_slack_is_what_the_play_gives(key: tuple[str, int], seed: int) -> None:
    check_identity(one_round, TEXTS[key], seed)
    if key[1]:
        check_fluctuations(one_round, TEXTS[key], seed)


@pytest.mark.parametrize("name", REFUSED)
def test_a_certificate_that_was_edited_is_refused(name: str) -> None:
    check_refused(one_round, name)


@pytest.mark.parametrize("text", ["[", "[]", "1", '{"kind": 1, "kind": 2}', "[" * 10**5])
def test_what_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(one_round.ProofError):
        one_round.parsed(text)


@given(st.integers(1, 5), st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_semidefinite_is_what_eigenvalues_say(size: int, rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.integers(-3, 4, size=(size, min(rank, size)))
    square = factor @ factor.T
    exact = [[Fraction(int(value), 3) for value in row] for row in square]
    assert kernel.is_positive_semidefinite(exact)
    exact[0][0] -= Fraction(1, 1000)
    least = np.linalg.eigvalsh(np.array(exact, dtype=float))[0]
    if abs(least) > 1e-9:
        assert kernel.is_positive_semidefinite(exact) == (least > 0)


def check_all(checker: Checker) -> None:
    check_matrices(checker)
    for key, text in TEXTS.items():
        check_identity(checker, text, 0)
        if key[1]:
            check_fluctuations(checker, text, 0)
    for case in REFUSED:
        check_refused(checker, case)


MUTATIONS = {
    "the gradient may be supposed twice": (
        'times * given["gradient"], self.gradient',
        '2 * times * given["gradient"], self.gradient',
    ),
    "participants move together": ("if own.pairs[0]:", "if False:"),
    "noise does not move what is supposed": (
        'times = self.box.given * self.proof.given["moved"]',
        "times = Fraction(0)",
    ),
    "what is supposed has no dissimilarity": ("budget += box.given *", "budget += 0 *"),
    "what is supposed may count against": (
        "value == 0 or (value > 0 and bool(proof.given))",
        "True",
    ),
    "function values need not cancel": ("if value != 0:", "if False:"),
    "weights may be negative": ("if any(weight < 0 for one", "if any(weight < -9 for one"),
    "budgets may be more than all": ("or sum(parts) > 1:", "or sum(parts) > 3:"),
    "budgets may be negative": ("min(parts, default=Fraction(0)) < 0", "False"),
    "differences are skipped": ("if group.n_clients != 1 and block:", "if False:"),
    "fluctuations are skipped": ("if not self.proof.noisy or not count:", "if True:"),
    "a pivot of zero ends nothing": ("or (pivot == 0 and any(rows[k][k + 1 :]))", ""),
    "a negative pivot is taken": ("if pivot < 0 or", "if pivot < -(10**99) or"),
    "symmetry is not asked": ("matrix[i][j] != matrix[j][i]", "False"),
    "pairs of clients are not drawn": ("two = Fraction(m - 1, m)", "two = Fraction(0)"),
    "pairs are drawn with replacement": ("two = Fraction(m - 1, m)", "two = Fraction(1)"),
    "clients draw alone": (
        "-clients * gain**2 * own.square, c, moved",
        "0 * clients * own.square, c, moved",
    ),
    "differences add up to something": (
        "less = -weight / (count - 1)",
        "less = weight / (count - 1)",
    ),
    "noise of all clients": ("-reach * crowd.square, 0,", "-reach / 99, 0,"),
    "the server's step has another sign": (
        "form.add(2 * server * step",
        "form.add(-2 * server * step",
    ),
    "the server's step is short": ("-server * step**2", "-server * step"),
    "local steps have another sign": ("points[-1] - e * gradient", "points[-1] + e * gradient"),
    "gradients at x* need not cancel": ("play.form.blocks(play.zero)", "play.form.blocks()"),
    "what is zero is put in with another sign": ("[-value / comb", "[value / comb"),
    "conditions lose their curvature": ("scale = 1 / (2 * (1 - mu))", "scale = 1 / (1 - mu)"),
    "conditions are turned round": ("[weights[b][a] for b", "[weights[a][b] for b"),
    "conditions lose a term": ("steeper - (2 * mu) * apart", "steeper"),
    "conditions lose their points": ("scale * mu, group, points[a]", "0 * mu, group, points[a]"),
    "the Laplacian leaves out what leaves": (
        "laplacian[a] += entering[a] + leaving[a]",
        "laplacian[a] += entering[a]",
    ),
    "the last noise is free": ('(bound["noise"] - last_noise)', 'bound["noise"]'),
    "the server's noise is free": ('bound["server_noise"] - server_noise', 'bound["server_noise"]'),
    "budgets are of another point": (
        "for vector in (self.at_optimum[c], off):",
        "for vector in (off, self.at_optimum[c]):",
    ),
    "excluded clients are not weighed": ("whole * own.share, c, optimum", "whole, c, optimum"),
    "a noise's freedom is halved": ("2 * next(free)", "next(free)"),
    "a rate's part is turned round": (
        "self.form.add(-decrease, self.x, self.x)",
        "self.form.add(decrease, self.x, self.x)",
    ),
    "steps need no order": ("if not 0 < first <= last:", "if not 0 < first:"),
    "an interval needs no form": (
        "if first < last and polynomial[0]",
        "if False and polynomial[0]",
    ),
    "more are drawn than there are": ("size * (1 - out) >= drawn.participants", "size >= 1"),
    "clients need not be whole": ("(size * out).denominator == 1", "True"),
    "claims are not read": ('if top["claim"] not in (CLAIM, DESCENT_CLAIM):', "if False:"),
}


@pytest.mark.parametrize("name", a_tenth(MUTATIONS, of=3))
def test_a_checker_that_was_weakened_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = mutant_of(one_round, MUTATIONS[name], monkeypatch)
    with pytest.raises(
        (AssertionError, pytest.fail.Exception, KeyError, IndexError, TypeError, ValueError)
    ):
        check_all(mutant)


def test_the_checker_itself_passes_what_catches_mutants() -> None:
    check_all(one_round)
    for text in [text for key, text in TEXTS.items() if key[1] < 2]:
        one_round.check_proof(one_round.parsed(text))
