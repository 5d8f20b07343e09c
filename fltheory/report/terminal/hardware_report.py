"""A theorem's bound beside what runs on real data measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fltheory.decimals import how_many
from fltheory.engines.measured_run import Bracket
from fltheory.evidence.verdict import Outcome
from fltheory.verify.on_hardware import HardwareVerdict, MeasuredCell

if TYPE_CHECKING:
    from fltheory.hardware.theory_runs import TheoryRun


def run_text(label: str, run: TheoryRun) -> str:
    """Return what was run and measured, in a few lines."""
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
    """Return the bound beside the measured error, and which hypotheses held."""
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
    """Return what was run, and what each statement is worth on it."""
    return "\n".join([run_text(cell.label, cell.run), *map(hardware_verdict_text, cell.verdicts)])


def _between(bracket: Bracket) -> str:
    return f"{bracket.low:.4g} .. {bracket.high:.4g}"
