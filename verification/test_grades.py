"""The number of enclosed cells in the record, which must not fall unnoticed."""

from __future__ import annotations

from collections import Counter

import pytest

from fltheory.verify.baseline import Baseline

ENCLOSED = {
    "sa-fl": 135,
    "scaffold": 162,
    "lemmas": 70,
    "ca-fed": 57,
    "fedau": 44,
    "fedar": 12,
}


@pytest.mark.parametrize("paper", ENCLOSED)
def test_as_many_cells_are_enclosed_as_ever(paper: str, recorded_verdicts: Baseline) -> None:
    grades = Counter(
        row.evidence for key, row in recorded_verdicts.items() if key[0].startswith(paper)
    )
    assert grades["exact"] >= ENCLOSED[paper]
