"""The atlas: a page on widely cited theorems, and a figure per paper.

Verdicts and ratios come from ``verification/baseline.csv``, results of searches from
``benchmarks/atlas_searches.py``. Only two things are computed here: the comparison of theorems at
their own steps, with ``--compare``, and the figure of a paper that claims only orders.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.claims.curves import BoundCurve
from fltheory.claims.statement import Statement
from fltheory.cli import run_script
from fltheory.commands.shared.written_files import tell_written
from fltheory.engines import read_setting
from fltheory.evidence.verdict import Outcome
from fltheory.files.whole_file import write_whole
from fltheory.long_work.progress import shown_progress
from fltheory.report.figures.figure import figure
from fltheory.report.figures.figure_axes import OUTCOME_COLOURS, blank, set_title, write_figure
from fltheory.report.figures.looseness_figure import own_steps_figure
from fltheory.report.html.html_report import HOW_TO_CITE, HOW_TO_CORRECT
from fltheory.theorems import atlas
from fltheory.verify import curve
from fltheory.verify.baseline import Baseline, read_baseline
from fltheory.verify.comparison import OwnSteps, at_own_steps, by_reason
from fltheory.worst_case.audits.run_audit import times_best_provable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "atlas.md"
BASELINE = ROOT / "verification" / "baseline.csv"
SEARCHES = ROOT / "benchmarks" / "atlas_searches.csv"
SETTING = ROOT / "docs" / "examples" / "everybody.toml"
_BEGIN, _END = "<!-- begin own steps -->\n", "<!-- end own steps -->\n"
_LEAST_RATIO = 1e-16
_REGIMES_DRAWN = 3

PAPERS: Mapping[str, tuple[str, str]] = {
    "fedavg-li": (
        "Li, Huang, Yang, Wang and Zhang, *On the Convergence of FedAvg on Non-IID Data* "
        "(ICLR 2020)",
        "We had the paper without its appendix: Theorems 1 to 4 and two remarks. The text gives "
        "neither the constants of Theorem 4 nor the ridge regression problem that the theorem "
        "concerns. We check the theorem on other quadratic clients, and the constants of its "
        "second reading are ours.",
    ),
    "local-gd": (
        "Khaled, Mishchenko and Richtarik, *First Analysis of Local GD on Heterogeneous Data* "
        "(2019)",
        "We check the whole paper. Algorithm 1 averages one step later than the analysis needs. "
        "We check both readings, and both hold.",
    ),
    "proxskip": (
        "Mishchenko et al. (ICML 2022); Malinovsky, Yi and Richtarik, *Variance Reduced ProxSkip* "
        "(NeurIPS 2022)",
        "We check Theorems 5 and 6 of the second paper, in the consensus form (Scaffnew).",
    ),
    "fedprox": (
        "Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, *Federated Optimization in Heterogeneous "
        "Networks* (MLSys 2020)",
        "We check Theorem 4, which is about one round with inexact local solutions.",
    ),
    "fednova": (
        "Wang, Liu, Liang, Joshi and Poor, *Tackling the Objective Inconsistency Problem* "
        "(NeurIPS 2020)",
        "We check Theorems 1 and 2. Theorem 1 hides its constants. Two of its four terms, which "
        "are of order 1/T, are missing or garbled in our copy. So we check Theorem 1 only as an "
        "order in T, to which these two terms make no difference.",
    ),
    "fedawe": (
        "Xiang, Ioannidis, Yeh, Joe-Wong and Su, *Efficient Federated Learning against "
        "Heterogeneous and Non-stationary Client Unavailability* (NeurIPS 2024)",
        "We check Lemmas 2 to 4, Theorem 1 and Corollary 1. The derived readings have the "
        "constants of the proofs. Condition (11) on the step sizes adds numbers of different "
        "units, namely in L + 1 and in 1 + L^2. The derived readings replace it by weaker "
        "conditions with consistent units.",
    ),
    "scaffold-bias": (
        "Tang and Peng, *Beyond Client Averaging: A Client-Independent Second-Order "
        "Stationary-Bias Component in Stochastic SCAFFOLD* (preprint, 2026)",
        "We check Theorem 4.1, and also (11) and (16), on which its proof rests. The loss is not "
        "quadratic, so the exact engine does not apply. Instead, we solve linear equations for "
        "the moments of the stationary distribution, for any number of clients. This leaves an "
        "error of higher order in the step size, which is estimated. The moments agree with the "
        "paper's simulations and with ours. For two clients, they also agree with a bound on the "
        "error.",
    ),
}

_INTRODUCTION = """\
# The atlas

The theorems that everybody cites, checked as printed: are they true, where do they apply, and how
loose are they? `python docs/scripts/atlas.py` writes this page; do not edit it. To see a statement
in full, with its hypotheses and regimes, run for example `fltheory explain fedavg-li/1`.

The columns of the table are:

- *verdicts*: how many of the statement's named settings (its regimes) have each verdict ([what a
  verdict means](verdicts.md));
- *what fails*: why the statement as printed is false, if it is;
- *truth over bound*: the smallest and the largest ratio over the regimes in which the statement
  applies. A ratio of 1 means that the bound is attained. If the statement claims an order, its
  verdicts compare slopes, and the column says "an order";
- *search*: the largest ratio that a search for a refutation found, with the method and the number
  of settings that met every hypothesis. `falsify` is the search of this package, and "plain runs"
  is an independent one (`benchmarks/atlas_plain_runs.py`). For an order, `falsify` divides the
  truth by the expression in the O(.), and `verdicts` divides the change of the truth over a decade
  by the claimed change. A bound can be improved at most by a factor that is the inverse of the
  larger ratio in these two columns;
- *over provable*: the statement's bound divided by the best bound that we can prove for every
  client loss, with all clients and one local step (`fltheory prove ID` shows the setting and the
  proof). We have no such proof for several local steps, random averages or postponed gossip, which
  are not among [the rounds that can be proved](every-loss.md).

`fltheory verify atlas --html atlas.html` writes every statement, with its formulas, hypotheses and
regimes, to one HTML page that can be filtered.

"""


def atlas_page(baseline: Baseline, searches: Mapping[tuple[str, str], str], own: str) -> str:
    """Return the page.

    Parameters
    ----------
    baseline : mapping of cell to record
        Recorded verdicts.
    searches : mapping of (id, reading) to str
        The results of searches.
    own : str
        The part on theorems at their own steps.
    """
    parts = [_INTRODUCTION, *_table(baseline, searches), "\n"]
    parts += [f"## One problem, every theorem at its own steps\n\n{_BEGIN}{own}{_END}\n"]
    for paper, (title, about) in PAPERS.items():
        parts.append(f"## {paper}\n\n{title}. {about}\n\n")
        shown = "How loose each statement is on its regimes"
        if _claims_only_orders(paper):
            shown = "What each statement says is of an order, as its variable grows"
        parts.append(f"![{shown}](atlas-{paper}.svg)\n\n")
        parts += _faults(paper)
    parts.append(f"## How to cite\n\n{HOW_TO_CITE}\n\n")
    parts.append(f"## How to correct a transcription\n\n{HOW_TO_CORRECT} {_ADDING}\n")
    return "".join(parts)


_ADDING = "See [how to add or change a paper](add-a-paper.md)."


def _claims_only_orders(paper: str) -> bool:
    return all(one.axes for one in _of(paper))


def _of(paper: str) -> list[Statement]:
    return [one for one in atlas.STATEMENTS if one.id.startswith(f"{paper}/")]


def _records(one: Statement, baseline: Baseline) -> dict[str, tuple[Outcome, float]]:
    found = {}
    for regime in one.regimes:
        record = baseline[one.id, one.reading, regime]
        found[regime] = (Outcome[record.outcome], float(record.ratio))
    return found


def _table(baseline: Baseline, searches: Mapping[tuple[str, str], str]) -> Iterator[str]:
    yield (
        "| statement | reading | kind | verdicts | what fails | truth over bound | search "
        "| over provable |\n"
    )
    yield "|---|---|---|---|---|---|---|---|\n"
    for one in atlas.STATEMENTS:
        records = _records(one, baseline)
        counts = Counter(outcome.name for outcome, _ in records.values())
        verdicts = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        fails = "; ".join(fault.why for fault in one.refutations).replace("|", "&#124;")
        known = [
            ratio
            for outcome, ratio in records.values()
            if outcome is not Outcome.INAPPLICABLE and math.isfinite(ratio)
        ]
        ratios = "an order" if one.axes else f"{min(known):.2g} to {max(known):.2g}"
        searched = searches.get((one.id, one.reading), "")
        times = times_best_provable(one.id, one.reading)
        provable = "" if times is None else f"{times:.2g} times"
        name = f"`{one.id}`"
        cells = (name, one.reading, str(one.kind), verdicts, fails, ratios, searched, provable)
        yield f"| {' | '.join(cells)} |\n"


def _faults(paper: str) -> Iterator[str]:
    for one in _of(paper):
        for fault in one.refutations:
            yield (
                f"`{one.id}` ({one.kind}), {fault.weight.label}: {fault.why} Fixed by: "
                f"{fault.change}. Our guess at the authors' answer: {fault.answer}\n\n"
            )


def read_searches(path: Path) -> dict[tuple[str, str], str]:
    """Return the results of searches in words."""
    rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    return {
        (name, reading): "; ".join(
            f"{row['largest_ratio']} ({row['by']}, {int(row['applied']):,} settings)"
            + (", refuted" if row["refuted"] == "1" else "")
            for row in found
        )
        for (name, reading), found in groupby(rows, itemgetter("theorem", "reading"))
    }


def figure_of_paper(paper: str, baseline: Baseline) -> Figure:
    """Draw how loose its statements are, or how what they say is of an order falls."""
    return orders_of_paper(paper) if _claims_only_orders(paper) else looseness(paper, baseline)


def orders_of_paper(paper: str) -> Figure:
    """Draw each order and its truth on its first regimes."""
    panels: dict[str, dict[str, BoundCurve]] = {}
    for one in _of(paper):
        shown = list(one.regimes.items())[:_REGIMES_DRAWN]
        panels[one.id] = {name: curve(one, regime.setting) for name, regime in shown}
    return figure(panels)


def looseness(paper: str, baseline: Baseline) -> Figure:
    """Draw the ratio of each statement's bound to the truth on each of its regimes."""
    rows = [
        (f"{one.id.partition('/')[2]} ({one.reading})", _records(one, baseline))
        for one in _of(paper)
        if not one.axes
    ]
    drawn, axes = blank()
    drawn.set_size_inches(7.2, 1.3 + 0.36 * len(rows))
    for height, (_, records) in enumerate(reversed(rows)):
        for outcome, ratio in records.values():
            if not _LEAST_RATIO < ratio < math.inf:
                continue
            axes.plot(
                1 / ratio,
                height,
                "o",
                color=OUTCOME_COLOURS[outcome],
                markeredgecolor="grey",
                markersize=7,
            )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)], fontsize=8)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel("bound over truth, one dot per regime; left of the line the bound is refuted")
    set_title(axes, f"{paper}: pale dots are regimes in which a hypothesis fails")
    return drawn


def own_steps_part(found: OwnSteps) -> str:
    """Return the comparison of theorems at their own steps as a table."""
    rounds = int(found.given.rounds[-1])
    lines = [
        "All theorems are compared on one problem: four clients in the plane with the same",
        "Hessian, exact gradients, all clients in every round, five local steps between averages,",
        f"and {rounds} averages. The setting is `docs/examples/everybody.toml`, and",
        "`fltheory compare docs/examples/everybody.toml --own-steps` makes the table. Each theorem",
        "has the step sizes that it prescribes. Every bound is converted to `E F - F*` of the",
        "models that the theorem is about, by `F - F* <= L/2 ||x - x*||^2` or",
        "`F - F* <= ||grad F||^2/(2 mu)`. The truth is `E F - F*` of the same models.",
        "",
        "| theorem | truth | bound | bound over truth | provable over truth | converted |",
        "|---|---|---|---|---|---|",
    ]
    for one in found.bounds:
        proved = float(one.provable_looseness[-1])
        lines.append(
            f"| {one.name} | {one.truth[-1]:.3g} | {one.bound[-1]:.3g} | {one.looseness[-1]:.3g} "
            f"| {f'{proved:.3g}' if math.isfinite(proved) else ''} | {one.brought_by} |"
        )
    given = found.given
    lines += [
        "",
        f"FedAvg with the step size of the setting ends at {given.truth[-1]:.3g}. The best bound "
        "that can be proved for every client loss with the same constants is "
        f"{given.provable[-1]:.3g}, which is {given.provable_looseness[-1]:.3g} times as much.",
        "",
        "These theorems do not apply, for the reason given:",
        "",
    ]
    reasons = by_reason(found.silent).items()
    lines += [f"- {', '.join(names)}: {reason}" for reason, names in reasons]
    lines += ["", "![Bound over truth as rounds go by](atlas-own-steps.svg)", ""]
    return "\n".join(lines)


def kept_part(page: str) -> str:
    """Return an existing page's part on theorems at their own steps."""
    return page.partition(_BEGIN)[2].partition(_END)[0]


def command(
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare the theorems at their own steps again.")
    ] = False,
) -> None:
    """Write docs/atlas.md and its figures."""
    baseline = read_baseline(BASELINE)
    if compare:
        with shown_progress("comparing") as advance:
            found = at_own_steps(read_setting(SETTING), progress=advance)
        own = own_steps_part(found)
        write_figure(lambda: own_steps_figure(found), PAGE.with_name("atlas-own-steps.svg"))
    else:
        own = kept_part(PAGE.read_text(encoding="utf-8"))
    write_whole(PAGE, atlas_page(baseline, read_searches(SEARCHES), own))
    for paper in PAPERS:
        target = PAGE.with_name(f"atlas-{paper}.svg")
        write_figure(partial(figure_of_paper, paper, baseline), target)
    tell_written(PAGE)


if __name__ == "__main__":
    run_script(command)
