"""The page of the search's power, and the file it resumes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.scripts.power import (
    JUDGED,
    Judged,
    PowerPlan,
    power_page,
    power_summary,
)

RESULTS = [
    Judged("t/1", "derived", 0, "sign of x", "search", 250),
    Judged("t/1", "derived", 1, "x / 2", "regime 'calm'", 500),
    Judged("t/1", "derived", 2, "x / 10", "search", 250),
    Judged("t/2", "derived", 0, "h: dropped", "", 500),
]


def test_shares_count_false_mutants_only() -> None:
    assert power_summary(RESULTS) == ("4 mutants, 3 of them known to be false, 2 found (66.7%)")
    assert power_summary(RESULTS[3:]) == "1 mutants, 0 of them known to be false, 0 found"


def test_page() -> None:
    page = power_page(RESULTS, PowerPlan(500, 0, 2))
    assert "One mutant of 2; budget 500 settings per search, seed 0" in page
    assert "| t/1 | 3 | 3 | 2 | 66.7% |" in page
    assert "| t/2 | 1 | 0 | 0 | none false |" in page
    assert "- t/1: `x / 2` (refuted by regime 'calm')" in page
    assert "h: dropped" not in page
    assert power_page(RESULTS[:1], PowerPlan()).endswith("None.\n")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path, plan = tmp_path / "deep" / "power.json", PowerPlan(500, 1, 2)
    assert JUDGED.read(path, plan) == []
    JUDGED.write(path, RESULTS, plan)
    assert JUDGED.read(path, plan) == RESULTS
    assert [entry.name for entry in path.parent.iterdir()] == ["power.json"]


def test_another_plan_or_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "power.json"
    JUDGED.write(path, RESULTS, PowerPlan(500))
    with pytest.raises(ValueError, match=r"out must hold results of the plan .*budget=100"):
        JUDGED.read(path, PowerPlan(100))
    document = json.loads(path.read_text())
    for damaged in ("{", json.dumps([]), json.dumps({**document, "judged": [{"about": "x"}]})):
        path.write_text(damaged)
        with pytest.raises(ValueError, match="out must be a file that power wrote"):
            JUDGED.read(path, PowerPlan(500))
