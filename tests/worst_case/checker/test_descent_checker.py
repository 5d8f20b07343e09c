"""The checker on the descent of F: its slack against a round played on numbers, and mutants."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from fltheory.worst_case import SmoothClass
from fltheory.worst_case.checker import one_round
from fltheory.worst_case.rounds.bound import best_bound_of
from fltheory.worst_case.rounds.certificate import certificate
from fltheory.worst_case.rounds.measure import DESCENT
from fltheory.worst_case.rounds.one_round import OneRound
from tests.drawn import a_tenth
from tests.worst_case.checker.mutants import mutant_of
from tests.worst_case.checker.test_one_round_checker import (
    _random,
    _set,
    check_refused_text,
    form,
)
from tests.worst_case.settings import a_round

Checker = Any
PLAYED = a_round(5, 2, 2, 3, "1/3", "1/10", "1/7", "3/2")


def _text(played: OneRound, sigma: int) -> str:
    clients = SmoothClass(2, sigma, sigma)
    return certificate(best_bound_of(played, clients, measure=DESCENT)).text


TEXTS = {sigma: _text(PLAYED, sigma) for sigma in (0, 1)}
ONE_STEP = _text(a_round(5, 2, 2, 1, "1/3", "1/10", "1/7"), 0)


def played_slack(proof: Any, rng: np.random.Generator) -> tuple[Fraction, tuple[Any, ...]]:
    """Return the slack over e, by play over every set, of any numbers as gradients.

    F(x+) - F(x) is bounded by the descent lemma for each set by itself.
    """
    box = proof.boxes[0]
    eta, L, mu = box.client_lr[0], proof.L, proof.mu / proof.L
    who = proof.taking_part
    e, steps, n, s = proof.L * eta, proof.local_steps, who.n_eligible, who.n_excluded
    x, g, u = _random(rng, 1)[0], _random(rng, n, steps), _random(rng, s)
    value = {name: c[0] for name, c in proof.bound.items()}
    gradient = (g[:, 0].sum() + u.sum()) / (n + s)

    def risen(step: Fraction) -> Fraction:
        return gradient * step + step**2 / 2

    reach, own = proof.server_lr * e, proof.assist_ratio * e
    sets = list(combinations(range(n), proof.taking_part.participants))
    by_clients = [risen(-reach * g[list(c)].sum() / proof.taking_part.participants) for c in sets]
    rise = proof.q * sum(by_clients) / len(sets) + (1 - proof.q) * risen(-own * gradient)
    total = -(rise + value["decrease"] * L * gradient**2) / e
    parts = iter(box.budgets)
    for here in (g[:, 0], u):
        budget = value["heterogeneity"] * L / e * next(parts)
        total += budget * ((here - gradient) ** 2).sum() / len(here)
    for i in range(n):
        points = [x]
        for k in range(steps - 1):
            points.append(points[-1] - e * g[i, k])
        for a in range(steps):
            for b in range(steps):
                dx, dg = points[a] - points[b], g[i, a] - g[i, b]
                curved = (dg**2 + mu * dx**2 - 2 * mu * dg * dx) / (2 * (1 - mu))
                total += box.pairs[0][a][b] * (g[i, b] * dx + curved) / n
    return total, (g, u)


def check_identity(checker: Checker, text: str, seed: int) -> None:
    """The blocks at means and differences are what the play gives, for any numbers."""
    proof = checker.parsed(text)
    total, (g, u) = played_slack(proof, np.random.default_rng(seed))
    blocks = checker.slack_blocks(proof, proof.boxes[0], proof.boxes[0].client_lr[0])
    n = len(g)
    means = g.sum(axis=0) / n
    found = form(blocks["means"], np.append(means, u.sum() / len(u)))
    for row in g - means:
        found += form(blocks["differences of eligible clients"], row) / n
    for row in u[:, None] - u.sum() / len(u):
        found += form(blocks["differences of excluded clients"], row) / len(u)
    assert found == total


def check_fluctuations(checker: Checker, text: str, seed: int) -> None:
    """One client's noise and what it does, step by step; F counts half of a square."""
    proof = checker.parsed(text)
    box, rng = proof.boxes[0], np.random.default_rng(seed)
    count, mu, L = proof.local_steps - 1, proof.mu / proof.L, proof.L
    e = L * box.client_lr[0]
    h, xi = [Fraction(0), *_random(rng, count)], [*_random(rng, count), Fraction(0)]
    x, points = Fraction(0), []
    for k in range(count + 1):
        points.append(x)
        x -= e * (h[k] + xi[k])
    moved = proof.server_lr * e * sum(a + b for a, b in zip(h, xi, strict=True))
    total = -proof.q * moved**2 / proof.taking_part.participants / 2 / e
    for a, row in enumerate(box.pairs[0]):
        for b, weight in enumerate(row):
            dx, dg = points[a] - points[b], h[a] - h[b]
            curved = (dg**2 + mu * dx**2 - 2 * mu * dg * dx) / (2 * (1 - mu))
            total += weight * (h[b] * dx + curved)
    last = (
        L / 2 * proof.q * (proof.server_lr * box.client_lr[0]) ** 2 / proof.taking_part.participants
    )
    for part, noise in zip(box.noises, xi, strict=False):
        total += (proof.bound["noise"][0] - last) * L / e * part * noise**2
    free = iter(box.orthogonal)
    for k in range(count):
        for other in [*h[1 : k + 1], *xi[:k]]:
            total += 2 * next(free) * xi[k] * other
    blocks = checker.slack_blocks(proof, box, box.client_lr[0])
    assert (
        form(blocks["fluctuations of eligible clients"], np.array([*h[1:], *xi[:-1]], dtype=object))
        == total
    )


def _scaled(name: str, factor: Fraction) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        value = Fraction(document["bound"][name][0])
        document["bound"][name] = [str(value * factor)]

    return change


def _as_distance(document: dict[str, Any]) -> None:
    """The same numbers as a claim on the distance."""
    document["claim"] = one_round.CLAIM
    document["bound"] |= {"rate": ["1"], "gap": ["0"]}
    del document["bound"]["decrease"]


def _pair_of_excluded(document: dict[str, Any]) -> None:
    document["boxes"][0]["pairs"][1] = [["0", "0"], ["0", "0"]]


SMALLER = Fraction(98, 100)
REFUSED = {
    "decrease": (TEXTS[0], _scaled("decrease", 1 / SMALLER), "negative eigenvalue"),
    "heterogeneity": (TEXTS[0], _scaled("heterogeneity", SMALLER), "negative eigenvalue"),
    "noise": (TEXTS[1], _scaled("noise", SMALLER), "negative eigenvalue|less than the last"),
    "server_noise": (TEXTS[1], _scaled("server_noise", SMALLER), "bound.server_noise: is less"),
    "a claim on the distance": (TEXTS[0], _as_distance, "class.mu: out of range"),
    "curvature below -L": (TEXTS[0], _set("class.mu", "-3"), "class.mu: out of range"),
    "at the optimum": (
        TEXTS[0], _set("class.heterogeneity", "optimum"), "class.heterogeneity: out of range"
    ),
    "pairs of one point": (TEXTS[0], _pair_of_excluded, r"pairs\[1\]: must be 1 rows of 1"),
    "pairs of one step": (
        ONE_STEP, _set("boxes.0.pairs", [[["0"]]]), "pairs: must be 2 matrices"
    ),
    "a budget at x*": (TEXTS[0], _set("boxes.0.budgets", ["1", "0", "0", "0"]), "must be 2"),
    "an interval": (
        TEXTS[0], _set("boxes.0.client_lr", ["1/20", "1/10"]), "must be 0 at a step size of 0"
    ),
}  # fmt: skip


def check_all(checker: Checker) -> None:
    for text in (*TEXTS.values(), ONE_STEP):
        check_identity(checker, text, 0)
    check_fluctuations(checker, TEXTS[1], 0)
    for text, change, message in REFUSED.values():
        check_refused_text(checker, text, change, message)


@pytest.mark.parametrize("seed", range(3))
def test_the_slack_is_what_the_play_gives(seed: int) -> None:
    for text in (*TEXTS.values(), ONE_STEP):
        check_identity(one_round, text, seed)
    check_fluctuations(one_round, TEXTS[1], seed)


@pytest.mark.parametrize("name", REFUSED)
def test_a_certificate_that_was_edited_is_refused(name: str) -> None:
    check_refused_text(one_round, *REFUSED[name])


MUTATIONS = {
    "F counts a whole square": ("(proof.L, Fraction(1, 2))", "(proof.L, Fraction(1))"),
    "F counts no square": ("(proof.L, Fraction(1, 2))", "(proof.L, Fraction(0))"),
    "nothing falls": ("self.form.add(-decrease, self.gradient, self.gradient)", "pass"),
    "a step along x": ("self._add_round(self.gradient)", "self._add_round(self.x)"),
    "the excluded have no part in F": (
        "[own.share * mean for own, mean",
        "[own.mean * mean for own, mean",
    ),
    "a budget of gradients themselves": ("off = along[0] - self.gradient", "off = along[0]"),
    "the excluded take K steps": ("self.local_steps if crowd.mean else 1", "self.local_steps"),
    "a loss is a square": ("unit, square = (proof.L,", "unit, square = (proof.L**2,"),
    "curvature is free": ("(-proof.L if proof.of_descent else 0)", "(-9 * proof.L)"),
    "differences at x* will do": ('"optimum" and not proof.of_descent)', '"optimum")'),
    "a decrease may be there before a step": ('polynomial[0] != (name == "rate")', "False"),
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
    for text in (*TEXTS.values(), ONE_STEP):
        one_round.check_proof(one_round.parsed(text))
        assert json.loads(text)["claim"] == one_round.DESCENT_CLAIM
