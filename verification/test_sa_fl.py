"""SA-FL's theorems over their regimes, against the recorded verdicts and ratios."""

from __future__ import annotations

import pytest

from fltheory.claims.statement import Statement
from fltheory.testing import each_cell
from fltheory.testing.pytest_plugin import Recorder
from fltheory.theorems import registered
from fltheory.verify.baseline import Baseline

PAPERS = ("sa-fl", "sa-fl-submission")


@each_cell(*PAPERS)
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    as_recorded(statement, regime)


@pytest.mark.parametrize(
    "identifier", sorted({s.id for s in registered(*PAPERS) if s.reading == "derived"})
)
def test_a_derived_reading_is_never_refuted(identifier: str, recorded_verdicts: Baseline) -> None:
    outcomes = {
        row.outcome
        for (theorem, reading, _), row in recorded_verdicts.items()
        if theorem == identifier and reading == "derived"
    }
    assert outcomes
    assert "REFUTED" not in outcomes
