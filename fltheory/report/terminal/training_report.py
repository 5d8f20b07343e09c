"""Trained experiments compared with the paper's tables, for a terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.markup import escape
from rich.table import Table

from fltheory.decimals import how_many
from fltheory.engines.measured_run import Bracket
from fltheory.evidence.verdict import Outcome
from fltheory.validation import FloatArray
from fltheory.verify.on_hardware import HardwareVerdict, MeasuredCell

if TYPE_CHECKING:
    from fltheory.hardware.theory_runs import TheoryRun
    from fltheory.hardware.training.experiment import ExperimentCell
    from fltheory.hardware.training.measure import Measured

_MEANINGS = {
    "last": "test accuracy (%) after the last round",
    "best": "highest test accuracy (%) of a run",
    "late": "mean test accuracy (%) over the second half of the rounds",
    "time-average": "mean test accuracy (%) over the rounds",
    "deviation": "standard deviation of the test accuracy (%) over the second half of the rounds",
    "last loss": "test loss after the last round",
}
_SHOWN_BESIDE = ("last", "best", "late")


def training_table(measured: Measured) -> Table:
    """Return the table of mean and standard deviation over seeds, with the paper's in brackets."""
    experiment = measured.experiment
    # The title is text from a user, so its brackets must not be read as markup.
    table = Table(title=escape(f"{experiment.source}: {experiment.title}"))
    for heading in ("", *experiment.columns):
        table.add_column(escape(heading))
    for label, cells in experiment.rows:
        table.add_row(escape(label), *(escape(_text(measured, cell)) for cell in cells))
    return table


def _meaning(cell: ExperimentCell) -> str:
    where = "" if cell.rounds is None else f", counting only {len(cell.rounds)} rounds"
    return _MEANINGS[cell.figure] + where


def training_summary(measured: Measured) -> str:
    """Return a line on what the figures mean and how far they are from the paper's figures."""
    experiment = measured.experiment
    meanings = dict.fromkeys(_meaning(cell) for _, row in experiment.rows for cell in row)
    what = f"the {'; the '.join(meanings)}"
    seeds = ", ".join(map(str, experiment.seeds))
    gaps = _gaps(measured)
    far = ""
    if gaps.size:
        far = (
            f" Our values minus the paper's are {gaps.mean():+.2f} on average, and between "
            f"{gaps.min():+.2f} and {gaps.max():+.2f}."
        )
    beside = ""
    if any(cell.paper for _, row in experiment.rows for cell in row):
        beside = ", with the paper's value in brackets"
    spread = f"mean ± standard deviation over seeds {seeds}{beside}"
    if len(meanings) == 1:
        return f"Each cell shows {what}, as {spread}.{far}"
    return f"Each cell shows the {spread}, of one of these: {what}.{far}"


def training_page(measured: Sequence[Measured], command: str) -> str:
    """Return a page of experiments and the machines that ran them, in Markdown."""
    about = [run.about for results in measured for run in results.runs.values()]
    lines = ["# Experiments run again", "", f"Made by `{command}`; do not edit.", ""]
    lines += ["Ran with " + "; ".join(_versions(about)) + "."]
    for results in measured:
        lines += ["", *_section(results)]
    return "\n".join(lines) + "\n"


def _section(measured: Measured) -> Iterator[str]:
    experiment = measured.experiment
    yield f"## {experiment.source}: {experiment.title}"
    yield ""
    yield training_summary(measured)
    if experiment.notes:
        yield ""
        yield "Notes:"
        yield ""
        yield from (f"- {note}" for note in experiment.notes)
    yield ""
    yield from _markdown(measured, None)
    if any(cell.figure != experiment.figure for _, row in experiment.rows for cell in row):
        return
    for figure in _SHOWN_BESIDE:
        if figure != experiment.figure:
            yield ""
            yield f"For the same runs, the {_MEANINGS[figure]}:"
            yield ""
            yield from _markdown(measured, figure)


def _markdown(measured: Measured, figure: str | None) -> Iterator[str]:
    experiment = measured.experiment
    yield f"| | {' | '.join(experiment.columns)} |"
    yield "|---" * (len(experiment.columns) + 1) + "|"
    for label, cells in experiment.rows:
        texts = [_text(measured, cell, figure) for cell in cells]
        yield f"| {label} | {' | '.join(texts)} |"


def _text(measured: Measured, cell: ExperimentCell, figure: str | None = None) -> str:
    values = measured.values(cell, figure)
    sign = "+" if cell.baseline else ""
    text = f"{values.mean():{sign}.2f}"
    if values.size > 1:
        text += f" ± {values.std(ddof=1):.2f}"
    return f"{text} ({cell.paper})" if cell.paper else text


def _gaps(measured: Measured) -> FloatArray:
    """Return our figures minus the paper's figures, where the paper has a number."""
    pairs = []
    for _, row in measured.experiment.rows:
        for cell in row:
            try:
                pairs.append(measured.values(cell).mean() - float(cell.paper.split("±")[0]))
            except ValueError:
                continue
    return np.array(pairs)


def _versions(about: Sequence[dict[str, str]]) -> Iterator[str]:
    for name in about[0]:
        values = dict.fromkeys(entry[name] for entry in about)
        yield f"{name} {', '.join(values)}"


def run_text(label: str, run: TheoryRun) -> str:
    """Return a few lines on the run and its measurements."""
    measured, problem = run.measured, run.problem
    optimum = problem.optimum
    lines = [
        f"{label}: {run.data_name}, {how_many(problem.n_clients, 'client')}, "
        f"{measured.trajectory.replicas} runs of {how_many(run.rounds, 'round')}",
        f"  L = {problem.L:.6g} and mu = {problem.mu:.6g} for every client, both tight everywhere",
        f"  x* within {optimum.distance:.1g} (gradient at most {optimum.gradient_norm:.1g}), "
        f"F* = {problem.F_star:.6g}",
        f"  models stay within {measured.radius:.4g} of x*; there, from the largest value seen to "
        "a guaranteed bound:",
        f"    L {_between(measured.smoothness)}, mu {problem.mu:.6g}",
        f"    sigma {_between(measured.sigma)}, sigma_s {_between(measured.server_sigma)}, "
        f"sigma_G {_between(measured.dissimilarity)}",
    ]
    return "\n".join(lines)


def hardware_verdict_text(verdict: HardwareVerdict) -> str:
    """Return the bound and the measured error, and which hypotheses held."""
    lines = [
        f"  {verdict.theorem} {verdict.reading}: {verdict.outcome.name}",
        f"    measured {verdict.truth:.4g} +- {verdict.error:.2g}, "
        f"bound {_between(verdict.bound)}, computed with L = {verdict.smoothness:.6g}",
        f"    met: {', '.join(verdict.met) or 'none'}",
        *(f"    not met: {failure}" for failure in verdict.failures),
    ]
    if verdict.undecided:
        lines.append(f"    too few runs to decide: {', '.join(verdict.undecided)}")
    if verdict.outcome is Outcome.UNDECIDED and not verdict.undecided:
        lines.append("    the intervals of the constants leave it open")
    return "\n".join(lines)


def hardware_text(cell: MeasuredCell) -> str:
    """Return the run and the verdict on each statement."""
    return "\n".join([run_text(cell.label, cell.run), *map(hardware_verdict_text, cell.verdicts)])


def _between(bracket: Bracket) -> str:
    return f"{bracket.low:.4g} .. {bracket.high:.4g}"
