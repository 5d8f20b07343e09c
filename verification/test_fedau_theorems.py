"""FedAU's statements over their regimes, against the recorded verdicts and ratios."""

from __future__ import annotations

import math

import pytest

from fltheory.claims.statement import Statement
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff
from fltheory.testing import each_cell
from fltheory.testing.cells import rows_of
from fltheory.testing.pytest_plugin import Recorder
from fltheory.theorems import registered
from fltheory.verify import Outcome
from fltheory.verify.baseline import Baseline

PAPER = "fedau"


@each_cell(PAPER)
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    verdict = as_recorded(statement, regime)
    if not isinstance(statement.regimes[regime].setting.participation, Bernoulli):
        assert verdict.outcome is Outcome.INAPPLICABLE
        assert verdict.failed[0].name == "participation independent of the past"
        assert math.isfinite(verdict.truth)


@pytest.mark.parametrize(
    "statement", registered(PAPER), ids=[f"{s.id}-{s.reading}" for s in registered(PAPER)]
)
def test_every_statement_is_checked_under_all_three_kinds_of_participation(
    statement: Statement,
) -> None:
    kinds = {type(regime.setting.participation) for regime in statement.regimes.values()}
    assert kinds == {Bernoulli, MarkovOnOff, Cyclic}


def test_a_derived_reading_is_never_refuted(recorded_verdicts: Baseline) -> None:
    outcomes = {
        (theorem, row.outcome)
        for (theorem, reading, _), row in rows_of(PAPER, recorded_verdicts).items()
        if reading == "derived"
    }
    held = {theorem for theorem, outcome in outcomes if outcome == "HOLDS"}
    assert held == {s.id for s in registered(PAPER) if s.reading == "derived"}
    assert {outcome for _, outcome in outcomes} <= {"HOLDS", "INAPPLICABLE"}


def test_without_independent_rounds_theorem_3_would_be_wrong(recorded_verdicts: Baseline) -> None:
    for regime in ("Markov", "slow Markov", "cyclic"):
        row = recorded_verdicts["fedau/3", "derived", regime]
        assert row.outcome == "INAPPLICABLE"
        assert row.ratio > 1
