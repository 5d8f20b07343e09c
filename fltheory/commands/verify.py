"""``fltheory verify``: over regimes, or on the runs of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.commands.console import table_console
from fltheory.commands.exit_status import as_bad_input
from fltheory.commands.options import (
    CERTIFICATES,
    WITNESSES,
    SampleSeed,
    TheoremIds,
)
from fltheory.progress import shown_progress

if TYPE_CHECKING:
    from rich.console import Console

    from fltheory.verify.baseline import Baseline
    from fltheory.verify.runs import Cell

_REPLICAS = 2000
_RUNS_OF_AN_EXPERIMENT = 20


def command(
    theorems: TheoremIds = None,
    json: Annotated[Path | None, typer.Option(help="Write the verdicts as JSON.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the verdicts as CSV.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report: one HTML page.")] = None,
    witnesses: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of certificates to report; those of verification/ by default."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Compare with the verdicts recorded in this file.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(help="Sample size where sampled: 2000, or 20 runs with --on.")
    ] = None,
    seed: SampleSeed = 0,
    on: Annotated[
        Path | None,
        typer.Option(help="Check on the runs of an experiment (TOML), constants measured."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="With --on: folder of the data set's files.")
    ] = None,
) -> None:
    """Check theorems over their regimes; exit status 1 if a recorded verdict changed."""
    if on is not None:
        if json or csv or html or baseline:
            raise ValueError("json, csv, html and baseline must be left out with --on")
        runs = _RUNS_OF_AN_EXPERIMENT if replicas is None else replicas
        _verify_on(on, theorems or ["sa-fl/5"], runs, seed, data)
        return
    replicas = _REPLICAS if replicas is None else replicas
    from fltheory import theorems as registry
    from fltheory.report import summary
    from fltheory.report.files.made_by import MadeBy
    from fltheory.report.files.verdict_outputs import VerdictOutputs
    from fltheory.report.html.html_report import certificates_in
    from fltheory.report.terminal.verdict_table import reasons, verdict_table, what_is_refuted
    from fltheory.verify import Outcome, check_regimes
    from fltheory.verify.baseline import read_baseline

    outputs = VerdictOutputs(json, csv, html)
    statements = registry.registered(*theorems or ())
    recorded = read_baseline(_existing(baseline)) if baseline else {}
    kept = (WITNESSES, CERTIFICATES)
    folders = witnesses or [folder for folder in kept if folder.is_dir()]
    with shown_progress("reading certificates") as advance:
        certificates = [c for f in folders if html for c in certificates_in(f, statements)]
        cells = check_regimes(
            statements, replicas=replicas, seed=seed, processes=None, progress=advance
        )
        made_by = MadeBy(seed, replicas)
        outputs.write(statements, cells, certificates, made_by, progress=advance)
    console = table_console()
    console.print(verdict_table(cells))
    console.print(summary(cells))
    refuted = {cell.key[:2] for cell in cells if cell.verdict.outcome is Outcome.REFUTED}
    for line in (*what_is_refuted(statements, refuted), *reasons(statements, cells)):
        console.print(line, soft_wrap=True, markup=False)
    for path in outputs.files.values():
        console.print(f"written to {path}")
    if baseline and _report_changes(console, cells, recorded):
        raise typer.Exit(1)


def _verify_on(
    file: Path, theorems: Sequence[str], replicas: int, seed: int, data: Path | None
) -> None:
    from fltheory import theorems as registry
    from fltheory.report.terminal.hardware_report import hardware_text
    from fltheory.verify.on_hardware import check_experiment

    statements = registry.registered(*theorems)
    with as_bad_input(ImportError):
        from fltheory.hardware.training import read_experiment

        experiment = read_experiment(file)
        with shown_progress() as advance:
            for cell in check_experiment(
                statements, experiment, replicas=replicas, seed=seed, folder=data, progress=advance
            ):
                print(f"{hardware_text(cell)}\n")


def _report_changes(console: Console, cells: Sequence[Cell], recorded: Baseline) -> bool:
    from fltheory.verify.baseline import departure, verdict_changed

    for cell in cells:
        message = departure(cell, recorded)
        if message:
            console.print(
                message, style="bold red" if verdict_changed(cell, recorded) else "yellow"
            )
    changed = any(verdict_changed(cell, recorded) for cell in cells)
    if not changed:
        console.print("no verdict differs from the recorded ones")
    return changed


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"baseline must be an existing file, got {str(path)!r}")
    return path
