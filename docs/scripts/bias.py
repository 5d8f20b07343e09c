"""Where every algorithm ends up when participation is uneven: the bias of its limit.

Gradients are exact, as their noise does not change the mean of an affine round, so only
participation is random. The limits of affine algorithms are then exact (`engines.stationary`); the
other algorithms are run along sampled paths of participation, given which the model is
deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fltheory import validation
from fltheory.algorithms import FedAvg
from fltheory.algorithms.contract import Algorithm
from fltheory.algorithms.table import ALGORITHMS
from fltheory.cli import run_script
from fltheory.commands.shared.options import PAGES, Check, FigureFile, PageFile
from fltheory.commands.shared.written_files import (
    check_page,
    tell_written,
)
from fltheory.engines import Setting, stationary
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.analytic_clients import QuadraticClients, Silence
from fltheory.engines.simulation import simulate
from fltheory.files.whole_file import write_whole
from fltheory.long_work.progress import Progress, shown_progress
from fltheory.participation import (
    AtMost,
    Bernoulli,
    Cyclic,
    MarkovOnOff,
    Participation,
    Trace,
    UniformSubset,
    WaitingSubset,
)
from fltheory.problems import QuadraticProblem
from fltheory.report.figures.figure_axes import write_figure
from fltheory.validation import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


AVAILABILITY = (0.9, 0.7, 0.5, 0.3, 0.1)
CORRELATION = 0.8
PERIOD = 10
WEIGHTS: Mapping[str, tuple[float, ...]] = {
    "equal": (0.2,) * 5,
    "unequal": (0.1, 0.3, 0.15, 0.4, 0.05),
}
"""Target weights alpha."""

LR, STEPS, AT_MOST = 0.05, 4, 2


class BiasEvidence(Enum):
    """The evidence for a bias."""

    EXACT = "exact"
    PATHS = "paths"


@dataclass(frozen=True)
class LimitBias:
    """``||lim E x_r - x*||``.

    Attributes
    ----------
    size : float
    error : float
        A bound on the rounding error if exact; otherwise the standard error of the distance of the
        mean to the limit, 0 if there is only one path.
    grade : BiasEvidence
    """

    size: float
    error: float
    grade: BiasEvidence


BiasRows: TypeAlias = dict[str, dict[tuple[str, str], LimitBias]]
"""By algorithm, and then by process and weights."""


@dataclass(frozen=True)
class Effort:
    """How paths are sampled if no exact limit is available.

    Parameters
    ----------
    paths : int
        Number of sequences of participants.
    rounds : int
        Number of rounds; the model is averaged over the second half, which is an even number of
        periods.

    Raises
    ------
    ValueError
        If there are fewer than 2 paths, or ``rounds`` is not a multiple of 40.
    """

    paths: int = 400
    _: KW_ONLY
    rounds: int = 400

    def __post_init__(self) -> None:
        validation.whole_number("paths", self.paths, at_least=2)
        rounds = validation.whole_number("rounds", self.rounds, at_least=1)
        if rounds % (4 * PERIOD):
            raise ValueError(f"rounds must be a multiple of {4 * PERIOD}, got {rounds}")


def problem(weights: Sequence[float]) -> QuadraticProblem:
    """Return five clients in the plane, each with its own random Hessian."""
    rng = np.random.default_rng(6)
    turns = np.linalg.qr(rng.standard_normal((5, 2, 2)))[0]
    curvatures = rng.uniform(0.5, 2.0, (5, 2))
    hessians = np.einsum("iab,ib,icb->iac", turns, curvatures, turns)
    return QuadraticProblem(hessians, rng.standard_normal((5, 2)), target_weights=weights)


def processes() -> dict[str, Participation]:
    """Return the participation processes by name; all but the first two are uneven.

    The cycle starts at a random round, so that means are over its rounds.
    """
    p = np.array(AVAILABILITY)
    active = np.rint(PERIOD * p).astype(int)
    cycle = Cyclic([PERIOD] * p.size, 2 * np.arange(p.size), active)
    masks = np.array(list(islice((m[0] for m in cycle.masks(np.random.default_rng(0), 1)), PERIOD)))
    return {
        "everybody": Bernoulli(np.ones(p.size)),
        "uniform": UniformSubset(p.size, AT_MOST),
        "Bernoulli": Bernoulli(p),
        "Markov": MarkovOnOff(p, CORRELATION),
        "cyclic": Trace(masks),
    }


_VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "weighted-fedavg": {"FedAvg over all N": {}},
    "f3ast": {"F3AST": {"size": AT_MOST, "availability": None}},
    "fedau": {"FedAU": {"cutoff": 50}},
    "mifa": {"MIFA": {"start": "zero"}},
    "cluster-fedvarp": {"ClusterFedVARP": {"clusters": (0, 0, 1, 1, 1)}},
    "scaffold": {"SCAFFOLD I": {"option": 1}, "SCAFFOLD II": {"option": 2}},
}
"""Rows of algorithms that have others than one with the options of the table's example."""


def algorithms(alpha: Sequence[float], p: FloatArray) -> dict[str, Algorithm]:
    """Return the algorithms of the table by row, for weights and availabilities (N,)."""
    n = p.size
    circumstances = {
        "client_lr": LR,
        "assist_lr": LR * STEPS,
        "local_steps": STEPS,
        "target_weights": alpha,
        "aggregation_weights": (1 / n,) * n,
        "availability": tuple(p.tolist()),
        "correlation": CORRELATION,
    }
    return {
        row: listed.among(circumstances, **options)
        for name, listed in ALGORITHMS.items()
        for row, options in _VARIANTS.get(name, {listed.title: listed.example(n)}).items()
    }


@dataclass(frozen=True)
class BiasEntry:
    """The names of an algorithm, process and target weights, with the bias."""

    algorithm: str
    process: str
    weights: str
    bias: LimitBias


def limit_bias(
    algorithm: Algorithm, quadratic: QuadraticProblem, participation: Participation, effort: Effort
) -> LimitBias:
    """Return the bias of an algorithm's limit, exact if its rounds are affine and forget."""
    try:
        limit = stationary(Setting(algorithm, quadratic, participation, 1, quadratic.x_star))
    except NotAffineError:
        return _bias_over_paths(algorithm, quadratic, participation, effort)
    if not limit.converges:
        # FedAR's count of rounds has no limit, although its model has.
        return _bias_over_paths(algorithm, quadratic, participation, effort)
    return LimitBias(limit.bias, limit.rounding_error["bias"], BiasEvidence.EXACT)


def _bias_over_paths(
    algorithm: Algorithm, quadratic: QuadraticProblem, participation: Participation, effort: Effort
) -> LimitBias:
    """Estimate the bias by averaging late models over sampled paths of participation."""
    certain = participation.fixed_size == participation.n_clients
    paths = 1 if certain else effort.paths
    means = late_means(algorithm, quadratic, participation, paths, effort.rounds)
    offset = means.mean(axis=0) - quadratic.x_star
    spread = float(means.var(axis=0, ddof=1).sum()) if paths > 1 else 0.0
    return LimitBias(
        float(np.linalg.norm(offset)), float(np.sqrt(spread / paths)), BiasEvidence.PATHS
    )


def late_means(
    algorithm: Algorithm,
    quadratic: QuadraticProblem,
    participation: Participation,
    paths: int,
    rounds: int,
) -> FloatArray:
    """Return each path's mean model over the second half of the rounds, (paths, d).

    The model along each path is exact, as gradients have no noise.
    """
    states = simulate(
        algorithm,
        QuadraticClients(quadratic, Silence()),
        participation,
        np.tile(quadratic.x_star, (paths, 1)),
        participation_rng=np.random.default_rng(1),
        branch_rng=np.random.default_rng(2),
    )
    late = islice((state["x"] for state, _ in states), rounds // 2, rounds)
    return np.asarray(sum(late) / (rounds - rounds // 2))


def bias_table(
    effort: Effort | None = None, *, progress: Progress | None = None
) -> Iterator[BiasEntry]:
    """Yield the bias for every algorithm, process and weights, with weights varying fastest.

    Parameters
    ----------
    effort : Effort, optional
        The sampling effort, used where paths are sampled.
    progress : callable, optional
        Called with (cells done, cells, name of the last).
    """
    tasks = list(_tasks())
    for done, (names, task) in enumerate(tasks, start=1):
        cell = BiasEntry(*names, limit_bias(*task, effort or Effort()))
        if progress is not None:
            progress(done, len(tasks), f"{cell.algorithm}, {cell.process}")
        yield cell


def _tasks() -> Iterator[
    tuple[tuple[str, str, str], tuple[Algorithm, QuadraticProblem, Participation]]
]:
    p = np.array(AVAILABILITY)
    of_size: dict[str, dict[str, Participation]] = {
        "FedAvg, at most 2 of those present": {
            "everybody": AtMost(np.ones(p.size), AT_MOST),
            "Bernoulli": AtMost(p, AT_MOST),
        },
        "FedAvg, 2 that are waited for": {
            "everybody": UniformSubset(p.size, AT_MOST),
            "Bernoulli": WaitingSubset(p, AT_MOST),
        },
    }
    names = algorithms(WEIGHTS["equal"], p)
    for name in names:
        for process, participation in processes().items():
            for weights, alpha in WEIGHTS.items():
                algorithm = algorithms(alpha, participation.marginals)[name]
                yield (name, process, weights), (algorithm, problem(alpha), participation)
    for name, by_process in of_size.items():
        for process, participation in by_process.items():
            for weights, alpha in WEIGHTS.items():
                yield (
                    (name, process, weights),
                    (FedAvg(LR, STEPS), problem(alpha), participation),
                )


PROCESSES = ("everybody", "uniform", "Bernoulli", "Markov", "cyclic")
_EVERYBODY, _INDEPENDENT = PROCESSES[0], PROCESSES[:3]
_COLOURS = ("#555555", "#0072B2", "#009E73", "#D55E00", "#CC79A7")
_MARKERS = ("s", "o", "^", "D", "v")
_SMALLEST_SHOWN = 1e-3
_NO_SPREAD = 1e-12


def bias_page(cells: Sequence[BiasEntry], effort: Effort, figure: str | None = None) -> str:
    """Return the page in Markdown; ``figure`` is a link to its figure."""
    return "\n".join(_lines(cells, effort, figure)) + "\n"


def _lines(cells: Sequence[BiasEntry], effort: Effort, figure: str | None) -> Iterator[str]:
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
# The bias of FedAvg and other algorithms when participation is uneven

Made by `python docs/scripts/bias.py`; do not edit. `--check` says whether it is current.

Each number is the bias ||lim E x_r - x*||, where x* minimises F = sum alpha_i F_i. All numbers are
for one problem with five clients in the plane, each with its own Hessian (eigenvalues between 1/2
and 2), {steps} local steps of size {lr:g}, and server step size 1. Gradients are exact. Noise would
not change the limit of the mean if rounds are affine. It would change the limit of CA-Fed, which
excludes clients by their losses.

| process | who takes part |
|---|---|
| everybody | all five in every round, so that the bias is only the drift of local steps |
| uniform | 2 of 5, drawn anew in each round |
| Bernoulli | each client independently, with probability p = ({p}) |
| Markov | on-off chains with these p and second eigenvalue {correlation:g} |
| cyclic | client i in the same {period} p_i rounds of every {period}; means are over a cycle |

The weights alpha are equal, or "unequal": ({alpha}). Algorithms that need availabilities
are given the exact ones. FedAvg, FedProx, FedNova, MIFA, FedVARP, SCAFFOLD, FedAR and FedAU have no
target weights, or are given none, so they minimise the plain mean of the losses. For these
algorithms, the columns "unequal" show how far that minimum is from x*.

A plain number is **exact**: the limit of the moment recursion, with a rounding error that is
bounded by 1e-8. A 0 is zero within this bound. A number with "+-" is an average over {paths}
**random paths** of participation and over rounds {late} to {rounds}, with its standard error; the
model is exact given the path. A number with "~" is an average over the same rounds on a path that
is not random.
"""


def bias_text(bias: LimitBias) -> str:
    """Return a bias for a table: to four decimals if exact, else with its standard error."""
    if bias.grade is BiasEvidence.EXACT:
        return "0" if bias.size <= bias.error else f"{bias.size:.4f}"
    if bias.error < _NO_SPREAD:
        return f"~{bias.size:.4f}"
    return f"{bias.size:.3f} +- {bias.error:.1g}"


def _by_algorithm(cells: Sequence[BiasEntry]) -> BiasRows:
    rows: BiasRows = {}
    for cell in cells:
        rows.setdefault(cell.algorithm, {})[cell.process, cell.weights] = cell.bias
    return rows


def _remarks(cells: Sequence[BiasEntry]) -> Iterator[str]:
    rows = _by_algorithm(cells)
    drift = rows["FedAvg"][_EVERYBODY, "equal"].size
    aim = rows["SCAFFOLD II"][_EVERYBODY, "unequal"].size
    yield (
        f"- With all clients in every round and equal weights, FedAvg's bias is {drift:.4f}, which "
        "is the drift of local steps. SCAFFOLD has no bias."
    )
    yield (
        "- The following algorithms have no bias from participation, under any process: "
        f"{_listed(rows, PROCESSES)}. With exact gradients, they have a fixed point that does not "
        "depend on who takes part. At this point the server remembers each client's update at the "
        "same model, so a new update changes nothing. There is no such point if unlike clients "
        "share one memory, and FedAR's weights shift it as the ages change."
    )
    independent = _listed(rows, _INDEPENDENT, besides=_named(rows, PROCESSES))
    yield (
        "- The following algorithms have no bias if rounds are independent, but some bias if "
        f"rounds depend on each other: {independent}. Each step is unbiased given the model. But "
        "if presence lasts for several rounds, the clients that are present have also moved the "
        "model, so participation and model are correlated, and the step is biased on average."
    )
    yield (
        "- The minimisers of the plain mean and of the unequally weighted mean are "
        f"{aim:.4f} apart. Up to drift, this is the bias of every algorithm that ignores the "
        "weights. Unbiased, AdaFed, F3AST and CA-Fed use the weights; SAFARI uses them only in "
        "the server's step."
    )
    fedavg, capped, waited = (
        rows[name]["Bernoulli", "equal"]
        for name in (
            "FedAvg",
            "FedAvg, at most 2 of those present",
            "FedAvg, 2 that are waited for",
        )
    )
    yield (
        f"- Under Bernoulli participation, FedAvg's bias is {fedavg.size:.4f} with all clients "
        f"present and {capped.size:.4f} with at most 2 of them, because the mean over a uniform "
        "choice of them is, in expectation, the mean over all of them. If 2 clients are drawn in "
        f"advance and the server waits for them, the bias is only the drift, {waited.size:.4f}. "
        "That is the same as with uniform subsets, because the model does not depend on how long "
        "the server waits."
    )


def _listed(
    rows: BiasRows,
    processes: Sequence[str],
    besides: Sequence[str] = (),
) -> str:
    return ", ".join(name for name in _named(rows, processes) if name not in besides)


def _named(rows: BiasRows, processes: Sequence[str]) -> list[str]:
    """Return the algorithms whose exact biases under these processes agree up to rounding."""
    return [
        name
        for name, row in rows.items()
        if all((process, "equal") in row for process in PROCESSES)
        and all(_same(row[_EVERYBODY, "equal"], row[p, "equal"]) for p in processes)
    ]


def _same(one: LimitBias, other: LimitBias) -> bool:
    exact = one.grade is BiasEvidence.EXACT and other.grade is BiasEvidence.EXACT
    return exact and abs(one.size - other.size) <= one.error + other.error


def bias_figure(cells: Sequence[BiasEntry]) -> Figure:
    """Draw the biases with equal weights, a row per algorithm and a mark per process.

    Those below 1e-3 lie at the left edge.
    """
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


def command(
    out: PageFile = PAGES / "bias.md",
    figure: FigureFile = PAGES / "bias.svg",
    check: Check = False,
) -> None:
    """Make the table of every algorithm's limit under uneven participation."""
    effort = Effort()
    with shown_progress() as advance:
        cells = list(bias_table(effort, progress=advance))
    page = bias_page(cells, effort, None if figure is None else figure.name)
    if check:
        check_page(out, page, "the algorithms give: run python docs/scripts/bias.py")
        return
    if figure is not None:
        write_figure(lambda: bias_figure(cells), figure)
    write_whole(out, page)
    tell_written(out)


if __name__ == "__main__":
    run_script(command)
