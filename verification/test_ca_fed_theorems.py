"""CA-Fed's statements over their regimes, against the recorded verdicts and ratios."""

from __future__ import annotations

from recorded_cells import PaperCells, Recorder

from fltheory.theorems import Statement
from fltheory.verify.baseline import Baseline

CELLS = PaperCells("ca-fed")


@CELLS.each
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    as_recorded(CELLS, statement, regime)


def test_a_derived_reading_is_never_refuted(record: Baseline) -> None:
    outcomes = {
        (theorem, row.outcome)
        for (theorem, reading, _), row in CELLS.rows(record).items()
        if reading == "derived"
    }
    assert {theorem for theorem, _ in outcomes} == {
        s.id for s in CELLS.statements if s.reading == "derived"
    }
    assert "REFUTED" not in {outcome for _, outcome in outcomes}


def test_decompositions_hold_everywhere(record: Baseline) -> None:
    """Theorems 1 and 3 are proved in full, and met by every regime."""
    outcomes = [r.outcome for key, r in record.items() if key[0] in ("ca-fed/1", "ca-fed/3")]
    assert outcomes
    assert set(outcomes) == {"HOLDS"}
