"""SA-FL's theorems over their regimes, against the recorded verdicts and ratios."""

from __future__ import annotations

import pytest
from recorded_cells import PaperCells, Recorder

from fltheory.theorems import Statement
from fltheory.verify.baseline import Baseline

CELLS = PaperCells("sa-fl")


@CELLS.each
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    as_recorded(CELLS, statement, regime)


@pytest.mark.parametrize("identifier", sorted({s.id for s in CELLS.statements}))
def test_a_derived_reading_is_never_refuted(identifier: str, record: Baseline) -> None:
    outcomes = {
        row.outcome
        for (theorem, reading, _), row in record.items()
        if theorem == identifier and reading == "derived"
    }
    assert outcomes
    assert "REFUTED" not in outcomes
