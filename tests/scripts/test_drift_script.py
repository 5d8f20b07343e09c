"""docs/scripts/drift.py: table, line and figure."""

from __future__ import annotations

from pathlib import Path


def test_the_table_is_shown_and_the_figure_written(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "drift.svg"
    status, out, _ = fltheory_command("drift.py")
    assert status == 0
    assert "5 could be 1.13 and 30 could be 2.27" in out
    written = fltheory_command("drift.py", "--out", path)
    assert written == (0, f"{out}written to {path}\n", "")
    assert path.read_text().startswith("<?xml")


def test_a_wrong_ending_is_refused_before_the_table(fltheory_command, tmp_path: Path) -> None:
    status, out, err = fltheory_command("drift.py", "--out", tmp_path / "drift.pdf")
    assert (status, out) == (2, "")
    assert "out must end in .png or .svg" in err
