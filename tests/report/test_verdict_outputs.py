"""The files that verdicts go to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.report.verdict_file import MadeBy
from fltheory.report.verdict_outputs import VerdictOutputs
from fltheory.verify import check_regimes

STATEMENTS = [theorems.get("ca-fed/appendix-e")]


def test_all_formats_are_written_and_told(tmp_path: Path) -> None:
    outputs = VerdictOutputs(tmp_path / "v.json", tmp_path / "v.csv", tmp_path / "v.html")
    told: list[str] = []
    outputs.write(
        STATEMENTS,
        check_regimes(STATEMENTS),
        (),
        MadeBy(0, 2000),
        progress=lambda done, total, what: told.append(f"{done}/{total} {what}"),
    )
    assert len(json.loads((tmp_path / "v.json").read_text())["cells"]) == 5
    assert (tmp_path / "v.csv").read_text().count("\n") == 6
    assert (tmp_path / "v.html").read_text().startswith("<!doctype html>")
    assert told == [f"{i}/3 writing {path}" for i, path in enumerate(outputs.files.values())]


def test_nothing_is_written_unless_asked_for(tmp_path: Path) -> None:
    VerdictOutputs().write(STATEMENTS, [], (), MadeBy(0, 2000))
    assert list(tmp_path.iterdir()) == []


def test_a_format_does_not_overwrite_what_is_none_of_it(tmp_path: Path) -> None:
    """A theorem's own file, say, named where another was meant."""
    with pytest.raises(ValueError, match=r"csv must end in \.csv, got .*mine\.py"):
        VerdictOutputs(csv=tmp_path / "mine.py")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="html must be a file, got the folder"):
        VerdictOutputs(html=tmp_path)
