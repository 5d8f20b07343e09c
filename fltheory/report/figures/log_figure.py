"""A figure of a log of who was online, showing when, how often and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fltheory.logs.description import LogDescription

_MOST_ROWS = 400
_MOST_COLUMNS = 600


def log_figure(found: LogDescription) -> Figure:
    """Draw the log's raster, the clients' shares of rounds and the lengths of stays."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    top, left, right = figure.subplot_mosaic([["raster", "raster"], ["shares", "stays"]]).values()
    _raster(top, found)
    _shares(left, found)
    _stays(right, found)
    return figure


def _raster(axes: Axes, found: LogDescription) -> None:
    log = found.log
    order = np.argsort(log.marginals, kind="stable")
    rows = order[_some(log.n_clients, _MOST_ROWS)]
    columns = _some(log.n_rounds, _MOST_COLUMNS)
    # Only stays among the rounds shown, so that the others take no space.
    place = np.full(log.n_clients, -1)
    place[rows] = np.arange(len(rows))
    shown_stays = place[log.who] >= 0
    who = place[log.who[shown_stays]]
    change = np.zeros((len(rows), len(columns) + 1), dtype=np.int32)
    np.add.at(change, (who, np.searchsorted(columns, log.first[shown_stays])), 1)
    np.add.at(change, (who, np.searchsorted(columns, log.stop[shown_stays])), -1)
    there = np.cumsum(change, axis=1)[:, :-1]
    axes.imshow(
        there,
        aspect="auto",
        origin="lower",
        cmap="Greys",
        interpolation="nearest",
        vmin=0,
        vmax=1,
    )
    ticks = np.unique(np.linspace(0, len(columns) - 1, 6).astype(int))
    axes.set_xticks(ticks, [f"{columns[tick]}" for tick in ticks])
    shown = "" if len(columns) == log.n_rounds else f", {len(columns)} of {log.n_rounds} shown"
    clients = "" if len(rows) == log.n_clients else f", {len(rows)} of {log.n_clients} shown"
    axes.set(xlabel=f"round{shown}", ylabel=f"clients, the rarest first{clients}")
    axes.set_title("Who was there", loc="left")


def _shares(axes: Axes, found: LogDescription) -> None:
    ordered = found.marginals[np.argsort(found.marginals[:, 0], kind="stable")]
    places = np.arange(len(ordered))
    axes.fill_between(places, ordered[:, 1], ordered[:, 2], color="#9ecae1", step="mid", lw=0)
    axes.plot(places, ordered[:, 0], color="#08519c", lw=1.5)
    axes.set(xlabel="clients, the rarest first", ylabel="share of rounds", ylim=(0, 1))
    axes.set_title("How often, with 95% intervals", loc="left")


def _stays(axes: Axes, found: LogDescription) -> None:
    log = found.log
    lengths = np.sort(log.stop - log.first)
    if lengths.size:
        longer = 1 - np.arange(lengths.size) / lengths.size
        chosen = _some(lengths.size, 2000)
        axes.step(lengths[chosen], longer[chosen], where="post", color="#08519c")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="length of a stay, rounds",
        ylabel="share as long or longer",
    )
    axes.set_title("For how long", loc="left")


def _some(count: int, most: int) -> NDArray[np.int64]:
    """Return at most ``most`` equidistant numbers from 0 .. count - 1."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
