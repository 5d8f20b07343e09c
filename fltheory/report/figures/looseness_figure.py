"""Figures of how loose the bounds of several statements are on one setting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fltheory.report.figures.figure_axes import (
    CURVE_STYLES,
    OUTCOME_COLOURS,
    blank,
    legend_below,
    set_title,
)
from fltheory.verify import Outcome
from fltheory.verify.comparison import MEASURED, OwnSteps, SideBySide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARGIN = 1.5


def looseness_figure(found: SideBySide) -> Figure:
    """Draw a bar from truth to bound for each statement, on a logarithmic axis.

    Raises
    ------
    ValueError
        If no statement has a positive truth and a finite bound.
    """
    shown = [
        (answer.statement.name, answer.verdict)
        for answer in found.answers
        if answer.verdict is not None
        and answer.verdict.truth > 0
        and 0 < answer.verdict.bound < math.inf
    ]
    if not shown:
        raise ValueError("setting must have a statement with a positive truth and a finite bound")
    figure, axes = blank()
    figure.set_size_inches(7.2, 1.6 + 0.34 * len(shown))
    for row, (_, verdict) in enumerate(reversed(shown)):
        low, high = sorted((verdict.truth, verdict.bound))
        axes.barh(
            row,
            high - low,
            left=low,
            height=0.5,
            color=OUTCOME_COLOURS[verdict.outcome],
            edgecolor="grey",
            # Where a statement does not apply, its bound is meaningless.
            hatch="//" if verdict.outcome is Outcome.INAPPLICABLE else "",
        )
        axes.plot(verdict.truth, row, "o", color="black", markersize=5)
        axes.plot(verdict.bound, row, "|", color="black", markersize=12, markeredgewidth=2)
    ends = [side for _, verdict in shown for side in (verdict.truth, verdict.bound)]
    axes.set_xscale("log")
    axes.set_xlim(min(ends) / _MARGIN, max(ends) * _MARGIN)
    axes.set_yticks(range(len(shown)), [name for name, _ in reversed(shown)], fontsize=8)
    axes.set_xlabel("truth (dot) and bound (bar's end), each in its own statement's quantity")
    counts = {outcome: sum(v.outcome is outcome for _, v in shown) for outcome in Outcome}
    parts = [f"{count} {outcome.name}" for outcome, count in counts.items() if count]
    set_title(axes, f"One setting, {len(shown)} statements: {', '.join(parts)}")
    return figure


def own_steps_figure(found: OwnSteps) -> Figure:
    """Draw, over the rounds, each theorem's bound divided by its truth, at its own steps.

    Bounds proved for every client loss are dashed. They have the theorem's colour for its own run,
    and are black for the run of the setting.

    Raises
    ------
    ValueError
        If no theorem applies there, or no truth is positive.
    """
    drawn = [one for one in found.bounds if np.isfinite(one.looseness).any()]
    if not drawn:
        raise ValueError("setting must have a theorem that applies and a positive truth")
    figure, axes = blank()
    figure.set_size_inches(7.2, 4.6 + 0.12 * len(drawn))
    for index, one in enumerate(drawn):
        marker, colour = CURVE_STYLES[index % len(CURVE_STYLES)]
        filled = colour if index < len(CURVE_STYLES) else "white"
        style: dict[str, Any] = {"marker": marker, "color": colour, "markerfacecolor": filled}
        axes.plot(one.rounds, one.looseness, label=one.name, markersize=4, **style)
        if np.isfinite(one.provable_looseness).any():
            label = f"provable for {one.statements[0].id}'s run"
            axes.plot(one.rounds, one.provable_looseness, "--", color=colour, label=label)
    given = found.given
    if np.isfinite(given.provable_looseness).any():
        label = "provable for the setting's own algorithm and steps"
        axes.plot(given.rounds, given.provable_looseness, "k--", linewidth=2, label=label)
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("averages, R")
    axes.set_ylabel(f"bound over truth, of {MEASURED[found.measure]}")
    set_title(
        axes, f"{len(drawn)} theorems on one problem, each at the step sizes that it requires"
    )
    legend_below(figure)
    return figure
