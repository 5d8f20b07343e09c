"""Repaired statements through the search."""

from __future__ import annotations

import pytest

from fltheory import theorems
from fltheory.verify import certificate
from fltheory.verify.search.falsification import survival

STEPS, PRICE = "(75), (78)", "(78), (81)"


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(1500, [STEPS]), pytest.param(10_000, [STEPS, PRICE], marks=pytest.mark.soundness)],
)
def test_the_repaired_theorem_5_survives_and_needs_small_steps_and_the_price_in_its_bound(
    budget: int, expected: list[str]
) -> None:
    """That the price is needed takes a longer search to find."""
    calls: list[tuple[int, int, str]] = []
    theorem = theorems.get("sa-fl/5", "repaired")
    found = survival(theorem, budget=budget, progress=lambda *call: calls.append(call))
    assert found.search.witness is None
    assert found.search.settings_tried == budget
    assert found.search.settings_applicable > 0
    assert [mend.source for mend in found.needed] == expected
    assert theorem.repair is not None
    for mend, refuted in found.without:
        if mend in found.needed:
            assert refuted.witness is not None
            assert certificate(theorem.repair.without(mend), refuted.witness)["setting"]
    assert calls[-1][:2] == (4 * budget, 4 * budget)
    assert [done for done, _, _ in calls] == list(range(250, 4 * budget + 1, 250))


@pytest.mark.parametrize("name", [("sa-fl/5", "printed"), ("sa-fl/corollary-1", "derived")])
def test_only_repaired_readings(name: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="theorem must be a repaired reading, got sa-fl"):
        survival(theorems.get(*name))
