"""The record as a whole: one row for each cell of each registered statement."""

from __future__ import annotations

from fltheory import theorems
from fltheory.verify.baseline import Baseline


def test_the_record_has_a_row_for_every_cell_and_no_other(recorded_verdicts: Baseline) -> None:
    cells = {(s.id, s.reading, name) for s in theorems.registered() for name in s.regimes}
    assert set(recorded_verdicts) == cells
