"""Kinds of sentences, and what a fault must say of itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fltheory import theorems
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.theorems.registry import ids
from tests.theorems import own

FAULT = Refutation("(3) needs K > 1, as in Eq. (2).", Weight.GAP, "K > 1", regimes=("usual",))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"why": ""}, "why of a refutation must be a non-empty string, got ''"),
        (
            {"why": "No full stop"},
            "why of a refutation must be one to three sentences with full stops",
        ),
        ({"why": "One. Two. Three. Four."}, "why of a refutation must be one to three sentences"),
        ({"weight": "gap"}, "weight of a refutation must be a Weight, got 'gap'"),
        ({"change": " "}, "change of a refutation must be a non-empty string, got ' '"),
        ({"reading": None}, "reading of a refutation must be a string, got None"),
        ({"regimes": "usual"}, "regimes of a refutation must be a tuple of str, got 'usual'"),
        ({"natural": 1}, "natural of a refutation must be a string, got 1"),
        (
            {"natural": "usual", "certificates": ("one.json",)},
            "natural of a refutation must be empty if certificates are kept",
        ),
        ({"regimes": ()}, "regimes or certificates of a refutation must name its evidence"),
    ],
)
def test_a_fault_says_why_and_what_mends_it(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(FAULT, **changed)


def test_what_mends_a_statement_is_another_reading() -> None:
    assert replace(own.TRUE, refutations=(FAULT,)).refutations == (FAULT,)
    with pytest.raises(ValueError, match="must differ from its own"):
        replace(own.TRUE, refutations=(replace(FAULT, reading=own.TRUE.reading),))
    with pytest.raises(ValueError, match=r"regimes of a refutation of .* must be among its own"):
        replace(own.TRUE, refutations=(replace(FAULT, regimes=("unusual",)),))
    with pytest.raises(ValueError, match=r"kind of .* must be StatementKind, got 'theorem'"):
        replace(own.TRUE, kind="theorem")


def test_only_results_of_a_paper_count_as_theorems() -> None:
    results = {kind for kind in StatementKind if kind.is_result}
    assert {str(kind) for kind in results} == {"theorem", "corollary", "lemma"}
    of = {identifier: theorems.get(identifier).kind for identifier in ids()}
    assert of["fedar/assumption-7"] is StatementKind.ASSUMPTION
    assert of["pac/1-guessing"] is of["pac/1-equivalence"] is StatementKind.SKETCH
    assert of["fedau/3-step"] is of["pac/1-sum"] is StatementKind.STEP
    assert of["fedar/number-of-clients"] is of["pac/remark-2"] is StatementKind.REMARK
    assert of["sa-fl/corollary-1"] is StatementKind.COROLLARY


def test_the_heaviest_weight_is_the_last() -> None:
    assert Weight.heaviest(Weight) is Weight.GAP
    assert [weight.label for weight in Weight] == [
        "wording",
        "misprint",
        "missing hypothesis",
        "gap",
    ]
    assert FAULT.fixed_by == "K > 1"
    assert replace(FAULT, reading="derived").fixed_by == "K > 1 (the derived reading)"


def test_a_natural_witness_is_a_certificate_a_regime_or_a_sentence() -> None:
    assert FAULT.natural_witness == ""
    assert replace(FAULT, natural="usual").natural_witness == "regime 'usual'"
    assert replace(FAULT, natural="none found in 9").natural_witness == "none found in 9"
    assert replace(FAULT, certificates=("a.json", "b.json")).natural_witness == "a.json, b.json"
