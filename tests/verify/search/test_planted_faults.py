"""A share of the planted faults: the search finds those that are known to be false.

One mutant of 20, each with a fifth of the default budget. `fltheory reproduce power` judges
all of them.
"""

from __future__ import annotations

from fltheory.reproduce.power import Plan, judge_all, keys, mutated_theorems

PLAN = Plan(budget=2000, every=20)


def test_the_search_finds_planted_faults() -> None:
    chosen = keys(mutated_theorems(), PLAN)
    results = list(judge_all(chosen, PLAN, processes=1))
    assert len(results) == len(chosen) >= 15
    known_false = [result for result in results if result.is_false]
    missed = [f"{r.theorem}: {r.about} ({r.refuted_by})" for r in known_false if not r.is_found]
    assert len(known_false) >= 4
    assert len(missed) <= len(known_false) / 5, missed
