"""Recorded verdicts: round trip, departures, damaged files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fltheory.evidence.verdict import Grade
from fltheory.verify import Outcome
from fltheory.verify.baseline import (
    Baseline,
    departure,
    read_baseline,
    verdict_changed,
    write_baseline,
)
from fltheory.verify.runs import Cell
from tests.verify.cells import cell


def recorded(*cells: Cell) -> Baseline:
    return {item.key: item.record for item in cells}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "baseline.csv"


def test_what_is_written_is_read(path: Path) -> None:
    cells = [
        cell(),
        cell(Outcome.REFUTED, truth=3.0, regime="rough"),
        cell(Outcome.INAPPLICABLE, truth=math.inf, bound=math.inf, regime="wild, with a comma"),
    ]
    write_baseline(path, recorded(*cells))
    found = read_baseline(path)
    assert all(departure(item, found) is None for item in cells)
    assert found["t/1", "printed", "rough"].outcome == "REFUTED"
    assert found["t/1", "printed", "rough"].ratio == 1.5


def test_other_records_are_kept(path: Path) -> None:
    write_baseline(path, recorded(cell(), cell(regime="rough")))
    write_baseline(path, {**read_baseline(path), **recorded(cell(truth=0.5))})
    ratios = {key[2]: record.ratio for key, record in read_baseline(path).items()}
    assert ratios == {"calm": 0.25, "rough": 0.5}


def test_a_changed_verdict_is_told_with_both_ratios(path: Path) -> None:
    write_baseline(path, recorded(cell()))
    now = cell(Outcome.REFUTED, truth=3.0)
    message = departure(now, read_baseline(path))
    assert message is not None
    assert "t/1 / printed / calm" in message
    assert "from HOLDS to REFUTED" in message
    assert "from 0.5 to 1.5" in message
    assert verdict_changed(now, read_baseline(path))


@pytest.mark.parametrize(("drift", "departs"), [(1e-8, False), (1e-5, True)])
def test_a_drifting_ratio_is_told_by_how_much(path: Path, drift: float, departs: bool) -> None:
    write_baseline(path, recorded(cell()))
    now = cell(truth=1 + drift)
    message = departure(now, read_baseline(path))
    assert (message is not None) == departs
    if message:
        assert "by 1e-05 of its size (allowed: 1e-06)" in message
    assert not verdict_changed(now, read_baseline(path))


def test_a_changed_grade_of_evidence_is_told(path: Path) -> None:
    write_baseline(path, recorded(cell()))
    message = departure(cell(grade=Grade.FLOAT64), read_baseline(path))
    assert message == "t/1 / printed / calm: the evidence changed from exact to float64"


def test_a_record_without_evidence_is_compared_without(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("theorem,reading,regime,outcome,ratio\nt/1,printed,calm,HOLDS,0.5\n")
    assert departure(cell(grade=Grade.FLOAT64), read_baseline(path)) is None


@pytest.mark.parametrize(("drift", "departs"), [(0.1, False), (0.3, True)])
def test_a_sampled_ratio_may_drift_within_its_interval(
    path: Path, drift: float, departs: bool
) -> None:
    write_baseline(path, recorded(cell(grade=Grade.STATISTICAL)))
    now = cell(truth=1 + drift, grade=Grade.STATISTICAL, error=0.1)
    assert (departure(now, read_baseline(path)) is not None) == departs


def test_a_finite_ratio_never_matches_an_infinite_one(path: Path) -> None:
    write_baseline(path, recorded(cell()))
    assert departure(cell(truth=math.inf), read_baseline(path)) is not None


def test_an_unrecorded_cell_is_told_but_is_no_change(path: Path) -> None:
    write_baseline(path, recorded(cell()))
    new = cell(regime="new")
    assert departure(new, read_baseline(path)) == "t/1 / printed / new: not recorded"
    assert not verdict_changed(new, read_baseline(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("theorem,regime\n", "the header must be theorem,reading,regime,outcome,ratio"),
        ("theorem,reading,regime,outcome,ratio\na,b,c,HOLDS,1\na,b,HOLDS,1\n", "line 3"),
        ("theorem,reading,regime,outcome,ratio\na,b,c,HOLDS,many\n", "line 2"),
        ("", "the header must be"),
    ],
)
def test_a_damaged_file_names_the_place(tmp_path: Path, text: str, message: str) -> None:
    damaged = tmp_path / "baseline.csv"
    damaged.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_baseline(damaged)
