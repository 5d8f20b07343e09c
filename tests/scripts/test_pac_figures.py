"""Tables and figures of learnability."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sampled_means import agree

from docs.scripts.impossibility import impossibility_table
from docs.scripts.pac_figures import (
    BesideServer,
    comparison_table,
    comparisons,
    impossibility_figure,
    no_worse_figure,
    server_data_figure,
    write_learnability_figures,
)
from fltheory.report.figures.figure_axes import write_figure
from fltheory.theorems import get

ROWS = [
    BesideServer("calm", 10, 40, 0.02, 0.1, 1.0, 0.0),
    BesideServer("calm", 100, 400, 0.002, 0.01, 1.0, 0.0),
    BesideServer("rough", 10, 40, 0.25, 0.1, 0.75, 3.5),
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


def lines_by_colour(axes) -> dict[str, list[np.ndarray]]:
    """Return the lines of each curve, in the order of drawing: truth, sample, ..., bound."""
    found: dict[str, list[np.ndarray]] = {}
    for line in axes.lines:
        if line.get_linestyle() != "None":
            found.setdefault(line.get_color(), []).append(line.get_ydata())
    return found


def intervals(axes) -> list[np.ndarray]:
    return [
        np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
        for bars in axes.containers
    ]


def test_impossibility_figure_shows_failure_with_and_without_a_server() -> None:
    """Every other target fails (1/2, n large); ten server samples take 0.75^10 of it."""
    figure = impossibility_figure(replicas=4000)
    (axes,) = figure.axes
    (plain, bound), (few,), (many,) = lines_by_colour(axes).values()
    assert plain[-1] == pytest.approx(1 / 2, rel=1e-6)
    assert list(bound) == [0.05] * len(plain)
    assert np.asarray(few) == pytest.approx(0.75**10 * np.asarray(plain))
    assert many[1] == pytest.approx(0.75**2 * plain[1])
    assert len(many) < len(plain)
    for truth, ends in zip((plain, few, many), intervals(axes), strict=True):
        assert agree(truth, ends[:, 0], ends[:, 1], replicas=4000)
    title = axes.get_title().replace("\n", " ")
    assert title.startswith("pac/1 (derived): plain FL HOLDS; no claim on SA-FL, 10 samples")


def test_server_data_figure_shows_what_stays_and_what_falls() -> None:
    figure = server_data_figure(replicas=200)
    (axes,) = figure.axes
    plain, ten, share, noisy, floor = lines_by_colour(axes).values()
    assert plain[0][-1] == pytest.approx(0.25, rel=1e-5)
    assert ten[0][-1] > floor[0][0] == 1 / 16
    assert share[0][-1] < 1e-5
    # The noisy ones have no exact truth: their one line is the claimed order.
    assert len(noisy) == 1
    assert noisy[0][-1] / noisy[0][0] == pytest.approx(1e-4 ** (2 / 3))
    assert len(intervals(axes)) == 4
    title = axes.get_title().replace("\n", " ")
    assert (
        "plain FL INAPPLICABLE; SA-FL, $n_T = 10$ INAPPLICABLE; SA-FL, $n_T = n/10$ HOLDS" in title
    )


def test_no_worse_figure_has_a_panel_a_regime() -> None:
    """With n_T server samples alone the mean is 3/(2(n_T + 1)) without noise, by hand."""
    panels = no_worse_figure(replicas=200).axes
    assert [panel.get_title().split("\n")[0] for panel in panels] == list(get("pac/3").regimes)
    together, alone = list(lines_by_colour(panels[0]).values())
    sizes = panels[0].lines[0].get_xdata()
    np.testing.assert_allclose(alone[0], 1.5 / (sizes + 1), rtol=1e-9)
    np.testing.assert_allclose(together[0], 1.5 / (5 * sizes + 1), rtol=1e-9)
    assert "HOLDS" in panels[0].get_title()
    assert "INAPPLICABLE" in panels[-1].get_title()
    assert all(len(intervals(panel)) == 2 for panel in panels)


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


def test_figures_are_the_same_bytes_again(tmp_path: Path) -> None:
    paths = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for path in paths:
        write_figure(lambda: impossibility_figure(replicas=50), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="out must end in"):
        write_learnability_figures(tmp_path, ".pdf")
