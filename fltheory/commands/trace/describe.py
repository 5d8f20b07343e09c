"""``fltheory trace describe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.deployment import deployment
from fltheory.commands.shared.options import (
    WRITTEN,
    Columns,
    FigureFile,
    LogFile,
    RoundLength,
    Seed,
)
from fltheory.commands.shared.terminal.console import table_console
from fltheory.commands.shared.written_files import check_figures, check_places, draw, tell_written
from fltheory.long_work.progress import shown_progress


def command(
    log: LogFile,
    round_length: RoundLength = None,
    columns: Columns = None,
    period: Annotated[
        float | None, typer.Option(help="Rounds of a cycle, say 24; looked for by default.")
    ] = None,
    seed: Seed = 0,
    json: Annotated[
        Path | None, WRITTEN, typer.Option(help="Write the description as JSON to this file.")
    ] = None,
    figure: FigureFile = None,
) -> None:
    """Describe a log of who was online: how often, how long, together with whom, and when."""
    from functools import partial
    from json import dumps

    from fltheory.files.whole_file import write_whole
    from fltheory.logs import describe
    from fltheory.report.figures.log_figure import write_log_figure
    from fltheory.report.terminal.deployments.log_report import fits_table, log_summary

    check_figures(figure=figure)
    check_places(json=json)
    with shown_progress("describing") as advance:
        record, _ = deployment(log, None, round_length, columns)
        found = describe(record, period=period, seed=seed)
        draw(partial(write_log_figure, found), figure, advance)
    print(log_summary(found))
    table_console().print(fits_table(found))
    if json is not None:
        write_whole(json, dumps(found.document(), indent=1, ensure_ascii=False) + "\n")
    for path in (json, figure):
        tell_written(path)
