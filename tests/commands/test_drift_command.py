"""fltheory drift: table, line and figure."""

from __future__ import annotations

from pathlib import Path


def test_the_table_is_shown_and_the_figure_written(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "drift.svg"
    status, out, _ = fltheory_command("drift")
    assert status == 0
    assert "5 could be 1.13 and 30 could be 2.27" in out
    assert fltheory_command("drift", "--out", path) == (0, f"{out}written to {path}\n", "")
    assert path.read_text().startswith("<?xml")
