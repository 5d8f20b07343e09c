"""Statements on PAC learnability over their regimes, against the recorded verdicts and ratios."""

from __future__ import annotations

import pytest

from fltheory import theorems
from fltheory.theorems import Statement
from fltheory.verify import Cell, Grade, check, departure
from fltheory.verify.baseline import Baseline
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY, shared_settings_together

STATEMENTS = [s for s in theorems.registered() if s.id.startswith("pac/")]
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
    if statement.id.startswith("pac/1"):
        assert verdict.evidence.grade is Grade.RATIONAL
    if not updating:
        message = departure(cell, baseline)
        assert message is None, message


def test_every_recorded_cell_exists(baseline: Baseline) -> None:
    existing = {(s.id, s.reading, name) for s, name in CELLS}
    assert {key for key in baseline if key[0].startswith("pac/")} <= existing


def test_only_printed_readings_are_refuted(baseline: Baseline, updating: bool) -> None:
    if updating:
        pytest.skip("the record is being renewed")
    refuted = {
        (theorem, reading)
        for (theorem, reading, _), record in baseline.items()
        if theorem.startswith("pac/") and record.outcome == "REFUTED"
    }
    assert refuted == {
        (name, "printed")
        for name in (
            "pac/1-equivalence",
            "pac/1-guessing",
            "pac/1-sum",
            "pac/2",
            "pac/example",
            "pac/lemma-1",
            "pac/lemma-2",
        )
    }


def test_no_cell_is_undecided(baseline: Baseline, updating: bool) -> None:
    if updating:
        pytest.skip("the record is being renewed")
    outcomes = {r.outcome for key, r in baseline.items() if key[0].startswith("pac/")}
    assert outcomes == {"HOLDS", "REFUTED", "INAPPLICABLE"}
