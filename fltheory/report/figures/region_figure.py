"""A map of where a theorem applies, as a figure and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from fltheory.report.figures.figure_axes import OUTCOME_COLOURS, set_title
from fltheory.verify import Outcome
from fltheory.verify.region_map import RegionMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE_BASE, _TITLE_COLUMN = 18, 9  # width in characters, without cells and per column of cells
_LETTERS = {
    Outcome.HOLDS: "H",
    Outcome.REFUTED: "R",
    Outcome.INAPPLICABLE: "·",
    Outcome.UNDECIDED: "?",
}


def region_heading(region: RegionMap) -> str:
    """Return two lines, with the map's summary and the meaning of its letters and numbers."""
    legend = ", ".join(f"{letter} {outcome.name}" for outcome, letter in _LETTERS.items())
    return (
        f"{region.theorem} ({region.reading}): {region.summary}\n"
        f"{legend}; numbers are log10(bound/truth)"
    )


def region_table(region: RegionMap) -> Table:
    """Lay out the map: a letter and log10(bound/truth) in every cell, the largest y on top."""
    table = Table()
    table.add_column(f"{region.y.name} \\ {region.x.name}", justify="right")
    for value in region.x.values:
        table.add_column(f"{value:.3g}", justify="right", no_wrap=True)
    for row in reversed(range(len(region.y.values))):
        cells = (
            f"{_LETTERS[verdict.outcome]} {_number(region.looseness[row, column])}"
            for column, verdict in enumerate(region.verdicts[row])
        )
        table.add_row(f"{region.y.values[row]:.3g}", *cells)
    return table


def _number(looseness: float) -> str:
    return "" if np.isnan(looseness) else f"{looseness:+.1f}"


def region_figure(region: RegionMap, *, x_label: str = "", y_label: str = "") -> Figure:
    """Draw the map, with cells coloured by verdict, a letter and log10(bound/truth).

    Parameters
    ----------
    region : RegionMap
    x_label, y_label : str, optional
        Labels of the axes, with mathematics between dollar signs. By default, their names.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    columns, rows = len(region.x.values), len(region.y.values)
    figure = Figure(figsize=(1.8 + 0.62 * columns, 1.9 + 0.45 * rows), layout="constrained")
    axes = figure.add_subplot()
    for row, column in np.ndindex(rows, columns):
        outcome = region.verdicts[row][column].outcome
        axes.add_patch(
            Rectangle((column, row), 1, 1, facecolor=OUTCOME_COLOURS[outcome], edgecolor="white")
        )
        axes.text(
            column + 0.5,
            row + 0.5,
            f"{_LETTERS[outcome]}\n{_number(float(region.looseness[row, column]))}",
            ha="center",
            va="center",
            fontsize=7,
            color="white" if outcome is Outcome.REFUTED else "black",
        )
    axes.set(
        xlim=(0, columns),
        ylim=(0, rows),
        xlabel=x_label or region.x.name,
        ylabel=y_label or region.y.name,
    )
    name = f"{region.theorem} ({region.reading})"
    set_title(axes, name, region.summary, width=_TITLE_BASE + _TITLE_COLUMN * columns)
    axes.set_xticks(np.arange(columns) + 0.5, [f"{v:.3g}" for v in region.x.values], rotation=45)
    axes.set_yticks(np.arange(rows) + 0.5, [f"{v:.3g}" for v in region.y.values])
    figure.legend(
        handles=[
            Patch(
                facecolor=OUTCOME_COLOURS[outcome],
                edgecolor="grey",
                label=f"{letter} {outcome.name}",
            )
            for outcome, letter in _LETTERS.items()
        ],
        loc="outside lower center",
        ncols=4,
        fontsize=8,
        title="numbers: log10(bound/truth)",
        title_fontsize=8,
    )
    return figure
