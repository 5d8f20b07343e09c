"""Cut-offs as a table and a figure."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from fltheory.fedau import BestCutoff, CutoffError, best_cutoff
from fltheory.report import cutoff_table, write_cutoffs
from fltheory.report.cutoff_report import cutoff_figure

FOUND = BestCutoff(
    CutoffError(7.0, 0.25),
    CutoffError(33.0, 0.5),
    CutoffError(50.0, 0.75),
    CutoffError(float("inf"), 1.0),
)


def test_table() -> None:
    stream = io.StringIO()
    Console(file=stream, width=100).print(cutoff_table(FOUND))
    rows = [line.split() for line in stream.getvalue().splitlines()]
    words = [" ".join(row) for row in rows]
    assert any("best" in row and "7" in row and "0.25" in row for row in words)
    assert any("log_c T" in row and "33" in row and "2" in row for row in words)
    assert any("none" in row and "inf" in row and "4" in row for row in words)


def test_figure_marks_the_choices_on_the_curve() -> None:
    found = best_cutoff(0.2, 60)
    (axes,) = cutoff_figure(0.2, 60, found).axes
    points = [line.get_xydata()[0].tolist() for line in axes.lines[2:]]
    assert points == [[c.cutoff, c.error] for c in (found.best, found.corollary, found.experiments)]
    curve = axes.lines[0].get_ydata()
    assert curve.min() >= found.best.error * (1 - 1e-12)


def test_files(tmp_path: Path) -> None:
    found = best_cutoff(0.5, 20)
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    write_cutoffs(0.5, 20, found, first)
    write_cutoffs(0.5, 20, found, second)
    assert first.read_bytes() == second.read_bytes()
    with pytest.raises(ValueError, match="out must end in"):
        write_cutoffs(0.5, 20, found, tmp_path / "a.pdf")
