"""What stale updates are worth, as a page and as a figure: FedAR's motivating experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fltheory.long_work.progress import Progress
from fltheory.report.figures.figure_file import write_figure
from fltheory.reproduce.experiments.fedar_shapley import (
    AGGREGATES,
    SCENARIOS,
    Contribution,
    StalePlan,
    contributions,
)
from fltheory.validation import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#009E73", "#D55E00", "#7A2B00")
_LOWEST, _HIGHEST = -1.0, 0.75

Measured = Mapping[tuple[str, str], Sequence[Contribution]]


def measured_scenarios(*, progress: Progress | None = None) -> Measured:
    """Return every scenario's contributions, by (scenario, aggregate)."""
    plans = {
        (name, aggregate): replace(plan, aggregate=aggregate)
        for name, plan in SCENARIOS.items()
        for aggregate in AGGREGATES
    }
    total, done = sum(plan.rounds for plan in plans.values()), 0
    found: dict[tuple[str, str], list[Contribution]] = {}
    for key, plan in plans.items():
        found[key] = []
        for contribution in contributions(plan, range(plan.rounds)):
            done += 1
            found[key].append(contribution)
            if progress is not None:
                progress(done, total, ", ".join(key))
    return found


def relative_values(series: Sequence[Contribution]) -> FloatArray:
    """Return the last client's values over the whole decrease with everybody fresh."""
    whole = series[0].values.sum()
    return np.array([contribution.values[-1] for contribution in series]) / whole


def shapley_page(found: Measured, figure: str | None = None) -> str:
    """Return the page in Markdown; ``figure`` is a link to its figure."""
    return "\n".join(_lines(found, figure)) + "\n"


def _lines(found: Measured, figure: str | None) -> Iterator[str]:
    yield _INTRODUCTION.format(n=StalePlan().n_clients, others=StalePlan().n_clients - 1)
    if figure is not None:
        yield f"![Contribution against staleness]({figure})"
        yield ""
    yield "## What the figure says"
    yield ""
    for name in SCENARIOS:
        yield f"- {name}: {_remark({a: found[name, a] for a in AGGREGATES})}"
    yield ""
    yield _CONCLUSION
    for name, plan in SCENARIOS.items():
        yield from _table(name, plan, {a: found[name, a] for a in AGGREGATES})


_INTRODUCTION = """\
# What a stale update is worth: FedAR's motivating experiment

Made by `fltheory reproduce shapley`; do not edit. `--check` says whether it is current.

FedAR (Section 3.2, Figure 1) lets one client stop some rounds before the end, applies its last
update all the same, and measures by Shapley values what each update contributes to the last
round's step. From CIFAR-10 the paper concludes that (1) stale updates can still contribute,
(2) they contribute less the staler they are, and (3) very stale ones do harm. The first two are
why its weights grow with the inactive rounds, the last why they are cut off.

Here the {n} clients are quadratic and the minimum is known: {others} take part in all rounds, the
last stops. The server applies the plain mean of everybody's latest update. A coalition's worth is
the expected decrease of F from the last round's model x when only its updates are applied, and
that expectation is exact: x and the updates are jointly Gaussian, and F is quadratic. The values
are exact over all 2^{n} coalitions. "mean" averages a coalition's updates over its members, "sum"
divides by all {n} clients; the paper does not say which it does.

Values are shown over the step's whole decrease with everybody fresh, where equal shares would be
1/{n}. The paper shows shares of the sum at the same staleness; when a stale update undoes the step
that sum passes through zero.
"""

_CONCLUSION = """\
So (1) and (3) are found on the plainest clients; (2) only where noise outweighs the progress of a
round. A stale update was made when the gradient was longer. While the model descends it points the
same way, and is at first worth more than a fresh one: weights that grow with staleness then enlarge
what is large already. Noise makes it worth less from the first round on, as the same noise is
applied again and again, so that the model already holds it. A client unlike the others is worth
less than an equal share, or does harm, when fresh.
"""


def _remark(both: Mapping[str, Sequence[Contribution]]) -> str:
    parts = []
    for aggregate, series in both.items():
        values = relative_values(series)
        top = int(np.argmax(values))
        after_one = "more" if values[1] > values[0] else "less"
        harm = np.flatnonzero(values < 0)
        harmful = f"harmful at {_ranges(harm)} rounds" if harm.size else "never harmful"
        parts.append(
            f"with the {aggregate} worth {values[0]:.3f} fresh, {after_one} after one round "
            f"({values[1]:.3f}), most after {top} ({values[top]:.3f}), {harmful}"
        )
    return "; ".join(parts) + "."


def _ranges(places: np.ndarray) -> str:
    """Return successive numbers as ranges: 0 to 3 and 7."""
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return " and ".join(f"{run[0]} to {run[-1]}" if run.size > 1 else f"{run[0]}" for run in runs)


def _table(name: str, plan: StalePlan, both: Mapping[str, Sequence[Contribution]]) -> Iterator[str]:
    yield f"## {name[0].upper()}{name[1:]}"
    yield ""
    yield (
        f"{plan.rounds} rounds of {plan.local_steps} local steps of {plan.client_lr:g}, "
        f"sigma_G = {plan.sigma_G:g}, sigma = {plan.sigma:g}, d = {plan.dim}, Hessian eigenvalues "
        f"1/5 to 1, distance {plan.distance:g} at first."
    )
    yield ""
    yield (
        "| rounds away | " + " | ".join(f"stale client, {a} | each other, {a}" for a in both) + " |"
    )
    yield "|---:" * (1 + 2 * len(both)) + "|"
    wholes = {aggregate: series[0].values.sum() for aggregate, series in both.items()}
    for index in range(plan.rounds):
        row = [str(index)]
        for aggregate, series in both.items():
            values = series[index].values / wholes[aggregate]
            row += [f"{values[-1]:.3f}", f"{values[:-1].mean():.3f}"]
        yield "| " + " | ".join(row) + " |"
    yield ""


def write_shapley_figure(found: Measured, path: Path) -> None:
    """Write the figure, .png or .svg."""
    write_figure(lambda: shapley_figure(found), path)


def shapley_figure(found: Measured) -> Figure:
    """Draw the stale client's contribution against staleness, a panel an aggregate.

    Below -1 the curves leave the figure.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, aggregate in zip(
        figure.subplots(1, len(AGGREGATES), sharey=True), AGGREGATES, strict=True
    ):
        for name, colour in zip(SCENARIOS, _COLOURS, strict=True):
            values = relative_values(found[name, aggregate])
            axes.plot(values, marker=".", color=colour, label=name)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_ylim(_LOWEST, _HIGHEST)
        axes.set_xlabel("rounds since the client's last update")
        axes.set_title(f"coalitions apply the {aggregate}", fontsize="medium")
    figure.axes[0].set_ylabel("Shapley value / decrease if all were fresh")
    figure.axes[1].legend(fontsize="small")
    return figure
