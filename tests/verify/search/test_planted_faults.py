"""A share of the planted faults: the search finds those that are known to be false.

One mutant of 120, each with a fifth of the default budget, and in `make soundness` one of 20.
`python docs/scripts/power.py` judges all of them.
"""

from __future__ import annotations

import pytest

from docs.scripts.power import PowerPlan, judged, keys, mutated_theorems


@pytest.mark.parametrize("every", [120, pytest.param(20, marks=pytest.mark.soundness)])
def test_the_search_finds_planted_faults(every: int) -> None:
    plan = PowerPlan(budget=2000, every=every)
    chosen = keys(mutated_theorems(), plan)
    results = [judged(key, plan) for key in chosen]
    assert len(results) == len(chosen) >= 300 // every
    known_false = [result for result in results if result.is_false]
    missed = [f"{r.theorem}: {r.about} ({r.refuted_by})" for r in known_false if not r.is_found]
    assert len(known_false) >= 80 / every
    assert len(missed) <= len(known_false) / 5, missed
