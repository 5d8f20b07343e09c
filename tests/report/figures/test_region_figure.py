"""Maps as table and figure."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from fltheory.report import figure, write_figure
from fltheory.report.figures.region_figure import region_figure, region_heading, region_table
from fltheory.verify import MapAxis, Outcome
from fltheory.verify.region_map import RegionMap
from tests.verify.cells import cell

REGION = RegionMap(
    "t/1",
    "printed",
    MapAxis("q", (0.0, 0.5)),
    MapAxis("rounds", (1.0, 1000.0)),
    (
        (cell(truth=1.0, bound=100.0).verdict, cell(Outcome.REFUTED, truth=20.0).verdict),
        (cell(Outcome.INAPPLICABLE).verdict, cell(Outcome.UNDECIDED, truth=0.0).verdict),
    ),
)


def test_the_table_shows_every_cell_with_the_largest_y_on_top() -> None:
    stream = io.StringIO()
    Console(file=stream, width=120).print(region_table(REGION))
    lines = [line for line in stream.getvalue().splitlines() if "│" in line]
    assert [part.strip() for part in lines[0].strip("│").split("│")] == ["1e+03", "· +0.3", "?"]
    assert [part.strip() for part in lines[1].strip("│").split("│")] == ["1", "H +2.0", "R -1.0"]


def test_the_heading_tells_the_shares_and_the_letters() -> None:
    title, legend = region_heading(REGION).splitlines()
    assert title.startswith("t/1 (printed): applies on 75.0% of the cells: HOLDS on 25.0%")
    assert "H HOLDS, R REFUTED, · INAPPLICABLE, ? UNDECIDED" in legend


def test_the_figure_shows_every_cell() -> None:
    (axes,) = figure(REGION).axes
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["H\n+2.0", "R\n-1.0", "·\n+0.3", "?\n"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("q", "rounds")
    assert REGION.summary in axes.get_title().replace("\n", " ")
    assert len({patch.get_facecolor() for patch in axes.patches}) == 4


@pytest.mark.parametrize("name", ["map.svg", "map.png"])
def test_the_same_map_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    first, second = tmp_path / "a" / name, tmp_path / "b" / name
    write_figure(lambda: region_figure(REGION), first)
    write_figure(lambda: region_figure(REGION), second)
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 1000


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"out must end in .png or .svg, got"):
        write_figure(lambda: region_figure(REGION), tmp_path / "map.pdf")


def test_axes_can_bear_the_symbols_of_the_paper() -> None:
    (axes,) = figure(REGION, x_label="$q$", y_label="$R$").axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("$q$", "$R$")
