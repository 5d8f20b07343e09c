"""The biases of all algorithms under uneven participation, as one table and as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fltheory.report.figures.figure_file import write_figure
from fltheory.reproduce.participation_bias import (
    AVAILABILITY,
    CORRELATION,
    LR,
    PERIOD,
    STEPS,
    WEIGHTS,
    Bias,
    Cell,
    Effort,
    Grade,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROCESSES = ("everybody", "uniform", "Bernoulli", "Markov", "cyclic")
_EVERYBODY, _INDEPENDENT = PROCESSES[0], PROCESSES[:3]
_COLOURS = ("#555555", "#0072B2", "#009E73", "#D55E00", "#CC79A7")
_MARKERS = ("s", "o", "^", "D", "v")
_SMALLEST_SHOWN = 1e-3
_NO_SPREAD = 1e-12


def bias_page(cells: Sequence[Cell], effort: Effort, figure: str | None = None) -> str:
    """Return the page in Markdown; ``figure`` is a link to its figure."""
    return "\n".join(_lines(cells, effort, figure)) + "\n"


def _lines(cells: Sequence[Cell], effort: Effort, figure: str | None) -> Iterator[str]:
    yield _INTRODUCTION.format(
        p=", ".join(f"{p:g}" for p in AVAILABILITY),
        alpha=", ".join(f"{a:g}" for a in WEIGHTS["unequal"]),
        correlation=CORRELATION,
        period=PERIOD,
        lr=LR,
        steps=STEPS,
        paths=effort.paths,
        rounds=effort.rounds,
        late=effort.rounds // 2,
    )
    columns = [(process, weights) for process in PROCESSES for weights in WEIGHTS]
    yield "| algorithm | " + " | ".join(f"{p}, {w}" for p, w in columns) + " |"
    yield "|---" + "|---:" * len(columns) + "|"
    for name, row in _by_algorithm(cells).items():
        shown = [bias_text(row[key]) if key in row else "" for key in columns]
        yield f"| {name} | " + " | ".join(shown) + " |"
    yield ""
    if figure is not None:
        yield f"![Biases with equal weights]({figure})"
        yield ""
    yield "## What the table says"
    yield ""
    yield from _remarks(cells)


_INTRODUCTION = """\
# Where algorithms end up when participation is uneven

Made by `fltheory reproduce bias`; do not edit. `--check` says whether it is current.

Each number is the bias ||lim E x_r - x*||, x* the minimiser of F = sum alpha_i F_i, on one problem:
five clients in the plane with Hessians of their own (eigenvalues between 1/2 and 2), {steps} local
steps of {lr:g}, server step 1. Gradients are exact. Their noise would change no limit of a mean
where rounds are affine; it would change CA-Fed's, whose exclusions look at losses.

| process | who takes part |
|---|---|
| everybody | all five, always: what is left is the drift of local steps |
| uniform | 2 of 5, drawn afresh |
| Bernoulli | independently with p = ({p}) |
| Markov | on-off chains with these p and second eigenvalue {correlation:g} |
| cyclic | 10 p of {period} rounds, the same in every cycle; means are over a cycle |

Weights are equal, or alpha = ({alpha}). Algorithms that need availabilities
are given the exact ones; those without a notion of weights, or given none (FedAvg, FedProx,
FedNova, MIFA, FedVARP, SCAFFOLD, FedAR, FedAU), aim at the plain mean of the losses, so that
"unequal" shows how far that is from x*.

A number alone is **exact**: the limit of the moment recursion, its rounding error bounded below
1e-8; 0 is a number within its bound. A number with "+-" is averaged over {paths} **drawn paths** of
participation and over rounds {late} to {rounds}, the model being exact given the path, and the
standard error follows. A number with "~" is that of the one path that there is, over these rounds.

"""


def bias_text(bias: Bias) -> str:
    """Return a bias for a table: to four decimals where exact, else with its standard error."""
    if bias.grade is Grade.EXACT:
        return "0" if bias.size <= bias.error else f"{bias.size:.4f}"
    if bias.error < _NO_SPREAD:
        return f"~{bias.size:.4f}"
    return f"{bias.size:.3f} +- {bias.error:.1g}"


def _by_algorithm(cells: Sequence[Cell]) -> dict[str, dict[tuple[str, str], Bias]]:
    rows: dict[str, dict[tuple[str, str], Bias]] = {}
    for cell in cells:
        rows.setdefault(cell.algorithm, {})[cell.process, cell.weights] = cell.bias
    return rows


def _remarks(cells: Sequence[Cell]) -> Iterator[str]:
    rows = _by_algorithm(cells)
    drift = rows["FedAvg"][_EVERYBODY, "equal"].size
    aim = rows["SCAFFOLD II"][_EVERYBODY, "unequal"].size
    yield (
        f"- With everybody there and equal weights FedAvg's bias is {drift:.4f}: the drift of "
        "local steps. SCAFFOLD has none."
    )
    yield (
        f"- No bias of participation, under any process: {_listed(rows, PROCESSES)}. With exact "
        "gradients these have a fixed point whoever takes part: the server remembers everybody's "
        "update at that very model, and a fresh one is no surprise. With one memory for a cluster "
        "of unlike clients there is no such point, and FedAR's weights move it with the ages."
    )
    independent = _listed(rows, _INDEPENDENT, besides=_named(rows, PROCESSES))
    yield (
        f"- None where rounds are independent, but some where they are not: {independent}. "
        "A step is unbiased given the model. Where presence lasts, who is there also tells where "
        "the model has been driven, and the mean over both is off."
    )
    yield (
        f"- The minimisers of the plain and of the unequally weighted mean are {aim:.4f} apart: "
        "the bias of whatever ignores the weights, up to drift. Unbiased, AdaFed, F3AST and "
        "CA-Fed take the weights in; SAFARI's server step does in part."
    )
    fedavg, capped, waited = (
        rows[name]["Bernoulli", "equal"]
        for name in ("FedAvg", "FedAvg, at most 2 of those there", "FedAvg, 2 that are waited for")
    )
    yield (
        f"- Under Bernoulli participation FedAvg's bias is {fedavg.size:.4f} with all who come, "
        f"{capped.size:.4f} with at most 2 of them (the mean over a uniform choice of those there "
        f"is, in expectation, the mean over them), and the drift, {waited.size:.4f}, if 2 are "
        "drawn in advance and waited for. "
        "The latter is that of uniform subsets: a model does not know how long the next takes."
    )


def _listed(
    rows: dict[str, dict[tuple[str, str], Bias]],
    processes: Sequence[str],
    besides: Sequence[str] = (),
) -> str:
    return ", ".join(name for name in _named(rows, processes) if name not in besides)


def _named(rows: dict[str, dict[tuple[str, str], Bias]], processes: Sequence[str]) -> list[str]:
    """Return the algorithms with the same exact bias under these processes, to rounding."""
    return [
        name
        for name, row in rows.items()
        if all((process, "equal") in row for process in PROCESSES)
        and all(_same(row[_EVERYBODY, "equal"], row[p, "equal"]) for p in processes)
    ]


def _same(one: Bias, other: Bias) -> bool:
    exact = one.grade is Grade.EXACT and other.grade is Grade.EXACT
    return exact and abs(one.size - other.size) <= one.error + other.error


def write_bias_figure(cells: Sequence[Cell], path: Path) -> None:
    """Write the figure of the biases with equal weights, .png or .svg."""
    write_figure(lambda: bias_figure(cells), path)


def bias_figure(cells: Sequence[Cell]) -> Figure:
    """Draw a row an algorithm and a mark a process; those below 1e-3 lie at the left edge."""
    from matplotlib.figure import Figure

    rows = _by_algorithm(cells)
    figure = Figure(figsize=(8, 0.36 * len(rows) + 1.4), layout="constrained")
    axes = figure.subplots()
    for process, colour, marker in zip(PROCESSES, _COLOURS, _MARKERS, strict=True):
        places = [y for y, row in enumerate(rows.values()) if (process, "equal") in row]
        sizes = [row[process, "equal"].size for row in rows.values() if (process, "equal") in row]
        shown = [max(size, _SMALLEST_SHOWN) for size in sizes]
        axes.plot(
            shown, places, marker, color=colour, label=process, fillstyle="none", linestyle="none"
        )
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.grid(axis="y", alpha=0.3)
    axes.set_xlabel("||lim E x - x*||, equal weights (left edge: 0.001 or less)")
    figure.legend(loc="outside lower center", ncols=len(PROCESSES), fontsize="small")
    return figure
