"""The drift map's table, line and figure."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from docs.scripts.drift import drift_figure, drift_summary, drift_table
from fltheory.report.figures.figure_axes import write_figure


def test_table_has_the_least_constants() -> None:
    console = Console(width=160)
    with console.capture() as capture:
        console.print(drift_table())
    lines = capture.get().splitlines()
    row = next(line for line in lines if line.split()[1:2] == ["2"])
    # K = 2: (1 + (1 + s/2)^2)/2 and 2 (1 + s/4)^2; 5 is reached at s = 4.
    assert "1.06, 2.13" in row
    assert "2.50, 4.50" in row
    assert row.split()[-2] == "4"


def test_summary_is_computed() -> None:
    assert "at most 0.227" in drift_summary()
    assert "5 could be 1.13 and 30 could be 2.27" in drift_summary()


def test_figure_is_the_same_every_time(tmp_path: Path) -> None:
    write_figure(drift_figure, tmp_path / "one.svg")
    write_figure(drift_figure, tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    stored = Path(__file__).parents[2] / "docs" / "drift-map.svg"
    assert stored.is_file()
    with pytest.raises(ValueError, match=r"out must end in \.png or \.svg"):
        write_figure(drift_figure, tmp_path / "map.txt")
