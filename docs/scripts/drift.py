"""How tight the drift lemma's constants 5 and 30 are, as a table and as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from fltheory.cli import run_script
from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.options import FigureFile
from fltheory.commands.shared.written_files import tell_written
from fltheory.report.figures.figure_axes import write_figure
from fltheory.theorems.cited_lemmas import (
    PRINTED_GRADIENT,
    PRINTED_NOISE,
    PRINTED_STEP,
    gradient_constant,
    largest_ratio,
    largest_step,
    noise_constant,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LOCAL_STEPS = (1, 2, 5, 10, 20, 50, 100)
STEPS = (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)

_FINE_STEPS = np.geomspace(1 / 64, 4, 97)
_FINE_LOCAL_STEPS = np.unique(np.geomspace(1, 100, 49).round().astype(int))


def drift_table() -> Table:
    """Return a table of the least constants over quadratics, a row per K, a column per eta K L."""
    table = Table(title="Least constants in place of 5 and 30", title_justify="left")
    table.add_column("K", justify="right")
    for step in STEPS:
        table.add_column(f"{step:.4g}", justify="right", no_wrap=True)
    table.add_column("largest eta K L", justify="right")
    for steps in LOCAL_STEPS:
        pairs = (
            f"{noise_constant(steps, step):.2f}, {gradient_constant(steps, step):.2f}"
            for step in STEPS
        )
        table.add_row(str(steps), *pairs, f"{largest_step(steps):.4g}")
    return table


def drift_summary() -> str:
    """Return a summary of the table in one line."""
    most = max(LOCAL_STEPS)
    return (
        f"at eta K L = {PRINTED_STEP:g}, the lemma's limit, and K up to {most}, drift/bound is at "
        f"most {largest_ratio(most, PRINTED_STEP):.3f} over quadratics: {PRINTED_NOISE:g} could be "
        f"{noise_constant(most, PRINTED_STEP):.2f} and {PRINTED_GRADIENT:g} could be "
        f"{gradient_constant(most, PRINTED_STEP):.2f}"
    )


def drift_figure() -> Figure:
    """Draw the supremum of drift/bound over quadratics against eta K L and K."""
    from matplotlib.figure import Figure

    ratios = np.array(
        [[largest_ratio(int(k), float(s)) for s in _FINE_STEPS] for k in _FINE_LOCAL_STEPS]
    )
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    filled = axes.contourf(
        _FINE_STEPS, _FINE_LOCAL_STEPS, np.log10(ratios), levels=17, cmap="cividis"
    )
    lines = axes.contour(
        _FINE_STEPS,
        _FINE_LOCAL_STEPS,
        ratios,
        levels=[0.205, 0.22, 0.25, 0.5, 1.0, 2.0],
        colors="white",
    )
    axes.clabel(lines, fontsize=8)
    axes.axvline(PRINTED_STEP, color="white", linestyle="--")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="eta K L (dashed: the lemma's limit, 1/8)",
        ylabel="K, local steps",
        title="Largest drift/bound over quadratics, with 5 and 30 as printed",
    )
    axes.title.set_fontsize(10)
    figure.colorbar(filled, label="log10(drift/bound)")
    return figure


def command(out: FigureFile = None) -> None:
    """Show how tight the local drift lemma's 5 and 30 are: the least constants, over K and eta."""
    table_console().print(drift_table())
    print(drift_summary())
    if out is not None:
        write_figure(drift_figure, out)
        tell_written(out)


if __name__ == "__main__":
    run_script(command)
