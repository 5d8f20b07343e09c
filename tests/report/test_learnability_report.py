"""Tables and figures of learnability."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fltheory.report import comparison_table, impossibility_table, write_learnability_figures
from fltheory.report.learnability_report import (
    Comparison,
    comparisons,
    impossibility_figure,
    no_worse_figure,
    server_data_figure,
)

ROWS = [
    Comparison("calm", 10, 40, 0.02, 0.1, 1.0, 0.0),
    Comparison("calm", 100, 400, 0.002, 0.01, 1.0, 0.0),
    Comparison("rough", 10, 40, 0.25, 0.1, 0.75, 3.5),
]


def printed(renderable) -> str:
    stream = io.StringIO()
    Console(file=stream, width=160).print(renderable)
    return stream.getvalue()


def test_impossibility_table_has_a_row_a_case() -> None:
    """M = n = 2, m = 1, by hand: 243/256 by samples, 1, 15/16 and 207/256 by clients."""
    text = printed(impossibility_table(2, 2, 1))
    assert "epsilon = 1/16" in text
    assert "P(hidden)" in text
    for case, hidden in (
        ("samples chosen", "243/256"),
        ("one point each", "1 "),
        ("point drawn", "15/16"),
        ("clients alike", "207/256"),
    ):
        row = next(line for line in text.splitlines() if case in line)
        assert hidden in row


def test_comparison_table() -> None:
    row = next(line for line in printed(comparison_table(ROWS)).splitlines() if "rough" in line)
    assert all(part in row for part in ("0.25", "0.1", "75%", "3.5"))


def test_impossibility_figure_shows_the_floor_below_plain_fl() -> None:
    """Plain FL stays at 2 epsilon (n large), twice the floor; ten server samples take 0.75^10."""
    (axes,) = impossibility_figure().axes
    plain, few, many, floor = (line.get_ydata() for line in axes.lines)
    assert floor[0] == 1 / 16
    assert plain[-1] == pytest.approx(1 / 8, rel=1e-6)
    assert np.asarray(few) == pytest.approx(0.75**10 * np.asarray(plain))
    assert many[-1] < 1e-15


def test_server_data_figure_shows_what_stays_and_what_falls() -> None:
    (axes,) = server_data_figure().axes
    plain, ten, share, noisy, floor = (line.get_ydata() for line in axes.lines)
    assert plain[-1] == pytest.approx(0.25, rel=1e-5)
    assert ten[-1] > floor[0] == 1 / 16
    assert share[-1] < 1e-5
    assert noisy[-1] < 1e-4


def test_no_worse_figure_has_a_panel_a_regime() -> None:
    panels = no_worse_figure(ROWS).axes
    assert [panel.get_title() for panel in panels] == ["calm", "rough"]
    assert [line.get_ydata().tolist() for line in panels[0].lines] == [[0.1, 0.01], [0.02, 0.002]]


def test_comparisons_cover_the_regimes() -> None:
    seen: list[tuple[int, int, str]] = []
    rows = comparisons((20,), 50, progress=lambda *step: seen.append(step))
    assert len(rows) == len(seen) == 4
    apart = rows[-1]
    assert apart.regime == "clients' target apart"
    assert (apart.n_server, apart.n_clients) == (20, 80)
    assert apart.offset_over_complexity > 0
    assert rows[0].offset_over_complexity == 0
    assert rows[0].first_condition == 1


def test_files_are_written_and_the_same(tmp_path: Path) -> None:
    first, second = (
        write_learnability_figures(tmp_path / name, ".svg", ROWS) for name in ("a", "b")
    )
    assert [path.name for path in first] == [
        "pac-impossibility.svg",
        "pac-server-data.svg",
        "pac-no-worse.svg",
    ]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    with pytest.raises(ValueError, match="out must end in"):
        write_learnability_figures(tmp_path, ".pdf", ROWS)
