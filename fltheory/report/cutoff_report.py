"""FedAU's cut-offs and their weight errors, as a table and as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from rich.table import Table

from fltheory.fedau import BestCutoff, weight_errors
from fltheory.progress import Progress
from fltheory.report.figure_file import write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVE_COLOUR, _BEST_COLOUR, _PAPER_COLOUR = "#7A2B00", "#009E73", "#0072B2"
_POINTS = 40


def cutoff_table(found: BestCutoff) -> Table:
    """Lay out a choice a row: its cut-off, its error, and how many times the best it is."""
    table = Table()
    for heading in ("choice", "K", "weight error", "times the best"):
        table.add_column(heading, justify="left" if heading == "choice" else "right")
    choices = {
        "best": found.best,
        "log_c T (Corollary 4)": found.corollary,
        "50 (experiments)": found.experiments,
        "none": found.none,
    }
    for name, choice in choices.items():
        times = choice.error / found.best.error if found.best.error > 0 else float("nan")
        table.add_row(name, f"{choice.cutoff:g}", f"{choice.error:.6g}", f"{times:.3g}")
    return table


def cutoff_figure(
    p: ArrayLike, rounds: int, found: BestCutoff, *, progress: Progress | None = None
) -> Figure:
    """Draw the weight error over the cut-off, with the best and the paper's marked."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.subplots()
    marks = (found.best, found.corollary, found.experiments)
    last = max(2.0, min(float(rounds), 3 * max(mark.cutoff for mark in marks)))
    cutoffs = np.unique(np.rint(np.geomspace(1, last, _POINTS)))
    axes.loglog(cutoffs, weight_errors(p, rounds, cutoffs, progress=progress), color=_CURVE_COLOUR)
    axes.axhline(found.none.error, color=_CURVE_COLOUR, linestyle=":", label="no cut-off")
    named = (("best", _BEST_COLOUR, "*"), ("log_c T", _PAPER_COLOUR, "o"), ("50", "black", "s"))
    for mark, (name, colour, marker) in zip(marks, named, strict=True):
        axes.plot(
            mark.cutoff, mark.error, marker, color=colour, label=f"{name}: K = {mark.cutoff:g}"
        )
    axes.set(xlabel="cut-off K", ylabel="mean of E[(p omega - 1)^2]", title=f"T = {rounds}")
    axes.legend(fontsize=8)
    return figure


def write_cutoffs(
    p: ArrayLike,
    rounds: int,
    found: BestCutoff,
    path: Path,
    *,
    progress: Progress | None = None,
) -> None:
    """Write the figure as PNG or SVG, by suffix; the same choices give the same bytes.

    Raises
    ------
    ValueError
        For another suffix.
    """
    write_figure(lambda: cutoff_figure(p, rounds, found, progress=progress), path)
