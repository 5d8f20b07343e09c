"""A theorem's bound, the exact truth and the sampled mean on one axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fltheory.claims.shared.bound_curve import BoundCurve, at_most
from fltheory.report.figures.figure_axes import (
    PART_STYLES,
    blank,
    cycled,
    draw_levels,
    draw_points,
    label,
    legend_below,
    set_scales,
    set_title,
)
from fltheory.validation import FloatArray
from fltheory.verify import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BOUND: Mapping[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1.8}
_TRUTH: Mapping[str, Any] = {"color": "#0072B2", "linestyle": "-", "linewidth": 2.2}
_SAMPLED: Mapping[str, Any] = {
    "color": "#D55E00",
    "linestyle": "none",
    "marker": "o",
    "markersize": 4,
    "capsize": 2.5,
    "zorder": 3,
}
_HALF_A_CASE = 0.3


def figure_of_one(
    curve: BoundCurve,
    *,
    title: str,
    log_x: bool,
    points: Mapping[str, tuple[float, float]],
    levels: Mapping[str, float],
) -> Figure:
    """Draw a statement's two sides over one variable, as `figure` does."""
    figure, axes = blank()
    draw_curve(axes, curve)
    draw_levels(axes, levels)
    draw_points(axes, points)
    axes.set(xlabel=label(curve.variable), ylabel=label(curve.quantity))
    set_title(axes, curve.heading, curve.note, title)
    more = [list(levels.values()), [y for _, y in points.values()]]
    set_scales(axes, curve.values, np.concatenate([heights(curve), *more]), log_x=log_x)
    legend_below(figure)
    return figure


def draw_curve(axes: Axes, curve: BoundCurve) -> None:
    """Draw truth, sample, bound and its parts, and where the statement does not hold."""
    _shade(axes, curve)
    if curve.truth is not None:
        _line(axes, curve, curve.truth, label=_truth_label(curve), **_TRUTH)
    if curve.sampled is not None:
        axes.errorbar(
            curve.values,
            curve.sampled,
            yerr=curve.interval,
            label=sampled_label(curve),
            **_SAMPLED,
        )
    if not np.isnan(curve.bound).all():
        _line(axes, curve, curve.bound, label=curve.bound_name, **_BOUND)
    styles = cycled(PART_STYLES, len(curve.parts))
    for (style, colour), (name, values) in zip(styles, curve.parts.items(), strict=True):
        _line(axes, curve, values, linestyle=style, color=colour, linewidth=1.2, label=name)
    if curve.labels:
        axes.set_xticks(curve.values, curve.labels, fontsize=8)


def heights(curve: BoundCurve) -> FloatArray:
    """Return all that decides on the vertical scale; small parts of a bound do not."""
    drawn = (curve.truth, curve.sampled, curve.bound)
    shown = np.concatenate([array for array in drawn if array is not None])
    least = np.nanmin(shown)
    return np.concatenate([shown, *(part[part >= least] for part in curve.parts.values())])


def sampled_label(curve: BoundCurve) -> str:
    """Return how the sample was drawn, for a legend."""
    assert curve.sampled is not None
    counted = ~np.isnan(curve.sampled)
    stretch = "" if counted.all() else f" up to {curve.values[counted].max():,.0f}"
    return (
        f"sampled mean{stretch}, {curve.replicas:,} runs; "
        f"any of the {kind_of_intervals(curve)} is wrong with probability\n"
        f"{at_most(curve.error_probability)}"
        f"{_without_width(curve)}"
    )


def kind_of_intervals(curve: BoundCurve) -> str:
    """Return what the intervals are: Student's beside a computed truth, on which verdicts rest."""
    return "Student's intervals" if curve.is_computed else "intervals"


def _without_width(curve: BoundCurve) -> str:
    """Return what a mark without a bar does not mean."""
    assert curve.sampled is not None
    assert curve.interval is not None
    drawn = np.isfinite(curve.sampled)
    if (curve.interval[drawn] == 0).any():
        return "; width zero: all runs agree, which is no certainty"
    if not np.isfinite(curve.interval[drawn]).all():
        return "; no bar: rare events were not seen"
    return ""


def _line(axes: Axes, curve: BoundCurve, values: FloatArray, *, label: str, **look: Any) -> None:
    """Draw a line over numbers, and a dash over each of several cases."""
    if not curve.labels:
        axes.plot(curve.values, values, label=label, **look)
        return
    left, right = curve.values - _HALF_A_CASE, curve.values + _HALF_A_CASE
    axes.hlines(
        values,
        left,
        right,
        label=label,
        colors=look["color"],
        linestyles=look["linestyle"],
        linewidth=look["linewidth"],
    )


def _truth_label(curve: BoundCurve) -> str:
    assert curve.truth is not None
    known = ~np.isnan(curve.truth)
    if known.all():
        return "exact truth"
    return f"exact truth, computed up to {curve.values[known].max():,.0f}"


_SHADES: Mapping[Outcome, tuple[str, Mapping[str, Any]]] = {
    Outcome.INAPPLICABLE: (
        "a hypothesis fails",
        {"facecolor": "none", "hatch": "///", "edgecolor": "#CCCCCC"},
    ),
    Outcome.REFUTED: ("refuted", {"facecolor": "#DDDDDD", "edgecolor": "none"}),
    Outcome.UNDECIDED: (
        "undecided",
        {"facecolor": "none", "hatch": "...", "edgecolor": "#CCCCCC"},
    ),
}


def _shade(axes: Axes, curve: BoundCurve) -> None:
    """Mark the stretches of the axis where the theorem does not hold."""
    edges = _edges(curve)
    named: set[Outcome] = set()
    for left, right, outcome in zip(edges, edges[1:], curve.outcomes, strict=False):
        if outcome in _SHADES:
            text, look = _SHADES[outcome]
            label = None if outcome in named else text
            axes.axvspan(left, right, linewidth=0, label=label, zorder=0, **look)
            named.add(outcome)


def _edges(curve: BoundCurve) -> FloatArray:
    """Return the limits of each value's stretch: halfway to its neighbours."""
    values = curve.values
    if values.size == 1 or curve.labels:
        return np.concatenate([values - 0.5, values[-1:] + 0.5])
    between = np.sqrt(values[1:] * values[:-1]) if values.min() > 0 else None
    if between is None:
        between = 0.5 * (values[1:] + values[:-1])
    return np.concatenate([values[:1], between, values[-1:]])
