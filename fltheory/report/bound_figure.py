"""A theorem's bound, the exact truth and the sampled mean on one axis.

Lines differ in style and marker as well as in colour (Okabe and Ito's), so that figures are
legible in grey and to the colour-blind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fltheory.engines import Trajectory
from fltheory.report.figure_file import write_figure
from fltheory.validation import FloatArray
from fltheory.verify import BoundCurve, Outcome

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
_PART_STYLES = ((":", "#009E73"), ("-.", "#CC79A7"), ((0, (3, 1, 1, 1, 1, 1)), "#E69F00"))
_RUN_STYLES = (
    ("-", "o", "#0072B2"),
    ("--", "s", "#D55E00"),
    ("-.", "^", "#009E73"),
    (":", "D", "#CC79A7"),
    ((0, (5, 1)), "v", "#E69F00"),
    ((0, (1, 1)), "P", "#56B4E9"),
)
_SHOWN_SAMPLES = 12
_SIZE = (6.4, 4.2)


def bound_figure(curve: BoundCurve, *, title: str = "", log_x: bool = True) -> Figure:
    """Draw a theorem's two sides over one variable, the verdict in the title.

    Where the theorem does not apply the axis is hatched; where it is refuted, it is grey.

    Parameters
    ----------
    curve : BoundCurve
        From `fltheory.verify.rounds_curve` or `sweep_curve`, of any theorem.
    title : str, optional
        A second line of the title.
    log_x : bool
        Whether the horizontal axis is logarithmic.

    Examples
    --------
    >>> from fltheory import theorems
    >>> from fltheory.verify import rounds_curve
    >>> theorem = theorems.get("sa-fl/5", reading="derived")
    >>> curve = rounds_curve(theorem, theorem.regimes["q small"].setting, replicas=50)
    >>> figure = bound_figure(curve)
    >>> figure.axes[0].get_title()
    'sa-fl/5 (derived): HOLDS'
    """
    figure, axes = _blank()
    _shade(axes, curve)
    if curve.truth is not None:
        axes.plot(curve.values, curve.truth, label="exact truth", **_TRUTH)
    if curve.sampled is not None:
        axes.errorbar(
            curve.values,
            curve.sampled,
            yerr=curve.interval,
            label=_sampled_label(curve),
            **_SAMPLED,
        )
    axes.plot(curve.values, curve.bound, label="bound", **_BOUND)
    for (style, colour), (name, values) in zip(
        _cycled(_PART_STYLES, len(curve.parts)), curve.parts.items(), strict=True
    ):
        axes.plot(curve.values, values, linestyle=style, color=colour, linewidth=1.2, label=name)
    heading = f"{curve.name}: {curve.verdict}"
    axes.set(
        xlabel=_label(curve.variable),
        ylabel=_label(curve.quantity),
        title=f"{heading}\n{title}" if title else heading,
    )
    shown = [array for array in (curve.truth, curve.sampled, curve.bound) if array is not None]
    _scales(axes, curve.values, np.concatenate(shown), log_x)
    axes.legend(fontsize=8)
    return figure


def trajectory_figure(
    runs: Mapping[str, Trajectory],
    samples: Mapping[str, Trajectory] | None = None,
    *,
    field: str = "squared_distance",
    quantity: str = r"$\mathbb{E}\,\|x_r - x^*\|^2$",
    variable: str = "$r$",
    title: str = "",
    limits: Mapping[str, float] | None = None,
) -> Figure:
    """Draw the errors of several runs, exact as lines and sampled as points with intervals.

    Parameters
    ----------
    runs : mapping of str to Trajectory
        Exact ones, by the name in the legend.
    samples : mapping of str to Trajectory, optional
        Sampled ones, under the same names or others; their bars are three standard errors.
    field : str
        Which of a trajectory's arrays to draw.
    quantity, variable, title : str
        Labels; mathematics between dollars.
    limits : mapping of str to float, optional
        Where runs end up, drawn at the right-hand edge.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.engines import exact
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> clients = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> run = exact(FedAvg(0.5, 1), clients, UniformSubset(2, 1), 20, [3.0])
    >>> len(trajectory_figure({"FedAvg": run}).axes[0].lines)
    1
    """
    figure, axes = _blank()
    samples, limits = samples or {}, limits or {}
    names = list(dict.fromkeys([*runs, *samples]))
    drawn = [run[field] for run in (*runs.values(), *samples.values())]
    for name, (style, marker, colour) in zip(names, _cycled(_RUN_STYLES, len(names)), strict=True):
        if name in runs:
            axes.plot(runs[name][field], linestyle=style, color=colour, linewidth=1.8, label=name)
        if name in samples:
            label = None if name in runs else name
            _draw_samples(axes, samples[name], field, marker, colour, label)
        if name in limits:
            axes.annotate(
                "",
                xy=(1.0, limits[name]),
                xytext=(1.04, limits[name]),
                xycoords=axes.get_yaxis_transform(),
                arrowprops={"arrowstyle": "-|>", "color": colour},
                annotation_clip=False,
            )
    axes.set(xlabel=_label(variable), ylabel=_label(quantity), title=title)
    _scales(axes, np.ones(1), np.concatenate(drawn), log_x=False)
    axes.legend(fontsize=8)
    return figure


def lines_figure(
    x: FloatArray,
    lines: Mapping[str, FloatArray],
    *,
    variable: str,
    quantity: str,
    title: str = "",
    points: Mapping[str, tuple[float, float]] | None = None,
    log_x: bool = False,
    log_y: bool = True,
) -> Figure:
    """Draw several quantities over one variable, and named points beside them.

    Parameters
    ----------
    x : array, (n,), or (k, n) where each line has its own
    lines : mapping of str to array, (n,)
    variable, quantity, title : str
        Labels; mathematics between dollars.
    points : mapping of str to (x, y), optional
    log_x, log_y : bool

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 4.0])
    >>> figure = lines_figure(x, {"1/x": 1 / x}, variable="$x$", quantity="$y$")
    >>> figure.axes[0].get_yscale()
    'log'
    """
    figure, axes = _blank()
    shared = np.asarray(x, dtype=np.float64)
    every = np.broadcast_to(shared, (len(lines), shared.shape[-1]))
    styles = _cycled(_RUN_STYLES, len(lines) + len(points or {}))
    for (name, values), own, (style, _, colour) in zip(lines.items(), every, styles, strict=False):
        axes.plot(own, values, linestyle=style, color=colour, linewidth=1.8, label=name)
    marked = list((points or {}).items())
    for (name, (across, up)), (_, marker, colour) in zip(marked, reversed(styles), strict=False):
        axes.plot(
            across, up, linestyle="none", marker=marker, markersize=8, color=colour, label=name
        )
    axes.set(xlabel=_label(variable), ylabel=_label(quantity), title=title)
    axes.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    axes.legend(fontsize=8)
    return figure


def write_bound(curve: BoundCurve, path: Path) -> None:
    """Write the figure of a curve as PNG or SVG, by suffix; the same curve gives the same bytes.

    Raises
    ------
    ValueError
        For another suffix.
    """
    write_figure(lambda: bound_figure(curve), path)


def _blank() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.title.set_fontsize(10)
    axes.grid(alpha=0.25)
    return figure, axes


def _label(text: str) -> str:
    """Return LaTeX as matplotlib's own mathematics reads it: arguments of a letter in braces."""
    text = re.sub(r"\\(mathbb|mathrm|bar)\s*([A-Za-z])(?![A-Za-z])", r"\\\1{\2}", text)
    return re.sub(r"\\frac(\w)(\w)", r"\\frac{\1}{\2}", text)


def _cycled(styles: tuple[Any, ...], count: int) -> list[Any]:
    return [styles[index % len(styles)] for index in range(count)]


def _sampled_label(curve: BoundCurve) -> str:
    return (
        f"sampled mean, {curve.replicas} runs; "
        f"all intervals hold with {100 * (1 - curve.error_probability):.4g} %"
    )


def _draw_samples(
    axes: Axes, run: Trajectory, field: str, marker: str, colour: str, label: str | None
) -> None:
    rounds = np.unique(np.linspace(0, run.rounds, _SHOWN_SAMPLES).round().astype(int))
    bars = None
    if run.standard_error is not None:
        bars = 3 * run.standard_error[field][rounds]
    axes.errorbar(
        rounds,
        run[field][rounds],
        yerr=bars,
        linestyle="none",
        marker=marker,
        markersize=4,
        capsize=2.5,
        color=colour,
        label=label,
    )


def _scales(axes: Axes, x: FloatArray, y: FloatArray, log_x: bool) -> None:
    """Use logarithms where all that is drawn has one."""
    if log_x and x.min() > 0 and x.size > 1:
        axes.set_xscale("log")
    finite = y[np.isfinite(y)]
    if finite.size and finite.min() > 0:
        axes.set_yscale("log")
    elif finite.size and finite.max() > 0:
        axes.set_yscale("symlog", linthresh=float(np.abs(finite[finite != 0]).min()))


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
    edges = _edges(curve.values)
    named: set[Outcome] = set()
    for left, right, outcome in zip(edges, edges[1:], curve.outcomes, strict=False):
        if outcome in _SHADES:
            text, look = _SHADES[outcome]
            label = None if outcome in named else text
            axes.axvspan(left, right, linewidth=0, label=label, zorder=0, **look)
            named.add(outcome)


def _edges(values: FloatArray) -> FloatArray:
    """Return the limits of each value's stretch: halfway to its neighbours."""
    if values.size == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    between = np.sqrt(values[1:] * values[:-1]) if values.min() > 0 else None
    if between is None:
        between = 0.5 * (values[1:] + values[:-1])
    return np.concatenate([values[:1], between, values[-1:]])
