"""Witnesses that a referee believes: found for the faults that have any, and no others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from fltheory import theorems
from fltheory.grammar.refutation import Mend
from fltheory.theorems.sa_fl.statements import FAULTS
from fltheory.verify import Outcome, check
from fltheory.verify.safari.coin_paths import holds_on_every_path
from fltheory.verify.safari.natural_witness import NaturalWitness, natural_witnesses, preferred

BUDGET = 1000


@cache
def found(identifier: str, budget: int = BUDGET) -> tuple[NaturalWitness, ...]:
    return natural_witnesses(theorems.get(identifier), budget)


@pytest.mark.parametrize(
    ("budget", "applicable"), [(BUDGET, 0), pytest.param(2000, 100, marks=pytest.mark.soundness)]
)
def test_theorem_5_falls_by_the_unit_of_its_condition_alone(budget: int, applicable: int) -> None:
    """On every path, refuted as printed and with the two other faults mended."""
    by_source = {one.fault.source: one for one in found("sa-fl/5", budget)}
    assert [source for source, one in by_source.items() if one.witness] == ["(81)"]
    assert all(one.tried == budget and one.applicable > applicable for one in by_source.values())
    one = by_source["(81)"]
    assert one.on_every_path
    assert one.witness is not None
    assert one.witness == preferred(found("sa-fl/5", budget))
    setting = one.witness.setting()
    assert check(theorems.get("sa-fl/5"), setting).outcome is Outcome.REFUTED
    assert check(FAULTS["sa-fl/5"].without(one.fault), setting).outcome is Outcome.REFUTED
    assert (
        check(FAULTS["sa-fl/5"].build(**one.fault.changes), setting).outcome is Outcome.INAPPLICABLE
    )
    assert holds_on_every_path(theorems.get("sa-fl/5"), one.witness)
    assert "on every path of the coin tosses" in one.line
    assert (
        f"met every hypothesis; {budget} settings tried, with 4 to 10 clients"
        in by_source["(80)"].line
    )


def test_a_condition_met_by_accident_witnesses_nothing() -> None:
    """The submission has minima, and larger steps than (45) allows turn its denominator around."""
    assert [one.witness for one in found("sa-fl-submission/4")] == [None] * 3
    assert all(one.applicable > 0 for one in found("sa-fl-submission/4"))


def test_a_fault_on_every_path_is_preferred_then_the_graver_one() -> None:
    step, _, _, maxima = FAULTS["sa-fl/4"].mends
    (shown,) = {one.witness for one in found("sa-fl/4") if one.witness}

    def one(mend: Mend, rounds: int, *, on_every_path: bool) -> NaturalWitness:
        witness = replace(shown, rounds=rounds)
        return NaturalWitness(mend, witness, on_every_path, 1, 1, 1)

    light, grave = one(step, 100, on_every_path=False), one(maxima, 200, on_every_path=False)
    assert preferred((light, grave)) == grave.witness
    sure = one(step, 300, on_every_path=True)
    assert preferred((light, grave, sure)) == sure.witness


def test_the_same_seed_finds_the_same() -> None:
    theorem = theorems.get("sa-fl-submission/4")
    assert natural_witnesses(theorem, 300, 1) == natural_witnesses(theorem, 300, 1)


@pytest.mark.parametrize("name", [("sa-fl/5", "derived"), ("ca-fed/2", "printed")])
def test_only_printed_statements_whose_faults_are_known(name: tuple[str, str]) -> None:
    assert natural_witnesses(theorems.get(*name)) == ()
    assert preferred(()) is None
