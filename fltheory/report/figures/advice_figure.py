"""A figure of the algorithms' biases and round-by-round errors along a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fltheory.advice import Advice

_PROCESS, _LOG = "#0072B2", "#D55E00"
_MOST_POINTS = 500


def advice_figure(advice: Advice) -> Figure:
    """Draw each algorithm's biases, from unrelated to worst case, and its error along the log."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    _biases(left, advice)
    _errors(right, advice)
    return figure


def _biases(axes: Axes, advice: Advice) -> None:
    settled = [found for found in advice.algorithms if np.isfinite(found.error)]
    for kind, shift, colour, label in (
        ("process", -0.15, _PROCESS, "independent chains, by formula"),
        ("log", 0.15, _LOG, "this log's rounds"),
    ):
        biases = [(place, getattr(found, kind)) for place, found in enumerate(settled)]
        known = [(place + shift, bias) for place, bias in biases if bias is not None]
        places = np.array([place for place, _ in known])
        low = np.array([bias.unrelated for _, bias in known])
        high = np.array([bias.at_worst for _, bias in known])
        axes.hlines(places, low, high, color=colour, lw=3, label=label)
        axes.plot(low, places, "o", color=colour, ms=4)
        axes.plot(high, places, "|", color=colour, ms=9)
    if advice.population.never.size:
        axes.axvline(
            advice.exclusion.at_worst, color="0.4", ls=":", lw=1, label="exclusion, at worst"
        )
    axes.set_yticks(np.arange(len(settled)), [found.title for found in settled])
    axes.invert_yaxis()
    axes.set(xlabel=r"distance from the optimum, in units of $\|w_0 - w^*\|$", xlim=(0, None))
    axes.set_title("Bias: optima unrelated to presence (dot) to worst (bar)", loc="left", size=10)
    axes.grid(axis="x", alpha=0.25)
    axes.legend(fontsize=8)


def _errors(axes: Axes, advice: Advice) -> None:
    shown = {advice.best.name, advice.fallback.name, "fedavg"}
    for found in advice.algorithms:
        if not np.isfinite(found.errors).all():
            continue
        rounds = np.unique(
            np.geomspace(1, found.errors.size, min(_MOST_POINTS, found.errors.size)).astype(int)
        )
        named = found.name in shown
        axes.plot(
            rounds,
            found.errors[rounds - 1],
            color=None if named else "0.8",
            label=found.called if named else None,
            lw=1.8 if named else 0.8,
            zorder=2 if named else 1,
        )
    axes.axhline(advice.within, color="0.4", ls=":", lw=1)
    axes.set(xscale="log", yscale="log", xlabel="round of the log", ylabel="root-mean-square error")
    axes.set_title("Error along the log, optima unrelated to presence", loc="left", size=10)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8)
