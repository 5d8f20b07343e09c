"""Figures of bounds and truths: a single pair, several on the same axes, or panels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.claims.curves import BoundCurve, at_most
from fltheory.report.figures.figure_axes import (
    CURVE_STYLES,
    PART_STYLES,
    blank,
    cycled,
    default_style,
    draw_levels,
    draw_points,
    label,
    legend_below,
    set_scales,
    set_title,
)
from fltheory.report.figures.region_figure import region_figure
from fltheory.validation import FloatArray
from fltheory.verify import Outcome
from fltheory.verify.region_map import RegionMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL_WIDTH = 62
_GREY = "#555555"


@checks_kinds
@default_style()
def figure(
    shown: BoundCurve
    | Mapping[str, BoundCurve]
    | Mapping[str, Mapping[str, BoundCurve]]
    | RegionMap,
    *,
    title: str = "",
    log_x: bool = True,
    points: Mapping[str, tuple[float, float]] | None = None,
    levels: Mapping[str, float] | None = None,
    x_label: str = "",
    y_label: str = "",
) -> Figure:
    """Draw truth, sample and bound of a statement over one variable, or a map over two.

    The title gives the verdicts. With one curve, the axis is hatched where the theorem does not
    apply and grey where it is refuted. With several curves, each has a colour and a marker. Its
    truth is a solid line, its samples are filled markers with intervals, and its bound is dashed
    with hollow markers. In a map, cells are coloured by verdict, and show the verdict's letter and
    log10(bound/truth).

    Parameters
    ----------
    shown : BoundCurve, mapping of str to BoundCurve, or of str to such mappings; or RegionMap
        From `fltheory.verify.curve`, either one curve, several curves of one quantity, keyed by
        their names in the legend, or panels, one per setting, keyed by their titles, with curves of
        the same names. A map comes from `fltheory.verify.map_region`.
    title : str, optional
        A last line of the title. Panels have titles of their own.
    log_x : bool
        Whether the horizontal axis is logarithmic.
    points : mapping of str to (x, y), optional
        Named points to mark, e.g. a choice. They are not drawn in panels.
    levels : mapping of str to float, optional
        Named heights, e.g. a limit. They are not drawn in panels.
    x_label, y_label : str, optional
        Labels of the axes of a map, with mathematics between dollar signs. By default, their names.

    Raises
    ------
    ValueError
        If there are no curves.

    Examples
    --------
    >>> from fltheory import theorems, verify
    >>> curves = {}
    >>> for reading in ("printed", "derived"):
    ...     theorem = theorems.get("sa-fl/5", reading=reading)
    ...     setting = theorem.regimes["other units"].setting
    ...     curves[reading] = verify.curve(theorem, setting, points=3, replicas=0)
    >>> print(figure(curves).axes[0].get_title())
    printed: sa-fl/5 (printed) HOLDS for $R$ <= 632, REFUTED at $R$ = 400,000; derived:
    sa-fl/5 (derived) HOLDS for $R$ <= 632, INAPPLICABLE at $R$ = 400,000
    >>> figure(curves["derived"]).axes[0].get_title()[:18]
    'sa-fl/5 (derived):'
    """
    if isinstance(shown, RegionMap):
        return region_figure(shown, x_label=x_label, y_label=y_label)
    if isinstance(shown, BoundCurve):
        return figure_of_one(
            shown, title=title, log_x=log_x, points=points or {}, levels=levels or {}
        )
    if not isinstance(shown, Mapping) or not shown:
        raise ValueError(f"shown must be one curve or more, got {validation.shown(shown)}")
    curves = {name: one for name, one in shown.items() if isinstance(one, BoundCurve)}
    panels = {name: one for name, one in shown.items() if not isinstance(one, BoundCurve)}
    if panels:
        return _panels(panels, log_x=log_x)
    drawn, axes = blank()
    _fill(axes, curves, log_x=log_x, points=points or {}, levels=levels or {})
    set_title(axes, _heading(curves), title)
    extra = axes.get_legend_handles_labels()[0]
    legend_below(drawn, [*_names(curves), *extra, *_kinds(curves.values())])
    return drawn


def _panels(panels: Mapping[str, Mapping[str, BoundCurve]], *, log_x: bool) -> Figure:
    """Draw curves of the same names on several axes."""
    from matplotlib.figure import Figure

    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5.2 * columns, 0.9 + 3.3 * rows), layout="constrained")
    every = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in every[len(panels) :]:
        axes.remove()
    for place, (name, curves) in enumerate(panels.items()):
        axes = every[place]
        axes.grid(alpha=0.25)
        _fill(axes, curves, log_x=log_x, points={}, levels={})
        axes.set_ylabel("" if place % columns else axes.get_ylabel(), fontsize=9)
        set_title(axes, name, _heading(curves), width=_PANEL_WIDTH)
    drawn = [curve for curves in panels.values() for curve in curves.values()]
    legend_below(figure, [*_names(next(iter(panels.values()))), *_kinds(drawn)])
    return figure


def _fill(
    axes: Axes,
    curves: Mapping[str, BoundCurve],
    *,
    log_x: bool,
    points: Mapping[str, tuple[float, float]],
    levels: Mapping[str, float],
) -> None:
    """Draw everything except title and legend."""
    styles = cycled(CURVE_STYLES, len(curves))
    for curve, (marker, colour) in zip(curves.values(), styles, strict=True):
        _draw(axes, curve, marker, colour)
    draw_levels(axes, levels)
    draw_points(axes, points)
    first = next(iter(curves.values()))
    axes.set(xlabel=label(first.variable), ylabel=label(first.quantity))
    drawn = [heights(curve) for curve in curves.values()]
    more = [list(levels.values()), [y for _, y in points.values()]]
    every_x = np.concatenate([curve.values for curve in curves.values()])
    set_scales(axes, every_x, np.concatenate([*drawn, *more]), log_x=log_x)


def _draw(axes: Axes, curve: BoundCurve, marker: str, colour: str) -> None:
    if curve.truth is not None:
        own: dict[str, Any] = {} if curve.sampled is not None else {"marker": marker}
        axes.plot(curve.values, curve.truth, color=colour, linewidth=2, markersize=5, **own)
    if curve.sampled is not None:
        axes.errorbar(
            curve.values,
            curve.sampled,
            yerr=curve.interval,
            linestyle="none",
            marker=marker,
            markersize=5,
            capsize=2.5,
            color=colour,
            zorder=3,
        )
    if not np.isnan(curve.bound).all():
        axes.plot(
            curve.values,
            curve.bound,
            color=colour,
            linestyle="--",
            linewidth=1.2,
            marker=marker,
            markersize=5,
            markerfacecolor="white",
        )


def _heading(curves: Mapping[str, BoundCurve]) -> str:
    """Return every curve's verdict; the statement is named once if all curves share it."""
    judged = {name: curve for name, curve in curves.items() if curve.outcomes}
    if not judged:
        return "no claim"
    statements = {curve.name for curve in judged.values()}
    shared = f"{statements.pop()}: " if len(statements) == 1 else ""
    if len(curves) == 1 and shared:
        return next(iter(judged.values())).heading
    found = [
        f"{name} {curve.verdict}" if shared else f"{name}: {curve.name} {curve.verdict}"
        for name, curve in judged.items()
    ]
    silent = [name for name in curves if name not in judged]
    rests = f"; no claim on {', '.join(silent)}" if silent else ""
    sampled = [curve for curve in judged.values() if not curve.is_computed]
    if sampled:
        which = "" if len(sampled) == len(judged) else " where no line is drawn"
        chance = max(curve.error_probability for curve in sampled)
        rests += f" (sampled{which}, wrong with probability {at_most(chance)})"
    return shared + "; ".join(found) + rests


def _names(curves: Mapping[str, BoundCurve]) -> Iterator[Any]:
    """Yield each curve's colour and marker."""
    from matplotlib.lines import Line2D

    styles = cycled(CURVE_STYLES, len(curves))
    for (name, curve), (marker, colour) in zip(curves.items(), styles, strict=True):
        line: Any = "none" if curve.truth is None else "-"
        yield Line2D([], [], color=colour, linestyle=line, marker=marker, markersize=5, label=name)


def _kinds(drawn: Collection[BoundCurve]) -> Iterator[Any]:
    """Yield the legend entries for the three kinds of marks."""
    from matplotlib.lines import Line2D

    if any(curve.truth is not None for curve in drawn):
        yield Line2D([], [], color=_GREY, linewidth=2, label="line: exact truth")
    samples = [curve for curve in drawn if curve.sampled is not None]
    if samples:
        fewest, most = (f([c.replicas or 0 for c in samples]) for f in (min, max))
        runs = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
        chance = at_most(max(curve.error_probability for curve in samples))
        kind = "Student's intervals" if all(c.is_computed for c in samples) else "intervals"
        text = (
            f"points: sampled mean, {runs} runs; any of a curve's\n"
            f"{kind} is wrong with probability {chance}"
        )
        yield Line2D([], [], color=_GREY, linestyle="none", marker="o", label=text)
    for kind in sorted({c.bound_name for c in drawn if not np.isnan(c.bound).all()}):
        yield Line2D(
            [],
            [],
            color=_GREY,
            linestyle="--",
            linewidth=1.2,
            marker="o",
            markerfacecolor="white",
            label=f"dashes: {kind}",
        )


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
    """Return the numbers that determine the vertical scale, without small parts of a bound."""
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
    """Return the kind of intervals, which is Student's t if the verdict is on a computed truth."""
    return "Student's intervals" if curve.is_computed else "intervals"


def _without_width(curve: BoundCurve) -> str:
    """Return an explanation of marks that have no bar, if there are any."""
    assert curve.sampled is not None
    assert curve.interval is not None
    drawn = np.isfinite(curve.sampled)
    if (curve.interval[drawn] == 0).any():
        return "; width zero: all runs agree, which is no certainty"
    if not np.isfinite(curve.interval[drawn]).all():
        return "; no bar: rare events were not seen"
    return ""


def _line(axes: Axes, curve: BoundCurve, values: FloatArray, *, label: str, **look: Any) -> None:
    """Draw a line over numbers, or a dash over each case."""
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
    """Return the limits of each value's stretch, which are halfway to its neighbours."""
    values = curve.values
    if values.size == 1 or curve.labels:
        return np.concatenate([values - 0.5, values[-1:] + 0.5])
    between = np.sqrt(values[1:] * values[:-1]) if values.min() > 0 else None
    if between is None:
        between = 0.5 * (values[1:] + values[:-1])
    return np.concatenate([values[:1], between, values[-1:]])
