"""PAC learnability as tables and figures: error against samples, with a server's data or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from fltheory.learnability import (
    Impossibility,
    ServerAssistedSystem,
    alike_clients,
    drawn_clients,
    impossibility,
    sample_server_assisted,
    split_clients,
)
from fltheory.report.figure_file import write_figure
from fltheory.theorems import get
from fltheory.theorems.learning_claim import DecayClaim, Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Progress = Callable[[int, int, str], None]

PLAIN, ASSISTED, SERVER, FLOOR = "#7A2B00", "#0072B2", "#009E73", "#555555"
FIGURES = ("pac-impossibility", "pac-server-data", "pac-no-worse")
_LONGEST_FRACTION = 10**9


def impossibility_table(M: int, n: int, m: int) -> Table:
    """Lay out Theorem 1's construction, and what choosing clients makes of it, case by case.

    Raises
    ------
    ValueError
        As `fltheory.learnability.impossibility`.
    """
    cases = {
        "samples chosen (the proof)": impossibility(M, n, m),
        "clients hold one point each": split_clients(M, n, m),
        "each client's point drawn": drawn_clients(M, n, m),
        "clients alike, all samples drawn": alike_clients(M, n, m),
    }
    table = Table(
        title=f"M = {M}, n = {n}, m = {m}: epsilon = {next(iter(cases.values())).epsilon}"
    )
    for heading in ("case", "P(x_2)", "P(hidden)", "P(error > epsilon)", "no coins", "E error"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for name, figures in cases.items():
        table.add_row(name, *(_short(value) for value in _columns(figures)))
    return table


def _columns(figures: Impossibility) -> Sequence[object]:
    return (
        figures.rare_probability,
        figures.hidden_probability,
        figures.minimax_probability,
        figures.minimax_deterministic,
        figures.minimax_expected_error,
    )


def _short(value: object) -> str:
    """Return a fraction if it is short, else its value."""
    if getattr(value, "denominator", 1) < _LONGEST_FRACTION:
        return str(value)
    return f"{float(value):.6g}"  # type: ignore[arg-type]


@dataclass(frozen=True)
class Comparison:
    """SA-FL beside the server alone, at one number of the server's samples.

    Attributes
    ----------
    regime : str
    n_server, n_clients : int
    together, server_only : float
        Mean excess errors on P.
    first_condition : float
        How often Theorem 3's first condition is met.
    offset_over_complexity : float
        ``eps_P(h_Q*)/A(n_T, delta)``, bounded if the second condition is met.
    """

    regime: str
    n_server: int
    n_clients: int
    together: float
    server_only: float
    first_condition: float
    offset_over_complexity: float


def compare_with_server(
    regime: str, system: ServerAssistedSystem, size: int, replicas: int, rng: np.random.Generator
) -> Comparison:
    """Sample SA-FL and the server alone on the same data, with Theorem 3's conditions."""
    n_server, n_clients = system.split(size)
    drawn = sample_server_assisted(
        system.server,
        system.clients(size),
        n_server,
        n_clients,
        replicas,
        rng,
        target=system.target,
    )
    offset = float(system.target.excess(system.training(size).best))
    return Comparison(
        regime,
        n_server,
        n_clients,
        float(drawn.together.mean()),
        float(drawn.server_only.mean()),
        float(drawn.no_worse_on_server.mean()),
        offset / system.complexity(size),
    )


def comparisons(
    sizes: Sequence[int] = (30, 100, 300, 1000),
    replicas: int = 400,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> list[Comparison]:
    """Return SA-FL beside the server alone over the regimes of Theorem 3."""
    regimes = get("pac/3").regimes
    pairs = [(name, size) for name in regimes for size in sizes]
    found = []
    for done, (name, size) in enumerate(pairs):
        if progress is not None:
            progress(done, len(pairs), f"{name}, n_T = {size}")
        system = regimes[name].setting
        assert isinstance(system, ServerAssistedSystem)
        rng = np.random.default_rng([seed, done])
        found.append(compare_with_server(name, system, size, replicas, rng))
    return found


def comparison_table(rows: Sequence[Comparison]) -> Table:
    """Lay out SA-FL beside the server alone."""
    table = Table()
    headings = ("regime", "n_T", "n_S", "SA-FL", "server alone", "cond. 1", "eps_P(h_Q*)/A")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "regime" else "right")
    for row in rows:
        table.add_row(
            row.regime,
            f"{row.n_server:,}",
            f"{row.n_clients:,}",
            f"{row.together:.3g}",
            f"{row.server_only:.3g}",
            f"{row.first_condition:.0%}",
            f"{row.offset_over_complexity:.3g}",
        )
    return table


def impossibility_figure(M: int = 10, m: int = 5) -> Figure:
    """Draw the least expected error against n: plain FL, and with n samples of the server's."""
    axes, figure = _axes("samples of each client, n", "least expected error over all learners")
    sizes = [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120]
    figures = [impossibility(M, n, m) for n in sizes]
    plain = [float(item.minimax_expected_error) for item in figures]
    few = [item.minimax_error_with_server(10) for item in figures]
    many = [item.minimax_error_with_server(n) for item, n in zip(figures, sizes, strict=True)]
    axes.plot(sizes, plain, color=PLAIN, marker="o", label="plain FL, samples chosen")
    axes.plot(sizes, few, color=SERVER, marker="^", label="SA-FL, 10 samples at the server")
    axes.plot(sizes, many, color=ASSISTED, marker="s", label="SA-FL, n samples at the server")
    _floor(axes, float(figures[0].epsilon))
    axes.set(ylim=(1e-6, 1), title=f"Theorem 1's construction, M = {M}, m = {m}: exact")
    axes.legend(fontsize=8)
    return figure


def server_data_figure() -> Figure:
    """Draw thresholds' error against n: plain FL, SA-FL with a share or a number of samples."""
    axes, figure = _axes("all samples, n = n_T + n_S", "E eps_P of the worst empirical minimiser")
    lines = (
        ("clients only", "plain FL", PLAIN, "o"),
        ("ten server samples", "SA-FL, n_T = 10", SERVER, "^"),
        ("clients miss the middle", "SA-FL, n_T = n/10", ASSISTED, "s"),
        ("noisy, clients miss the middle", "SA-FL, n_T = n/10, beta_Q = 1/2", "black", "D"),
    )
    for regime, label, colour, marker in lines:
        sizes, measured = _measured("pac/2", regime)
        values = [item.value for item in measured]
        axes.plot(sizes, values, color=colour, marker=marker, label=label)
    # The clients cover half of P's mass, as if half of them took part.
    _floor(axes, 1 / 16)
    axes.set(title="Theorem 2 on thresholds: clients miss the middle half of P")
    axes.legend(fontsize=8)
    return figure


def no_worse_figure(rows: Sequence[Comparison]) -> Figure:
    """Draw SA-FL beside the server alone over n_T, regime by regime of Theorem 3."""
    from matplotlib.figure import Figure

    regimes = list(dict.fromkeys(row.regime for row in rows))
    figure = Figure(figsize=(3.2 * len(regimes), 3.6), layout="constrained")
    panels = figure.subplots(1, len(regimes), sharey=True, squeeze=False)[0]
    for axes, regime in zip(panels, regimes, strict=True):
        chosen = [row for row in rows if row.regime == regime]
        sizes = [row.n_server for row in chosen]
        alone = [row.server_only for row in chosen]
        axes.loglog(sizes, alone, color=SERVER, marker="^", label="server alone")
        together = [row.together for row in chosen]
        axes.loglog(sizes, together, color=ASSISTED, marker="s", label="SA-FL, n_S = 4 n_T")
        axes.set(xlabel="n_T", title=regime)
        axes.title.set_fontsize(9)
    panels[0].set(ylabel="E eps_P of the worst empirical minimiser")
    panels[0].legend(fontsize=8)
    return figure


def write_learnability_figures(folder: Path, suffix: str, rows: Sequence[Comparison]) -> list[Path]:
    """Write the three figures, as PNG or SVG; return their paths.

    Raises
    ------
    ValueError
        For another suffix.
    """
    draws = (impossibility_figure, server_data_figure, lambda: no_worse_figure(rows))
    paths = [folder / f"{name}{suffix}" for name in FIGURES]
    for draw, path in zip(draws, paths, strict=True):
        write_figure(draw, path)
    return paths


@cache
def _measured(identifier: str, regime: str) -> tuple[tuple[int, ...], list[Measurement]]:
    claim = get(identifier)
    assert isinstance(claim, DecayClaim)
    system = claim.regimes[regime].setting
    assert isinstance(system, ServerAssistedSystem)
    rng = np.random.default_rng(0)
    return system.sizes, [claim.quantity.measure(system, size, 200, rng) for size in system.sizes]


def _axes(xlabel: str, ylabel: str) -> tuple[Axes, Figure]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    return axes, figure


def _floor(axes: Axes, level: float) -> None:
    axes.axhline(level, color=FLOOR, linestyle=":", label=f"(1 - omega)/8 = {level:g}")
