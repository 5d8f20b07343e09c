"""Common code of figures: axes, labels, scales, styles that are legible in grey, and files.

Lines differ in style and marker as well as in colour (Okabe and Ito's), so that figures are
legible in grey and to the colour-blind.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fltheory import validation
from fltheory.files.whole_file import write_whole
from fltheory.validation import FloatArray
from fltheory.verify import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# (marker, colour) of one of several curves on an axis; neighbours differ in lightness as well.
CURVE_STYLES = (
    ("o", "#0072B2"),
    ("s", "#D55E00"),
    ("^", "#000000"),
    ("D", "#CC79A7"),
    ("v", "#009E73"),
    ("P", "#E69F00"),
)
# (line style, colour) of a level or a part of a bound.
PART_STYLES: tuple[tuple[Any, str], ...] = (
    (":", "#009E73"),
    ("-.", "#CC79A7"),
    ((0, (3, 1, 1, 1, 1, 1)), "#E69F00"),
)
# These also differ in lightness.
OUTCOME_COLOURS = {
    Outcome.HOLDS: "#56B4E9",
    Outcome.REFUTED: "#7A2B00",
    Outcome.INAPPLICABLE: "#EEEEEE",
    Outcome.UNDECIDED: "#F0E442",
}
MARKS = ("*", "X", "p", "h", "d", "8")
_SIZE = (6.8, 5.0)
_MARGIN = 1.6
_TITLE_WIDTH = 84
_MOST_EMPTY_DECADES = 3.0
_CUT = 0.5  # the size that remains of a stretch that is cut, in decades
_CUT_LOOK: Mapping[str, Any] = {
    "facecolor": "#F4F4F4",
    "edgecolor": "#999999",
    "linestyle": (0, (1, 2)),
    "linewidth": 0.8,
    "zorder": 0.5,
}
_NO_BREAK = "\N{NO-BREAK SPACE}"
_MOST_NAMED_TICKS, _SHORT_RANGE = 8, 100.0


def blank() -> tuple[Figure, Axes]:
    """Return a figure with one empty axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.grid(alpha=0.25)
    return figure, axes


def set_title(axes: Axes, *lines: str, width: int = _TITLE_WIDTH) -> None:
    """Write the nonempty lines above the axes, wrapping lines that are too long."""
    axes.set_title("\n".join(_wrapped(line, width) for line in lines if line), fontsize=9.5)


def _wrapped(line: str, width: int) -> str:
    """Wrap a line that is too long, but not within mathematics."""
    whole = re.sub(r"\$[^$]*\$", lambda found: found[0].replace(" ", _NO_BREAK), line)
    return textwrap.fill(whole, width).replace(_NO_BREAK, " ")


def label(text: str) -> str:
    """Return LaTeX that matplotlib's mathtext can read, with braces around single letters."""
    text = re.sub(r"\\(mathbb|mathrm|bar)\s*([A-Za-z])(?![A-Za-z])", r"\\\1{\2}", text)
    text = re.sub(r"\\frac\s*(\w)", r"\\frac{\1}", text)
    return re.sub(r"(\\frac\{[^{}]*\})(\w)", r"\1{\2}", text)


def cycled(styles: Sequence[Any], count: int) -> list[Any]:
    """Return the given number of styles, starting again from the first if there are fewer."""
    return [styles[index % len(styles)] for index in range(count)]


def set_scales(axes: Axes, x: FloatArray, y: FloatArray, *, log_x: bool) -> None:
    """Use logarithmic scales if all values are positive; intervals may end below the axis."""
    if log_x and x.min() > 0 and np.unique(x).size > 1:
        axes.set_xscale("log")
        _name_few(axes, np.unique(x))
    finite = y[np.isfinite(y)]
    if finite.size and finite.min() > 0:
        axes.set_yscale("log")
        axes.set_ylim(finite.min() / _MARGIN, finite.max() * _MARGIN)
        _cut_empty_decades(axes)
    elif finite.size and finite.max() > 0:
        axes.set_yscale("symlog", linthresh=float(np.abs(finite[finite != 0]).min()))


def _cut_empty_decades(axes: Axes) -> None:
    """Shorten the widest stretch of a logarithmic axis in which nothing is drawn, and say so.

    If a bound is millions of times the truth, both would be flat lines at the edges.
    """
    low, high = (float(np.log10(limit)) for limit in axes.get_ylim())
    below, above = _widest_gap(_drawn_decades(axes, low, high))
    if above - below < _MOST_EMPTY_DECADES:
        return
    first, last = math.ceil(below), math.floor(above)  # whole decades, so that ticks are kept
    powers = np.array([low - 1, first, last, high + 1])
    heights = powers - np.array([0, 0, last - first - _CUT, last - first - _CUT])

    def forward(values: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.interp(np.log10(values), powers, heights)

    def inverse(places: FloatArray) -> FloatArray:
        shown: FloatArray = 10.0 ** np.interp(places, heights, powers)
        return shown

    axes.set_yscale("function", functions=(forward, inverse))
    axes.set_ylim(10**low, 10**high)
    decades = np.arange(math.ceil(low), math.floor(high) + 1)
    kept = decades[(decades <= first) | (decades >= last)]
    axes.set_yticks(10.0**kept, [f"$10^{{{power}}}$" for power in kept])
    axes.set_yticks([], minor=True)
    axes.axhspan(10.0**first, 10.0**last, **_CUT_LOOK)
    axes.text(
        0.5,
        float(inverse(np.array([first + _CUT / 2]))[0]),
        f"{last - first:.0f} empty decades left out",
        transform=axes.get_yaxis_transform(),
        ha="center",
        va="center",
        fontsize=7,
        color="#555555",
    )


def _drawn_decades(axes: Axes, low: float, high: float) -> list[tuple[float, float]]:
    """Return the stretches of the axis that lines and bars cross, from the lowest."""
    from matplotlib.collections import LineCollection

    bars = [group for group in axes.collections if isinstance(group, LineCollection)]
    paths = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]
    paths += [segment[:, 1] for bar in bars for segment in bar.get_segments() if segment.size]
    found: list[tuple[float, float]] = []
    for path in paths:
        with np.errstate(divide="ignore"):
            places = np.clip(np.log10(np.maximum(path, 0.0)), low, high)
        steps = np.stack([places, np.append(places[1:], np.nan)])  # to the next point, or none
        found += zip(np.fmin(*steps), np.fmax(*steps), strict=True)
    return sorted((start, end) for start, end in found if start < high and end > low)


def _widest_gap(stretches: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the widest gap between these stretches."""
    widest = (0.0, 0.0)
    reached = math.inf
    for start, end in stretches:
        if start - reached > widest[1] - widest[0]:
            widest = (reached, start)
        reached = end if reached == math.inf else max(reached, end)
    return widest


def _name_few(axes: Axes, values: FloatArray) -> None:
    """Put ticks at the values themselves if ticks at powers of ten would be too far apart."""
    if values.size <= _MOST_NAMED_TICKS and values[-1] < _SHORT_RANGE * values[0]:
        axes.set_xticks(values, [f"{value:.3g}" for value in values])
        axes.set_xticks([], minor=True)


def draw_levels(axes: Axes, levels: Mapping[str, float]) -> None:
    """Draw named heights across the whole axis."""
    styles = cycled(PART_STYLES, len(levels))
    for (name, height), (style, colour) in zip(levels.items(), styles, strict=True):
        axes.axhline(height, linestyle=style, color=colour, linewidth=1.2, label=name)


def draw_points(axes: Axes, points: Mapping[str, tuple[float, float]]) -> None:
    """Draw named points, each with its own mark."""
    for (name, (x, y)), mark in zip(points.items(), cycled(MARKS, len(points)), strict=True):
        axes.plot(
            x,
            y,
            linestyle="none",
            marker=mark,
            markersize=11,
            markerfacecolor="#F0E442",
            markeredgecolor="black",
            zorder=4,
            label=name,
        )


def legend_below(figure: Figure, handles: Sequence[Any] | None = None) -> None:
    """Put the legend below the axes, where it hides nothing."""
    given = {} if handles is None else {"handles": handles}
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, **given)


_SUFFIXES = (".png", ".svg")


@contextmanager
def default_style() -> Iterator[None]:
    """Draw as matplotlib does by default, whatever the user's own settings are.

    The user's settings may need LaTeX or missing fonts, and a figure should look the same
    everywhere.
    """
    from matplotlib import rc_context, rcdefaults, rcParams

    with rc_context():
        rcdefaults()
        rcParams["svg.hashsalt"] = "fltheory"
        yield


def write_figure(figure: Figure | Callable[[], Figure], path: Path | str) -> None:
    """Write a figure as PNG or SVG, by suffix; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure, or callable
        A figure, or a function that draws it.
    path : Path or str

    Raises
    ------
    ValueError
        If the suffix is different (checked before anything is drawn), or if the argument is not a
        figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> write_figure(Figure(), "bound.pdf")
    Traceback (most recent call last):
    ValueError: out must end in .png or .svg, got 'bound.pdf'
    """
    path = validation.path("path", path)
    if path.suffix not in _SUFFIXES:
        raise ValueError(f"out must end in {' or '.join(_SUFFIXES)}, got {str(path)!r}")
    write_whole(path, drawn(figure, path.suffix))


def drawn(figure: Figure | Callable[[], Figure], suffix: str) -> bytes:
    """Return the bytes of a figure's file."""
    from matplotlib.figure import Figure

    metadata = {"Date": None} if suffix == ".svg" else {"Software": "fltheory"}
    with default_style():
        content = BytesIO()
        made = figure() if callable(figure) else figure
        validation.instance_of("figure", made, Figure, "a figure, or what draws one")
        made.savefig(content, format=suffix[1:], dpi=160, metadata=metadata)
    return content.getvalue()
