"""Cut-offs as a table and a figure."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sampled_means import agree

from fltheory.fedau import BestCutoff, CutoffError, best_cutoff, weight_errors
from fltheory.report import write_figure
from fltheory.report.terminal.cutoff_report import (
    cutoff_figure,
    cutoff_table,
)

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


def test_figure_shows_bound_truth_and_sample_and_marks_the_choices() -> None:
    found = best_cutoff(0.2, 60)
    (axes,) = cutoff_figure(0.2, 60, found, replicas=4000).axes
    lines = {line.get_label(): line for line in axes.lines}
    choices = [lines[name].get_xydata()[0].tolist() for name in lines if ": K = " in name]
    marks = (found.best, found.corollary, found.experiments)
    assert choices == [[mark.cutoff, mark.error] for mark in marks]
    truth, bound = (lines[name].get_ydata() for name in ("exact truth", "bound"))
    cutoffs = lines["exact truth"].get_xdata()
    np.testing.assert_allclose(truth, weight_errors(0.2, 60, cutoffs), rtol=1e-12)
    harmonic = sum(1 / t for t in range(1, 60))
    expected = (0.8**2 + 2 * cutoffs * 0.8 * harmonic) / 60 + 0.8 ** (2 * cutoffs)
    np.testing.assert_allclose(bound, expected, rtol=1e-12)
    (bars,) = axes.containers
    ends = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    assert agree(truth, ends[:, 0], ends[:, 1], replicas=4000)
    assert axes.get_title() == "fedau/3 (derived): HOLDS\nT = 60"
    assert list(lines["no cut-off"].get_ydata()) == [found.none.error] * 2


def test_what_would_take_too_long_is_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fltheory.report.terminal.cutoff_report._MOST_DRAWN", 1000)
    (axes,) = cutoff_figure(0.2, 60, best_cutoff(0.2, 60)).axes
    assert not axes.containers


def test_files(tmp_path: Path) -> None:
    found = best_cutoff(0.5, 20)
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    write_figure(lambda: cutoff_figure(0.5, 20, found), first)
    write_figure(lambda: cutoff_figure(0.5, 20, found), second)
    assert first.read_bytes() == second.read_bytes()
    with pytest.raises(ValueError, match="out must end in"):
        write_figure(lambda: cutoff_figure(0.5, 20, found), tmp_path / "a.pdf")
