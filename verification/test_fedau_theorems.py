"""FedAU's statements over their regimes, against the recorded verdicts and ratios."""

from __future__ import annotations

import math

import pytest

from fltheory import theorems
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff
from fltheory.theorems import Statement
from fltheory.verify import Cell, Outcome, check, departure
from fltheory.verify.baseline import Baseline
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY, shared_settings_together

STATEMENTS = [s for s in theorems.registered() if s.id.startswith("fedau")]
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
    setting = statement.regimes[regime].setting
    verdict = check(statement, setting, error_probability=FAMILY_ERROR_PROBABILITY / len(CELLS))
    cell = Cell(regime, verdict)
    checked_cells.append(cell)
    if not isinstance(setting.participation, Bernoulli):
        assert verdict.outcome is Outcome.INAPPLICABLE
        assert verdict.failed[0].name == "participation independent of the past"
        assert math.isfinite(verdict.truth)
    if not updating:
        message = departure(cell, baseline)
        assert message is None, message


def test_every_recorded_cell_exists(baseline: Baseline) -> None:
    existing = {(s.id, s.reading, name) for s, name in CELLS}
    assert {key for key in baseline if key[0].startswith("fedau")} <= existing


@pytest.mark.parametrize("statement", STATEMENTS, ids=[f"{s.id}-{s.reading}" for s in STATEMENTS])
def test_every_statement_is_checked_under_all_three_kinds_of_participation(
    statement: Statement,
) -> None:
    kinds = {type(regime.setting.participation) for regime in statement.regimes.values()}
    assert kinds == {Bernoulli, MarkovOnOff, Cyclic}


def test_a_derived_reading_is_never_refuted(baseline: Baseline, updating: bool) -> None:
    if updating:
        pytest.skip("the record is being renewed")
    outcomes = {
        (theorem, record.outcome)
        for (theorem, reading, _), record in baseline.items()
        if theorem.startswith("fedau") and reading == "derived"
    }
    held = {theorem for theorem, outcome in outcomes if outcome == "HOLDS"}
    assert held == {s.id for s in STATEMENTS if s.reading == "derived"}
    assert {outcome for _, outcome in outcomes} == {"HOLDS", "INAPPLICABLE"}


def test_without_independent_rounds_theorem_3_would_be_wrong(
    baseline: Baseline, updating: bool
) -> None:
    if updating:
        pytest.skip("the record is being renewed")
    for regime in ("Markov", "slow Markov", "cyclic"):
        record = baseline["fedau/3", "derived", regime]
        assert record.outcome == "INAPPLICABLE"
        assert record.ratio > 1
