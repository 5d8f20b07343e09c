"""The checker of weighted averaging: its slack against rounds on numbers, refusals, mutants."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from fltheory.worst_case import ClientClass
from fltheory.worst_case.checker import one_round
from fltheory.worst_case.rounds.bound import best_bound_of
from fltheory.worst_case.rounds.certificate import certificate
from fltheory.worst_case.rounds.one_round import AvailabilityGroup, AveragingRound
from tests.drawn import a_tenth
from tests.worst_case.checker.mutants import mutant_of
from tests.worst_case.checker.test_one_round_checker import _random, _set, check_refused_text, form

Checker = Any


def _round(averaging: str) -> AveragingRound:
    weights = ("2/3", "1/2", "1") if averaging == "weights" else ("1", "1", "1")
    groups = [(2, "9/10", "1/10"), (1, "1/3", "3/10"), (3, "2/5", "1/6")]
    return AveragingRound(
        tuple(
            AvailabilityGroup(count, Fraction(p), Fraction(target), Fraction(weight))
            for (count, p, target), weight in zip(groups, weights, strict=True)
        ),
        averaging,  # type: ignore[arg-type]
        3,
        Fraction(1, 20),
        Fraction(3, 4),
    )


def _text(averaging: str, kind: str) -> str:
    clients = ClientClass(2, "0.2", kind)  # type: ignore[arg-type]
    return certificate(best_bound_of(_round(averaging), clients), 1e-4).text


TEXTS = {
    (averaging, kind): _text(averaging, kind)
    for averaging in ("weights", "present")
    for kind in ("optimum", "everywhere")
}


def played_slack(proof: Any, rng: np.random.Generator) -> tuple[Fraction, Any, Any, Any]:
    """Return the slack over e, by play over every set, of any numbers as gradients."""
    who, box = proof.taking_part, proof.boxes[0]
    everybody = [(c, own) for c, own in enumerate(who.groups) for _ in range(own.n_clients)]
    n, steps = len(everybody), proof.local_steps
    e = proof.L * box.client_lr[0]
    alpha = np.array([own.target_weight for _, own in everybody], dtype=object)
    x, g, at = _random(rng, 1)[0], _random(rng, n, steps), _random(rng, n)
    at[-1] = -(alpha[:-1] * at[:-1]).sum() / alpha[-1]
    total = proof.bound["rate"][0] * x**2 / e
    for mask in product((0, 1), repeat=n):
        chance = Fraction(1)
        for there, (_, own) in zip(mask, everybody, strict=True):
            chance *= own.availability if there else 1 - own.availability
        moved = sum(
            there * (own.weight if who.averaging == "weights" else Fraction(1, sum(mask))) * d
            for there, (_, own), d in zip(mask, everybody, g.sum(axis=1), strict=True)
            if there
        )
        total -= chance * (x - proof.server_lr * e * moved) ** 2 / e
    budget = proof.bound["heterogeneity"][0] * proof.L**2 / e
    if proof.heterogeneity == "optimum":
        total += budget * box.budgets[0] * (alpha * at**2).sum()
    for i, (c, own) in enumerate(everybody):
        if proof.heterogeneity == "everywhere":
            off = g[i, 0] - (alpha * g[:, 0]).sum()
            square = box.budgets[2 * c] * at[i] ** 2 + box.budgets[2 * c + 1] * off**2
            total += budget * square / own.n_clients
        # Multipliers are those of a group's mean.
        total += conditions(proof, box.pairs[c], x, g[i], at[i]) / own.n_clients
    return total, x, g, at


def conditions(proof: Any, weights: Any, x: Fraction, along: Any, at: Fraction) -> Fraction:
    """Return the weighted sum of one client's conditions."""
    mu, e = proof.mu / proof.L, proof.L * proof.client_lr[0]
    points = [x]
    for gradient in along[:-1]:
        points.append(points[-1] - e * gradient)
    points, seen = [*points, Fraction(0)], [*along, at]
    total = Fraction(0)
    for a, row in enumerate(weights):
        for b, weight in enumerate(row):
            dx, dg = points[a] - points[b], seen[a] - seen[b]
            curved = (dg**2 + mu * dx**2 - 2 * mu * dg * dx) / (2 * (1 - mu))
            total += weight * (seen[b] * dx + curved)
    return total


def check_identity(checker: Checker, text: str, seed: int) -> None:
    """The blocks at means and differences are what the play gives, for any numbers."""
    proof = checker.parsed(text)
    total, x, g, at = played_slack(proof, np.random.default_rng(seed))
    blocks = checker.slack_blocks(proof, proof.boxes[0], proof.client_lr[0])
    own = np.column_stack([g, at])
    means, found, first = [], Fraction(0), 0
    for c, group in enumerate(proof.taking_part.groups):
        members = own[first : first + group.n_clients]
        first += group.n_clients
        means.append(members.sum(axis=0) / group.n_clients)
        for difference in members - means[-1] if group.n_clients > 1 else []:
            block = blocks[f"differences of group {c}"]
            found += form(block, difference) / group.n_clients
    # The first group's mean gradient at x* is what makes F stationary there.
    vector = np.array([x, *means[0][:-1], *np.concatenate(means[1:])], dtype=object)
    assert found + form(blocks["means"], vector) == total


def _times(path: str, factor: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        place, name = path.split(".")
        value = Fraction(document[place][name][0]) * Fraction(factor)
        _set(path, [str(value)])(document)

    return change


def _twice(document: dict[str, Any]) -> None:
    box = document["boxes"][0]
    box["budgets"] = [str(2 * Fraction(part)) for part in box["budgets"]]


def _negative(document: dict[str, Any]) -> None:
    box = document["boxes"][0]
    parts = [Fraction(part) for part in box["budgets"]]
    parts[0], parts[1] = parts[0] - 2, parts[1] + 2
    box["budgets"] = [str(part) for part in parts]


def _many_present(document: dict[str, Any]) -> None:
    """Numbers of clients there that nobody could go over, with targets that add up to one."""
    groups = document["round"]["taking_part"]["groups"]
    for group in groups:
        group["n_clients"], group["target_weight"] = 10**14, f"1/{3 * 10**14}"


WEIGHTS, PRESENT = TEXTS["weights", "everywhere"], TEXTS["present", "everywhere"]
REFUSED = {
    "rate": (WEIGHTS, _times("bound.rate", "9/10"), "negative eigenvalue"),
    "heterogeneity": (PRESENT, _times("bound.heterogeneity", "9/10"), "negative eigenvalue"),
    "rarer": (
        WEIGHTS,
        _set("round.taking_part.groups.2.availability", "1/20"),
        "negative eigenvalue",
    ),
    "certain": (
        WEIGHTS,
        _set("round.taking_part.groups.0.availability", "11/10"),
        "availability: out of",
    ),
    "never": (
        PRESENT,
        _set("round.taking_part.groups.0.availability", "0"),
        "availability: out of range",
    ),
    "weights": (
        WEIGHTS,
        _set("round.taking_part.groups.0.weight", "-1"),
        "groups.weight: out of range",
    ),
    "weights of a mean": (
        PRESENT,
        _set("round.taking_part.groups.0.weight", "2"),
        "groups.weight: out of",
    ),
    "targets": (
        WEIGHTS,
        _set("round.taking_part.groups.0.target_weight", "1/5"),
        "target_weight: out of",
    ),
    "no clients": (
        WEIGHTS,
        _set("round.taking_part.groups.0.n_clients", 0),
        "taking_part.groups: out of range",
    ),
    "memory": (
        WEIGHTS,
        _set("round.taking_part.averaging", "remembered"),
        "averaging: out of range",
    ),
    "nonconvex": (WEIGHTS, _set("class.mu", "-1"), "class.mu: out of range"),
    "heterogeneity of what": (WEIGHTS, _set("class.heterogeneity", "x"), "heterogeneity: out of"),
    "steps": (WEIGHTS, _set("round.local_steps", 50), "taking_part.groups: out of range"),
    "a step back": (
        WEIGHTS,
        _set("boxes.0.client_lr", ["-1/20", "1/9"]),
        "client_lr: must be above",
    ),
    "a gain below zero": (WEIGHTS, _set("round.server_lr", "-1"), "server_lr: out of range"),
    "a number": (WEIGHTS, _set("class.L", 2.5), "numbers must be whole"),
    "an exponent": (WEIGHTS, _set("class.L", "1e99999999"), "class.L: must be a fraction"),
    "twice the budget": (WEIGHTS, _twice, "nor more than one in all"),
    "negative budget": (WEIGHTS, _negative, "must not be negative"),
    "fewer budgets": (WEIGHTS, _set("boxes.0.budgets", ["1"]), "budgets: must be 6 numbers"),
    "fewer pairs": (WEIGHTS, _set("boxes.0.pairs", []), "pairs: must be 3 matrices"),
    "unbalanced": (WEIGHTS, _set("boxes.0.pairs.0.0.1", "9"), "point . of group 0 do not cancel"),
    "a claim below zero": (
        WEIGHTS,
        _set("bound.heterogeneity.0", "-1"),
        "bound.heterogeneity: is less",
    ),
    "another kind": (WEIGHTS, _set("kind", "bound on weighted averaging"), "kind: must be"),
    "another claim": (WEIGHTS, _set("claim", "x"), "claim: must be"),
    "another field": (WEIGHTS, _set("round.p", "1"), "round.p: is not a field"),
    "endless numbers": (PRESENT, _many_present, "at most 200 clients for a mean"),
    "endless digits": (
        PRESENT,
        _set("round.taking_part.groups.0.availability", f"1/{10**30}"),
        "must have fewer digits for a mean",
    ),
}


def check_all(checker: Checker) -> None:
    for text in TEXTS.values():
        check_identity(checker, text, 0)
    for text, change, message in REFUSED.values():
        check_refused_text(checker, text, change, message)


@pytest.mark.parametrize("key", TEXTS)
@pytest.mark.parametrize("seed", range(3))
def test_the_slack_is_what_the_play_gives(key: tuple[str, str], seed: int) -> None:
    check_identity(one_round, TEXTS[key], seed)


@pytest.mark.parametrize("name", REFUSED)
def test_a_certificate_that_was_edited_is_refused(name: str) -> None:
    check_refused_text(one_round, *REFUSED[name])


@pytest.mark.parametrize("text", ["[", "[]", "1", '{"kind": 1, "kind": 2}', "[" * 10**5])
def test_what_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(one_round.ProofError):
        one_round.parsed(text)


MUTATIONS = {
    "F is another": ("[own.share * mean for own, mean", "[mean for own, mean"),
    "nobody pairs with a like": ("(counts[d] - (c == d)) * two", "counts[d] * two"),
    "towards x*": (
        "2 * clients * gain * own.mean, c, start",
        "clients * gain * own.mean, c, start",
    ),
    "weights are sure": ("own.availability * own.weight**2", "own.availability**2 * own.weight**2"),
    "nobody is there": ("is_there / there**2\n", "is_there / there\n"),
    "the law of numbers": ("math.comb(own.n_clients, k)", "1"),
    "pairs of a like": ("Fraction(numbers[d] - (c == d), left)", "Fraction(numbers[d], left)"),
    "availability above one": ("0 < own.availability <= 1", "0 < own.availability <= 2"),
    "never available": ("0 < own.availability <= 1", "0 <= own.availability <= 1"),
    "negative weights": ("own.weight >= 0 for", "own.weight >= -9 for"),
    "a weighted mean": ("own.weight != 1 for", "own.weight < 1 for"),
    "targets need not add up": (
        "own.target_weight for own in groups) == 1",
        "own.target_weight for own in groups) > 0",
    ),
}


@pytest.mark.parametrize("name", a_tenth(MUTATIONS, of=3))
def test_a_checker_that_was_weakened_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = mutant_of(one_round, MUTATIONS[name], monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, KeyError, ValueError)):
        check_all(mutant)


def test_the_work_of_a_mean_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of 2, 1 and 3 send 3 * 2 * 4 numbers."""
    monkeypatch.setattr(one_round, "MOST_NUMBERS", 24)
    one_round.parsed(PRESENT)
    monkeypatch.setattr(one_round, "MOST_NUMBERS", 23)
    one_round.parsed(WEIGHTS)
    with pytest.raises(
        one_round.ProofError, match="at most 23 combinations of numbers of clients present"
    ):
        one_round.parsed(PRESENT)


def test_the_checker_itself_passes_what_catches_mutants() -> None:
    check_all(one_round)
    for text in TEXTS.values():
        one_round.check_proof(one_round.parsed(text))
