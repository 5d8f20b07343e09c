"""Proofs of gaps, and of runs that meet a hypothesis: judged alike by a second derivation."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any

import pytest

from fltheory import theorems
from fltheory.worst_case import ClientClass, SafariRound, audit, certificate
from fltheory.worst_case.checker import kernel, one_round
from fltheory.worst_case.rounds.bound import best_bound_of
from fltheory.worst_case.rounds.measure import Gap
from tests.worst_case.enumerated_round import is_proved
from tests.worst_case.settings import a_round


def _of_gap() -> str:
    played = a_round(3, 1, 2, 2, "1/2", "1/10", "1/7", "3/2")
    return certificate(best_bound_of(played, ClientClass(2, "0.2"), None, Gap())).text


def _of_hypothesis() -> str:
    """SA-FL's Theorem 5 with an excluded client, for runs that meet its condition on q."""
    theorem: Any = theorems.get("sa-fl/5", "derived")
    sizes = {"eligible": 2, "excluded": 1, "participants": 1, "local_steps": 2}
    played = SafariRound(**sizes, q="1/10", client_lr="1/40")
    found = audit(theorem, ClientClass(1, "0.1", "everywhere"), played).all_rounds
    assert found.given
    assert found.certificate is not None
    return found.certificate.text


def _is_accepted(text: str) -> bool:
    try:
        one_round.checked(text)
    except kernel.ProofError:
        return False
    return True


@pytest.mark.parametrize("make", [_of_gap, _of_hypothesis])
def test_a_second_derivation_judges_changed_certificates_alike(make: Any) -> None:
    """All vectors of all clients and every set of participants: no symmetry, no moments."""
    good = make()
    assert _is_accepted(good)
    assert is_proved(good)
    draw, verdicts = random.Random(3), set()
    for path in _places(json.loads(good)):
        document = json.loads(good)
        *way, last = path
        place = document
        for name in way:
            place = place[name]
        old = Fraction(place[last])
        place[last] = str(old * draw.choice([Fraction(9, 10), Fraction(11, 10)]) or Fraction(1, 9))
        text = json.dumps(document)
        assert is_proved(text) == _is_accepted(text)
        verdicts.add(_is_accepted(text))
    assert verdicts == {True, False}


@pytest.mark.parametrize("name", ["gradient", "moved", "heterogeneity"])
def test_what_is_supposed_helps_as_far_as_the_second_derivation_says(name: str) -> None:
    """Both refuse it from the same number on, found by bisection."""
    good = _of_hypothesis()

    def with_more(more: Fraction) -> str:
        document = json.loads(good)
        document["given"][name] = str(Fraction(document["given"][name]) - more)
        return json.dumps(document)

    low, high = Fraction(0), Fraction(10**6)
    assert not is_proved(with_more(high))
    while high - low > Fraction(1, 10**6) * high:
        middle = (low + high) / 2
        low, high = (middle, high) if is_proved(with_more(middle)) else (low, middle)
    assert _is_accepted(with_more(low))
    assert not _is_accepted(with_more(high))


def _places(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    (box,) = document["boxes"]
    rows = [
        ("boxes", 0, "pairs", group, a, b)
        for group, matrix in enumerate(box["pairs"])
        for a, row in enumerate(matrix)
        for b in range(len(row))
        if a != b
    ]
    bound = [("bound", name, 0) for name in document["bound"]]
    given = [("given", name) for name in document["given"] or ()]
    return [*rows, *bound, *given, ("boxes", 0, "budgets", 0), ("class", "mu"), ("round", "q")]
