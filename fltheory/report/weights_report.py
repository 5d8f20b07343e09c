"""Optimal aggregation weights, as a table and as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from fltheory.report.figure_file import write_figure
from fltheory.weights import OptimalWeights, TradeOff

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROWS_AT_EITHER_END = 20
_TARGET_COLOUR, _IMPORTANCE_COLOUR, _WEIGHT_COLOUR = "#E69F00", "#56B4E9", "#7A2B00"
_AVAILABILITY_COLOUR = "#009E73"
_MOST_NAMED_BARS = 30
_MOST_BARS = 200


def weights_table(problem: TradeOff, found: OptimalWeights) -> Table:
    """Lay out a client a row; of many clients the first and the last."""
    table = Table()
    for heading in ("client", "alpha", "pi", "q", "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    n_clients = problem.n_clients
    columns = (problem.target_weights, problem.availability, found.q, found.p)
    skipped = range(_ROWS_AT_EITHER_END, n_clients - _ROWS_AT_EITHER_END)
    for client in range(n_clients):
        if client not in skipped:
            table.add_row(str(client), *(f"{column[client]:.6g}" for column in columns))
        elif client == skipped.start:
            table.add_row("...", *("..." for _ in columns))
    return table


def weights_summary(found: OptimalWeights) -> str:
    """Return the errors, and how well the optimality conditions hold, in three lines."""
    excluded = int((found.q == 0).sum())
    return (
        f"optimisation error {found.optimization_error:.6g}, bias error {found.bias_error:.6g}, "
        f"together {found.error:.6g}\n"
        f"{found.q.size} clients, {excluded} without weight; lambda* "
        f"{found.availability_multiplier:.6g}, theta* {found.total_multiplier:.6g}\n"
        f"relative KKT residual {found.kkt_residual:.1e} ({found.method})"
    )


def weights_figure(problem: TradeOff, found: OptimalWeights) -> Figure:
    """Draw a client's target beside its importance, below them its availability and weight.

    Bars of a few clients, else dots from the most to the least available client.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    upper, middle, lower = figure.subplots(3, 1, sharex=True)
    if problem.n_clients <= _MOST_BARS:
        clients = np.arange(problem.n_clients)
        upper.bar(clients - 0.2, problem.target_weights, 0.4, color=_TARGET_COLOUR, label="alpha")
        upper.bar(clients + 0.2, found.p, 0.4, color=_IMPORTANCE_COLOUR, label="p")
        middle.bar(clients, problem.availability, 0.8, color=_AVAILABILITY_COLOUR)
        lower.bar(clients, found.q, 0.8, color=_WEIGHT_COLOUR)
        lower.set_xlabel("client")
    else:
        order = np.argsort(-problem.availability, kind="stable")
        upper.plot(problem.target_weights[order], ".", color=_TARGET_COLOUR, label="alpha")
        upper.plot(found.p[order], ".", color=_IMPORTANCE_COLOUR, label="p")
        middle.plot(problem.availability[order], ".", color=_AVAILABILITY_COLOUR)
        lower.plot(found.q[order], ".", color=_WEIGHT_COLOUR)
        for dots in (*upper.lines, *middle.lines, *lower.lines):
            dots.set(markersize=2, rasterized=True)
        lower.set_xlabel("clients, from the most available")
    upper.set(ylabel="importance", title=f"error {found.error:.4g}")
    upper.legend(fontsize=8)
    middle.set_ylabel("availability pi")
    lower.set_ylabel("weight q")
    if problem.n_clients <= _MOST_NAMED_BARS:
        lower.set_xticks(clients)
    return figure


def write_weights(problem: TradeOff, found: OptimalWeights, path: Path) -> None:
    """Write the figure as PNG or SVG, by suffix; the same weights give the same bytes.

    Raises
    ------
    ValueError
        For another suffix.
    """
    write_figure(lambda: weights_figure(problem, found), path)
