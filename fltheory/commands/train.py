"""``fltheory train``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.exit_status import as_bad_input
from fltheory.commands.shared.kept_cells import resumable
from fltheory.commands.shared.options import READ, Changes, FileUse, FurtherPage
from fltheory.commands.shared.written_files import tell_written
from fltheory.long_work.progress import shown_progress


def _folder(text: str | Path) -> Path:
    # An empty text as a path would be the current folder.
    if not str(text).strip():
        raise typer.BadParameter(f"it must be a folder's name, got {str(text)!r}")
    return Path(text)


def command(
    files: Annotated[list[Path], READ, typer.Argument(help="Experiments: TOML files.")],
    data: Annotated[
        Path | None,
        READ,
        typer.Option(
            help="Folder of the data set's files; bundled digits need none.", parser=_folder
        ),
    ] = None,
    out: Annotated[
        Path,
        FileUse(reads=True, writes=True, files="*.pt"),
        typer.Option(
            help="Where to keep checkpoints and results; rerun to resume.", parser=_folder
        ),
    ] = Path("out/train"),
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    changes: Changes = None,
    checkpoint_every: Annotated[int, typer.Option(help="Rounds between checkpoints.")] = 25,
    page: FurtherPage = None,
) -> None:
    """Train the models of a paper's table, and print the results next to the paper's."""
    from fltheory import validation
    from fltheory.files.whole_file import write_whole
    from fltheory.report.terminal.training_report import (
        training_page,
        training_summary,
        training_table,
    )

    with as_bad_input(ImportError), resumable(lambda: f"checkpoints are in {out}"):
        from fltheory.hardware.training import measure, read_experiment

        if len(set(files)) < len(files):
            raise ValueError(f"files must differ, got {' '.join(map(str, files))}")
        validation.whole_number("checkpoint_every", checkpoint_every, at_least=1)
        experiments = [read_experiment(file, changes or []) for file in files]
        with shown_progress() as advance:
            measured = measure(
                experiments,
                out,
                folder=data,
                device=device,
                checkpoint_every=checkpoint_every,
                progress=advance,
                notice=lambda line: print(f"fltheory: {line}", file=sys.stderr),
            )
    for results in measured:
        table_console().print(training_table(results))
        print(training_summary(results))
    print(f"runs are in {out}")
    if page is not None:
        options = "".join(f" --set {change}" for change in changes or [])
        made_by = f"fltheory train {' '.join(map(str, files))}{options} --page {page}"
        write_whole(page, training_page(measured, made_by))
        tell_written(page)
