"""``fltheory advise``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.console import table_console
from fltheory.commands.exit_status import as_bad_input
from fltheory.commands.options import (
    ClientCondition,
    ClientDissimilarity,
    ClientNoise,
    LogFile,
    RoundLength,
    Seed,
    SizesFile,
)
from fltheory.commands.written_files import check_figures, check_places, draw, tell_written
from fltheory.progress import shown_progress


def command(
    log: LogFile,
    sizes: SizesFile = None,
    round_length: RoundLength = None,
    local_steps: Annotated[int, typer.Option(help="Local steps of a round.")] = 1,
    noise: ClientNoise = 1.0,
    dissimilarity: ClientDissimilarity = 0.5,
    condition: ClientCondition = 1.0,
    within: Annotated[
        float, typer.Option(help="Distance to count rounds to, in units of the start's.")
    ] = 0.1,
    seed: Seed = 0,
    json: Annotated[
        Path | None, typer.Option(help="Write the advice as JSON to this file.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Write a figure to this file: .png or .svg.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Train the bundled digits under the log: needs torch."),
    ] = False,
) -> None:
    """Say which algorithm suits a log of who was online, and how far each ends from the optimum."""
    from functools import partial
    from json import dumps

    from fltheory.advice import advise
    from fltheory.advice.on_digits import train_on_digits
    from fltheory.logs import read_log
    from fltheory.report.figures.advice_figure import write_advice_figure
    from fltheory.report.terminal.advice_report import (
        advice_table,
        assumptions,
        check_table,
        sentences,
    )
    from fltheory.weights import Training, read_sizes
    from fltheory.whole_file import write_whole

    check_figures(figure=figure)
    check_places(json=json)
    if check:
        with as_bad_input(ImportError):
            import fltheory.hardware.training  # noqa: F401
    training = Training(
        local_steps=local_steps, noise=noise, dissimilarity=dissimilarity, condition=condition
    )
    with shown_progress(f"reading {log}") as advance:
        record = read_log(log, round_length=round_length)
        given = None if sizes is None else read_sizes(sizes, record.clients)
        found = advise(record, given, training=training, within=within, seed=seed, progress=advance)
        draw(partial(write_advice_figure, found), figure, advance)
    print("\n".join(sentences(found)))
    table_console().print(advice_table(found))
    print(assumptions(found, None if given is None else float(given.sum())))
    if json is not None:
        said = {"sentences": list(sentences(found)), **found.document()}
        write_whole(json, dumps(said, indent=1, ensure_ascii=False) + "\n")
    for path in (json, figure):
        tell_written(path)
    if check:
        with shown_progress() as advance:
            trained = train_on_digits(found, log, round_length=round_length, progress=advance)
        table_console().print(check_table(trained))
