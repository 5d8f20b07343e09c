"""CA-Fed's statements over their regimes, against the recorded verdicts and ratios."""

from __future__ import annotations

from fltheory.claims.statement import Statement
from fltheory.testing import each_cell
from fltheory.testing.cells import rows_of
from fltheory.testing.pytest_plugin import Recorder
from fltheory.theorems import registered
from fltheory.verify.baseline import Baseline

PAPER = "ca-fed"


@each_cell(PAPER)
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    as_recorded(statement, regime)


def test_a_derived_reading_is_never_refuted(recorded_verdicts: Baseline) -> None:
    outcomes = {
        (theorem, row.outcome)
        for (theorem, reading, _), row in rows_of(PAPER, recorded_verdicts).items()
        if reading == "derived"
    }
    assert {theorem for theorem, _ in outcomes} == {
        s.id for s in registered(PAPER) if s.reading == "derived"
    }
    assert "REFUTED" not in {outcome for _, outcome in outcomes}


def test_decompositions_hold_everywhere(recorded_verdicts: Baseline) -> None:
    """Theorems 1 and 3 are proved in full, and met by every regime."""
    outcomes = [
        r.outcome for key, r in recorded_verdicts.items() if key[0] in ("ca-fed/1", "ca-fed/3")
    ]
    assert outcomes
    assert set(outcomes) == {"HOLDS"}
