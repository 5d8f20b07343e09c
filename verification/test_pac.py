"""Statements on PAC learnability over their regimes, against the recorded verdicts and ratios."""

from __future__ import annotations

from fltheory.claims.statement import Statement
from fltheory.evidence.verdict import Grade
from fltheory.testing import each_cell
from fltheory.testing.cells import rows_of
from fltheory.testing.pytest_plugin import Recorder
from fltheory.verify.baseline import Baseline

PAPER = "pac"


@each_cell(PAPER)
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    verdict = as_recorded(statement, regime)
    if statement.id.startswith("pac/1"):
        assert verdict.evidence.grade is Grade.RATIONAL


def test_which_readings_are_refuted(recorded_verdicts: Baseline) -> None:
    refuted = {
        (theorem, reading)
        for (theorem, reading, _), row in rows_of(PAPER, recorded_verdicts).items()
        if row.outcome == "REFUTED"
    }
    assert refuted == {
        ("pac/1-equivalence", "same data"),
        ("pac/2", "uniform in Q"),
        ("pac/lemma-1", "any constant"),
        *(
            (name, "printed")
            for name in (
                "pac/1-guessing",
                "pac/1-sum",
                "pac/example",
                "pac/lemma-1",
                "pac/lemma-1-disagreements",
                "pac/lemma-1-errors",
                "pac/lemma-2",
            )
        ),
    }


def test_no_cell_is_undecided(recorded_verdicts: Baseline) -> None:
    outcomes = {row.outcome for row in rows_of(PAPER, recorded_verdicts).values()}
    assert outcomes == {"HOLDS", "REFUTED", "INAPPLICABLE"}
