"""The measure of the search: known faults are found, true statements are not called false."""

from __future__ import annotations

import pytest

from docs.scripts.power import (
    BY_SEARCH,
    Judged,
    PowerPlan,
    judged,
    keys,
    mutated_theorems,
)
from fltheory.theorems import Theorem, get
from fltheory.verify.search.mutants import mutants

NAME = ("sa-fl/5", "derived")


def key_of(about: str) -> tuple[str, str, int]:
    theorem = get(*NAME)
    assert isinstance(theorem, Theorem)
    return (*NAME, [mutant.about for mutant in mutants(theorem)].index(about))


def test_every_theorem_has_mutants_in_its_derived_reading() -> None:
    chosen = mutated_theorems()
    assert {theorem.id for theorem in chosen} == {"sa-fl/4", "sa-fl-submission/4", "sa-fl/5"}
    assert {theorem.reading for theorem in chosen} == {"derived"}
    everything = keys(chosen, PowerPlan())
    assert len(everything) == sum(len(mutants(theorem)) for theorem in chosen)
    assert keys(chosen, PowerPlan(every=7)) == everything[::7]


def test_a_bound_without_its_start_is_found_false() -> None:
    """With R = 1 the truth can be all of the start's term, so half of it is too little."""
    found = judged(key_of("few client rounds: dropped"), PowerPlan(budget=2000))
    assert found.refuted_by == BY_SEARCH
    assert found.is_found
    assert found.is_false
    assert 0 < found.settings_tried < 2000


def test_a_weaker_statement_is_not_called_false() -> None:
    """Halving -etabar makes (1 - etabar)^R larger, so the bound weaker than a true one."""
    found = judged(key_of("bound: -etabar / 2, in 1 - etabar"), PowerPlan(budget=100))
    assert not found.is_false
    assert not found.is_found
    assert found.settings_tried == 100


def test_what_the_search_misses_may_fall_to_a_regime() -> None:
    found = judged(key_of("few client rounds: 4*G_4*q/mu / 100"), PowerPlan(budget=60))
    assert found.is_false
    assert not found.is_found
    assert found.refuted_by.startswith("regime ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0}, "budget must be a whole number of at least 1"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"every": 0}, "every must be a whole number of at least 1"),
    ],
)
def test_bad_plans(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PowerPlan(**arguments)


def test_a_result_says_where_it_belongs() -> None:
    result = Judged("t", "derived", 3, "sign", "", 10)
    assert result.key == ("t", "derived", 3)
