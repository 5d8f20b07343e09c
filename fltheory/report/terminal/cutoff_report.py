"""FedAU's cut-offs and their weight errors, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from rich.markup import escape
from rich.table import Table

from fltheory import verify
from fltheory.algorithms import FedAU
from fltheory.engines import Setting
from fltheory.fedau import BestCutoff, weight_errors
from fltheory.logs import AvailabilityLog
from fltheory.long_work.progress import Progress
from fltheory.participation import Bernoulli
from fltheory.problems import QuadraticProblem
from fltheory.report.figures.figure import figure
from fltheory.report.terminal.log_report import first_and_last
from fltheory.theorems import get

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 25
_MOST_DRAWN, _FEWEST_DRAWN = 10**9, 30


def cutoff_table(found: BestCutoff) -> Table:
    """Lay out one row per choice: its cut-off, its error, and the error over the best one."""
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
        alike = choice.error == found.best.error  # both may be zero for a client always present
        times = 1.0 if alike else choice.error / found.best.error if found.best.error else np.inf
        table.add_row(name, f"{choice.cutoff:g}", f"{choice.error:.6g}", f"{times:.3g}")
    return table


def client_cutoff_table(
    log: AvailabilityLog, found: Mapping[str, BestCutoff], common: float
) -> Table:
    """Lay out, for each client (or only the first and last), the best cut-off for it alone.

    Parameters
    ----------
    log : AvailabilityLog
    found : mapping of str to BestCutoff
        The best cutoff of each client that was seen at least once.
    common : float
        The best common cut-off.
    """
    table = Table()
    for heading in ("client", "p", "best K", "weight error", f"expected gap / {common:g}"):
        table.add_column(heading, justify="right", no_wrap=True)
    shares = log.marginals.tolist()
    for place in first_and_last(log.n_clients):
        if place is None:
            table.add_row(*["..."] * 5)
            continue
        name, share = log.clients[place], shares[place]
        if name not in found:
            table.add_row(escape(name), "0", "-", "-", "-")
        else:
            best = found[name].best
            numbers = f"{share:.6g}", f"{best.cutoff:g}", f"{best.error:.6g}"
            table.add_row(escape(name), *numbers, f"{1 / share / common:.3g}")
    return table


def log_cutoff_figure(log: AvailabilityLog, rounds: int, found: BestCutoff) -> Figure:
    """Draw the weight error along a log over the cut-off."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    cutoffs = np.unique(np.rint(np.geomspace(1, rounds, _POINTS)))
    axes.plot(cutoffs, weight_errors(log, rounds, cutoffs), label="along the log")
    for name, mark in (("best", found.best), ("50", found.experiments)):
        axes.plot(mark.cutoff, mark.error, "o", label=f"{name}: K = {mark.cutoff:g}")
    axes.axhline(found.none.error, color="0.4", ls=":", label="no cut-off")
    axes.set(xscale="log", yscale="log", xlabel="cut-off $K$", ylabel="weight error")
    axes.set_title(f"FedAU's weights along {rounds} rounds", loc="left", size=10)
    axes.legend(fontsize=8)
    return figure


def cutoff_figure(
    p: ArrayLike,
    rounds: int,
    found: BestCutoff,
    *,
    replicas: int = 1000,
    progress: Progress | None = None,
) -> Figure:
    """Draw the weight error over the cut-off and its bound, with the best and the paper's marked.

    The bound is that of Theorem 3, with the constants of its proof.

    Parameters
    ----------
    p : float or array, (n,)
        Participation probabilities.
    rounds : int
        T.
    found : BestCutoff
    replicas : int
        Number of runs of the algorithm itself at each cut-off. There are fewer if they would take
        more than about a minute, and none if fewer than 30 would be left.
    progress : callable, optional
        Called with (cut-offs done, cut-offs, the next one).
    """
    chances = np.atleast_1d(np.asarray(p, dtype=np.float64))
    clients = QuadraticProblem([[1.0]], np.zeros((chances.size, 1)))
    marks = (found.best, found.corollary, found.experiments)
    last = max(2.0, min(float(rounds), 3 * max(mark.cutoff for mark in marks)))
    cutoffs = np.unique(np.rint(np.geomspace(1, last, _POINTS)))

    def setting(cutoff: float) -> Setting:
        if progress is not None:
            progress(int(np.searchsorted(cutoffs, cutoff)), cutoffs.size, f"K = {cutoff:g}")
        fedau = FedAU(0.1, 1, cutoff=int(cutoff))
        return Setting(fedau, clients, Bernoulli(chances), rounds, [0.0])

    affordable = int(_MOST_DRAWN // (cutoffs.size * rounds * chances.size))
    drawn = min(replicas, affordable)
    curve = verify.curve(
        get("fedau/3", reading="derived"),
        setting,
        cutoffs,
        variable="cut-off $K$",
        replicas=drawn if drawn >= _FEWEST_DRAWN else 0,
    )
    names = ("best", r"$\log_c T$", "50")
    return figure(
        curve,
        title=f"T = {rounds}",
        points={
            f"{name}: K = {mark.cutoff:g}": (mark.cutoff, mark.error)
            for mark, name in zip(marks, names, strict=True)
        },
        levels={"no cut-off": found.none.error},
    )
