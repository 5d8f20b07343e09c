"""CA-Fed's statements over their regimes, against the recorded verdicts and ratios."""

from __future__ import annotations

import pytest

from fltheory import theorems
from fltheory.theorems import Statement
from fltheory.verify import Cell, check, departure
from fltheory.verify.baseline import Baseline
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY, shared_settings_together

STATEMENTS = [s for s in theorems.registered() if s.id.startswith("ca-fed")]
CELLS = shared_settings_together([(s, name) for s in STATEMENTS for name in s.regimes])


@pytest.mark.parametrize(
    ("statement", "regime"), CELLS, ids=[f"{s.id}-{s.reading}-{name}" for s, name in CELLS]
)
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement,
    regime: str,
    baseline: Baseline,
    checked_cells: list[Cell],
    updating: bool,
) -> None:
    verdict = check(
        statement,
        statement.regimes[regime].setting,
        error_probability=FAMILY_ERROR_PROBABILITY / len(CELLS),
    )
    cell = Cell(regime, verdict)
    checked_cells.append(cell)
    if not updating:
        message = departure(cell, baseline)
        assert message is None, message


def test_every_recorded_cell_exists(baseline: Baseline) -> None:
    existing = {(s.id, s.reading, name) for s, name in CELLS}
    assert {key for key in baseline if key[0].startswith("ca-fed")} <= existing


def test_a_derived_reading_is_never_refuted(baseline: Baseline, updating: bool) -> None:
    if updating:
        pytest.skip("the record is being renewed")
    outcomes = {
        (theorem, record.outcome)
        for (theorem, reading, _), record in baseline.items()
        if theorem.startswith("ca-fed") and reading == "derived"
    }
    assert {theorem for theorem, _ in outcomes} == {
        s.id for s in STATEMENTS if s.reading == "derived"
    }
    assert "REFUTED" not in {outcome for _, outcome in outcomes}


def test_decompositions_hold_everywhere(baseline: Baseline, updating: bool) -> None:
    """Theorems 1 and 3 are proved in full, and met by every regime."""
    if updating:
        pytest.skip("the record is being renewed")
    outcomes = [r.outcome for key, r in baseline.items() if key[0] in ("ca-fed/1", "ca-fed/3")]
    assert outcomes
    assert set(outcomes) == {"HOLDS"}
