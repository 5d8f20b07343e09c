"""Optimal aggregation weights, as a table and as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.markup import escape
from rich.table import Table

from fltheory.argument_kinds import checks_kinds
from fltheory.claims.curves import BoundCurve
from fltheory.decimals import how_many
from fltheory.report.figures.figure import draw_curve, heights
from fltheory.report.figures.figure_axes import (
    default_style,
    label,
    legend_below,
    set_scales,
    set_title,
)
from fltheory.report.terminal.log_report import doubts, first_and_last, first_names
from fltheory.validation import FloatArray
from fltheory.weights.client_weights import ClientWeights, Training
from fltheory.weights.optimum import OptimalWeights, solve
from fltheory.weights.trade_off import TradeOff

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fltheory.logs.description import LogDescription

_TARGET_COLOUR, _IMPORTANCE_COLOUR, _WEIGHT_COLOUR = "#E69F00", "#56B4E9", "#7A2B00"
_AVAILABILITY_COLOUR = "#009E73"
_MOST_NAMED_BARS = 30
_ALPHA = r"$\alpha_k$"
_MOST_BARS = 200
_TITLE_WIDTH = 60
# Prices of bias on the curve, as multiples of the problem's price, and the limit below which a bias
# counts as zero.
_PRICES = np.geomspace(1e-4, 1e4, 33)
_LEAST_DIVERGENCE = 1e-9


def weights_assumptions(
    found: ClientWeights, described: LogDescription, training: Training, sizes: FloatArray | None
) -> str:
    """Return the doubts that the log raises about the weights, and the data behind them."""
    said = doubts(
        described,
        drift="The shares below are means over the whole log; for the coming rounds use a log of "
        "recent ones.",
        chains="CA-Fed's bound assumes that they do, so it may not hold for these clients.",
    )
    said.append(
        "targets: equal, as no --sizes are given"
        if sizes is None
        else f"targets: sizes divided by their sum, {float(sizes.sum()):g}"
    )
    if found.never_there:
        said.append(
            f"never online: {len(found.never_there)} of {len(found.clients)} clients "
            f"({first_names(found.never_there)}) with {found.lost_target:.3g} of the target; no "
            "weights can include them"
        )
    problem, rounds = found.problem, described.log.n_rounds
    said += [
        f"availability: the share of the log's {how_many(rounds, 'round')}; clients are taken to "
        "come and go independently of each other, with or without memory (M = 1)",
        f"assumed, in units of L and ||w_0 - w*||: {how_many(training.rounds, 'round')} of "
        f"{how_many(training.local_steps, 'local step')} of {training.step:.4g}/L, the longest "
        f"that Lemma 2 allows; noise {training.noise:g}, dissimilarity {training.dissimilarity:g}, "
        f"condition number {training.condition:g}",
        f"so a_k = {training.noise**2 * training.rounds * training.step**2:.6g} pi_k (what the "
        f"noise of a client's gradients adds to the bound), b = {problem.b:.6g} (the start and the "
        f"step sizes), bias = {problem.bias:.6g} (the price of a unit of chi2(alpha || p))",
    ]
    return "\n".join(said)


def weights_table(found: ClientWeights) -> Table:
    """Lay out one row per client; for many clients, only the first and the last."""
    table = Table()
    for heading in (
        "client",
        "target alpha",
        "availability pi",
        "weight to use, q",
        "importance p",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    columns = (found.target_weights, found.availability, found.weights, found.importance)
    for client in first_and_last(len(found.clients)):
        if client is None:
            table.add_row(*["..."] * 5)
        else:
            name = escape(found.clients[client])
            table.add_row(name, *(f"{column[client]:.6g}" for column in columns))
    return table


def weights_summary(found: OptimalWeights) -> str:
    """Return how to use the weights, the errors, and the optimality conditions' residuals."""
    excluded = int((found.q == 0).sum())
    return (
        "Multiply each online client's update by its weight q; clients without weight: "
        f"{excluded} of {found.q.size}. The importance p, pi q scaled to sum to one, is how much a "
        "client then counts, and the target alpha how much it should.\n"
        f"CA-Fed's bound: optimisation error {found.optimization_error:.6g} + bias error "
        f"{found.bias_error:.6g} = {found.error:.6g}, the minimum (relative KKT residual "
        f"{found.kkt_residual:.1e}, {found.method})"
    )


@checks_kinds
@default_style()
def weights_figure(
    problem: TradeOff,
    found: OptimalWeights,
    curve: BoundCurve | None = None,
    *,
    beside: bool = False,
) -> Figure:
    """Draw each client's target and importance, and below them its availability and weight.

    A few clients are drawn as bars, many clients as dots, from the most to the least available.

    Parameters
    ----------
    problem : TradeOff
    found : OptimalWeights
    curve : BoundCurve, optional
        A curve from `fltheory.verify.curve` with a statement's bound, the truth and a sample of the
        error, for these weights and others. It is drawn next to the weights, and the title gives
        the verdict.
    beside : bool
        Whether to leave the figure's last axes, which are for that curve, empty.

    Examples
    --------
    >>> problem = TradeOff([1.0, 0.5], [0.5, 0.5], a=1.0, b=4.0, bias=1e6)
    >>> len(weights_figure(problem, solve(problem)).axes)
    3
    """
    from matplotlib.figure import Figure

    wide = beside or curve is not None
    figure = Figure(figsize=(11.0 if wide else 8.0, 6.0), layout="constrained")
    grid = figure.add_gridspec(3, 2 if wide else 1)
    upper = figure.add_subplot(grid[0, 0])
    middle, lower = (figure.add_subplot(grid[row, 0], sharex=upper) for row in (1, 2))
    if problem.n_clients <= _MOST_BARS:
        clients = np.arange(problem.n_clients)
        upper.bar(clients - 0.2, problem.target_weights, 0.4, color=_TARGET_COLOUR, label=_ALPHA)
        upper.bar(clients + 0.2, found.p, 0.4, color=_IMPORTANCE_COLOUR, label="$p_k$", hatch="//")
        middle.bar(clients, problem.availability, 0.8, color=_AVAILABILITY_COLOUR)
        lower.bar(clients, found.q, 0.8, color=_WEIGHT_COLOUR)
        lower.set_xlabel("client $k$")
    else:
        order = np.argsort(-problem.availability, kind="stable")
        upper.plot(problem.target_weights[order], ".", color=_TARGET_COLOUR, label=_ALPHA)
        upper.plot(found.p[order], ".", color=_IMPORTANCE_COLOUR, label="$p_k$")
        middle.plot(problem.availability[order], ".", color=_AVAILABILITY_COLOUR)
        lower.plot(found.q[order], ".", color=_WEIGHT_COLOUR)
        for dots in (*upper.lines, *middle.lines, *lower.lines):
            dots.set(markersize=2, rasterized=True)
        lower.set_xlabel("clients, from the most available")
    upper.set_ylabel("importance")
    set_title(upper, f"minimised: {found.error:.4g}")
    upper.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    middle.set_ylabel(r"availability $\pi_k$")
    lower.set_ylabel("weight $q_k$")
    for axes in (upper, middle):
        axes.tick_params(labelbottom=False)
    if problem.n_clients <= _MOST_NAMED_BARS:
        lower.set_xticks(clients)
    if wide:
        right = figure.add_subplot(grid[:, 1])
        if curve is not None:
            _draw_errors(figure, right, curve)
    return figure


def _draw_errors(figure: Figure, axes: Axes, curve: BoundCurve) -> None:
    axes.grid(alpha=0.25)
    draw_curve(axes, curve)
    axes.set(ylabel=label(curve.quantity), xlabel=label(curve.variable))
    set_title(axes, curve.heading, width=_TITLE_WIDTH)
    set_scales(axes, curve.values, heights(curve), log_x=False)
    legend_below(figure, axes.get_legend_handles_labels()[0])


def trade_off_curve(problem: TradeOff) -> tuple[FloatArray, FloatArray]:
    """Return the trade-off curve, i.e. divergences chi2(alpha || p) and least optimisation errors.

    Each point is the optimum for a different price of bias, from a ten-thousandth of the problem's
    price to ten thousand times that price.

    Raises
    ------
    ValueError
        If the problem's price of bias is zero, which has no other multiples.
    """
    if problem.bias == 0:
        raise ValueError("bias must be above 0 for a curve of trade-offs, got 0")
    points = [solve(_priced(problem, price)) for price in _PRICES]
    divergence = [problem.bias_error(found.p) / problem.bias for found in points]
    return np.array(divergence), np.array([found.optimization_error for found in points])


def _priced(problem: TradeOff, price: float) -> TradeOff:
    return TradeOff(
        problem.availability,
        problem.target_weights,
        a=problem.a,
        b=problem.b,
        bias=problem.bias * price,
        total=problem.total,
    )


def trade_off_figure(problem: TradeOff, found: OptimalWeights) -> Figure:
    """Draw the weights, and the optimisation error over the bias error with the chosen point."""
    figure = weights_figure(problem, found, beside=True)
    axes = figure.axes[-1]
    divergence, optimization = trade_off_curve(problem)
    shown = divergence > _LEAST_DIVERGENCE
    axes.grid(alpha=0.25)
    axes.plot(
        problem.bias * divergence[shown], optimization[shown], "-", color="#0072B2", label="optima"
    )
    if found.bias_error > problem.bias * _LEAST_DIVERGENCE:
        point = (found.bias_error, found.optimization_error)
        axes.plot(*point, "*", markersize=14, color="#D55E00", label="chosen")
    unbiased = problem.optimization_error(problem.target_weights)
    axes.axhline(
        unbiased, linestyle=":", color="#009E73", label=r"unbiased, $q \propto \alpha/\pi$"
    )
    if shown.any():
        axes.set_xscale("log")
    axes.set(xlabel=r"bias error, bias $\cdot\chi^2$", ylabel="optimisation error")
    set_title(axes, "each point is the best for some price of bias", width=_TITLE_WIDTH)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure
