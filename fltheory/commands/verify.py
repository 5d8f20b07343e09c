"""``fltheory verify``: over regimes, or on the runs of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.exit_status import as_bad_input
from fltheory.commands.shared.options import (
    CERTIFICATES,
    READ,
    WITNESSES,
    FileUse,
    Reading,
    Seed,
    TheoremIds,
    VerdictsAsJson,
    written,
)
from fltheory.commands.shared.preparation import registered_in
from fltheory.commands.shared.written_files import tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from rich.console import Console

    from fltheory.claims.statement import Statement
    from fltheory.verify.baseline import Baseline
    from fltheory.verify.runs import Cell

_REPLICAS = 2000
_RUNS_OF_AN_EXPERIMENT = 20


class FailOn(StrEnum):
    """When ``verify`` ends with exit status 1."""

    REFUTED = "refuted"
    UNDECIDED = "undecided"
    CHANGED = "changed"


def command(
    theorems: TheoremIds = None,
    reading: Reading = None,
    json: VerdictsAsJson = None,
    csv: Annotated[
        Path | None, written(".csv"), typer.Option(help="Write the verdicts as CSV to this file.")
    ] = None,
    html: Annotated[
        Path | None,
        written(".html"),
        typer.Option(help="Write the report to this file: one HTML page."),
    ] = None,
    witnesses: Annotated[
        list[Path] | None,
        READ,
        typer.Option(
            help="With --html: folder of certificates to report; those of verification/ by default."
        ),
    ] = None,
    search: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --html: search this many settings per statement for a refutation."
        ),
    ] = None,
    maps: Annotated[
        bool, typer.Option("--map", help="With --html: map where each statement applies.")
    ] = False,
    certificate: Annotated[
        list[Path] | None,
        READ,
        typer.Option(help="With --html: a proof's certificate to check and report; repeatable."),
    ] = None,
    baseline: Annotated[
        Path | None,
        FileUse(reads=True, writes="record"),
        typer.Option(help="Compare with the verdicts recorded in this file, or written by --csv."),
    ] = None,
    record: Annotated[
        bool,
        typer.Option(
            help="Write the verdicts to the --baseline file instead of comparing with it."
        ),
    ] = False,
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option(help="What sets exit status 1; 'changed' by default; repeatable."),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(help="Sample size if sampled; default 2000, or 20 runs with --on."),
    ] = None,
    seed: Seed = 0,
    durations: Annotated[
        int | None,
        typer.Option(min=1, help="List this many of the slowest cells, by processor time."),
    ] = None,
    on: Annotated[
        Path | None,
        READ,
        typer.Option(help="Check on the runs of an experiment (TOML), with measured constants."),
    ] = None,
    data: Annotated[
        Path | None, READ, typer.Option(help="With --on: folder of the data set's files.")
    ] = None,
) -> None:
    """Check theorems on their test settings; exit status 1 if a verdict differs from its record."""
    if on is not None:
        if any((json, csv, html, baseline, record, fail_on, witnesses, durations)):
            raise ValueError(
                "options for files, reports, timing, comparison or the exit status must be left "
                "out with --on"
            )
        runs = _RUNS_OF_AN_EXPERIMENT if replicas is None else replicas
        _verify_on(on, registered_in(reading, theorems or ["sa-fl/5"]), runs, seed, data)
        return
    beside = {"witnesses": witnesses, "search": search, "map": maps, "certificate": certificate}
    _check_partners(data, beside, html)
    replicas = _REPLICAS if replicas is None else replicas
    from fltheory.report.html.html_report import certificates_in, kept_in, mapped, proved, searched
    from fltheory.report.verdict_file import MadeBy
    from fltheory.report.verdict_outputs import VerdictOutputs
    from fltheory.verify import check_regimes

    _check_record(baseline, record, fail_on or ())
    outputs = VerdictOutputs(json, csv, html)
    statements = registered_in(reading, theorems)
    if not any(statement.regimes for statement in statements):
        names = ", ".join(dict.fromkeys(statement.id for statement in statements))
        raise ValueError(
            f"theorems must have a regime to be verified, got {names}, which have none"
        )
    recorded = _recorded(baseline, record)
    usual = (WITNESSES, CERTIFICATES)
    folders = witnesses or [folder for folder in usual if folder.is_dir()]
    with shown_progress("reading certificates") as advance:
        views = [proved(path) for path in certificate or ()]
        certificates = [c for f in folders if html for c in certificates_in(f, statements)]
        kept = [view for f in folders if html for view in kept_in(f, statements)]
        cells = check_regimes(
            statements,
            replicas=replicas,
            seed=seed,
            processes=None,
            progress=advance,
            curves=html is not None,
        )
        for statement in statements:
            views += [searched(statement, search, seed, advance)] if search else []
            views += [mapped(statement, advance)] if maps else []
        made_by = MadeBy(seed, replicas)
        outputs.write(
            statements, cells, certificates, made_by, kept=kept, beside=views, progress=advance
        )
    console = table_console()
    _report(console, statements, cells, durations)
    for path in outputs.files.values():
        tell_written(path)
    if baseline and record:
        _record(baseline, cells)
        console.print(f"recorded in {baseline}")
    changed = bool(baseline) and not record and _report_changes(console, cells, recorded)
    if _fails(cells, changed, fail_on or [FailOn.CHANGED]):
        raise typer.Exit(1)


def _report(
    console: Console, statements: Sequence[Statement], cells: Sequence[Cell], durations: int | None
) -> None:
    from fltheory.report import summary
    from fltheory.report.terminal.verdict_table import (
        dearest,
        reasons,
        verdict_table,
        what_is_refuted,
        why_no_bound,
        why_not_exact,
    )
    from fltheory.verify import Outcome

    console.print(verdict_table(cells))
    console.print(summary(cells))
    refuted = {cell.key[:2] for cell in cells if cell.verdict.outcome is Outcome.REFUTED}
    for line in (
        *why_no_bound(statements, cells),
        *why_not_exact(cells),
        *what_is_refuted(statements, refuted, cells),
        *reasons(statements, cells),
    ):
        console.print(line, soft_wrap=True, markup=False)
    if durations:
        console.print(dearest(cells, durations))


def _check_record(baseline: Path | None, record: bool, fail_on: Sequence[FailOn]) -> None:
    if record and baseline is None:
        raise ValueError("baseline must name the file to record verdicts in, got --record alone")
    if FailOn.CHANGED in fail_on and (baseline is None or record):
        raise ValueError("baseline must be given, without --record, for --fail-on changed")


def _fails(cells: Sequence[Cell], changed: bool, fail_on: Sequence[FailOn]) -> bool:
    outcomes = {cell.verdict.outcome.name.lower() for cell in cells}
    return any(changed if what is FailOn.CHANGED else what.value in outcomes for what in fail_on)


def _check_partners(data: Path | None, reported: Mapping[str, object], html: Path | None) -> None:
    """Refuse options that would go unused."""
    if data is not None:
        raise ValueError(f"data must be left out without --on, got {str(data)!r}")
    for name, value in reported.items():
        if value and html is None:
            raise ValueError(f"{name} must be left out without --html, which reports it")


def _verify_on(
    file: Path, statements: Sequence[Statement], replicas: int, seed: int, data: Path | None
) -> None:
    from fltheory.report.terminal.training_report import hardware_text
    from fltheory.verify.on_hardware import check_experiment

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
    if not any(verdict_changed(cell, recorded) for cell in cells):
        console.print("no verdict differs from the recorded ones")
    return any(cell.key in recorded and departure(cell, recorded) for cell in cells)


def _recorded(path: Path | None, to_be_written: bool) -> Baseline:
    """Return the recorded verdicts; a file to be written need not exist."""
    from fltheory.verify.baseline import read_baseline

    if path is None or (to_be_written and not path.exists()):
        return {}
    return read_baseline(path)


def _record(path: Path, cells: Sequence[Cell]) -> None:
    from fltheory.verify.baseline import write_baseline

    kept = _recorded(path, to_be_written=True)  # others may have been recorded meanwhile
    write_baseline(path, {**kept, **{cell.key: cell.record for cell in cells}})
