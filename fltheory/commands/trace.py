"""``fltheory trace ...``: logs of who was online."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.options import (
    READ,
    WRITTEN,
    Columns,
    FigureFile,
    LogFile,
    RoundLength,
    Seed,
    written,
)
from fltheory.commands.shared.preparation import deployment
from fltheory.commands.shared.written_files import draw, tell_written
from fltheory.long_work.progress import shown_progress


def describe(
    log: LogFile,
    round_length: RoundLength = None,
    columns: Columns = None,
    period: Annotated[
        float | None, typer.Option(help="Rounds per cycle, e.g. 24; detected by default.")
    ] = None,
    seed: Seed = 0,
    json: Annotated[
        Path | None, WRITTEN, typer.Option(help="Write the description as JSON to this file.")
    ] = None,
    figure: FigureFile = None,
) -> None:
    """Describe a log of who was online: how often, how long, with whom, and when."""
    from functools import partial
    from json import dumps

    from fltheory.files.whole_file import write_whole
    from fltheory.logs import describe
    from fltheory.report.figures.log_figure import log_figure
    from fltheory.report.terminal.log_report import fits_table, log_summary, next_steps

    with shown_progress("describing") as advance:
        record, _ = deployment(log, None, round_length, columns)
        found = describe(record, period=period, seed=seed)
        draw(partial(log_figure, found), figure, advance)
    print(log_summary(found))
    table_console().print(fits_table(found))
    options = {"--round-length": round_length, "--columns": columns}
    given = (word for name, value in options.items() if value is not None for word in (name, value))
    print(next_steps(found, shlex.join(map(str, (log, *given)))))
    if json is not None:
        write_whole(json, dumps(found.document(), indent=1, ensure_ascii=False) + "\n")
    for path in (json, figure):
        tell_written(path)


def fit(
    log: LogFile,
    out: Annotated[
        Path, written(".toml"), typer.Option(help="Where to write the process, a TOML file.")
    ],
    round_length: RoundLength = None,
    columns: Columns = None,
) -> None:
    """Fit a two-state Markov chain to each client in a log, as a setting's participation."""
    from fltheory.engines.setting_file import write_participation
    from fltheory.logs.transitions import fit_on_off

    record, _ = deployment(log, None, round_length, columns)
    write_participation(out, fit_on_off(record), record.clients)
    print(f"{record.n_clients} clients, each a two-state chain fitted to {record.n_rounds} rounds")
    tell_written(out)


def sample(
    process: Annotated[
        Path,
        READ,
        typer.Argument(help="A process (TOML), or a log to which chains are fitted."),
    ],
    rounds: Annotated[int, typer.Option(help="Number of rounds.")],
    out: Annotated[
        Path, written(".csv", ".gz"), typer.Option(help="Where to write the log: .csv or .csv.gz.")
    ],
    seed: Seed = 0,
    round_length: RoundLength = None,
    columns: Columns = None,
) -> None:
    """Draw a log of who is online, from a process or like another log."""
    from fltheory import validation
    from fltheory.engines.setting_file import read_participation
    from fltheory.logs import write_log
    from fltheory.logs.transitions import draw_log, fit_on_off

    validation.whole_number("rounds", rounds, at_least=2)
    validation.seed_number("seed", seed)
    if process.suffix == ".toml":
        if round_length is not None or columns is not None:
            raise ValueError("round-length and columns must be left out for a process")
        drawn_from, names = read_participation(process)
    else:
        record, _ = deployment(process, None, round_length, columns)
        drawn_from, names = fit_on_off(record), record.clients
    write_log(out, draw_log(drawn_from, rounds, seed=seed, clients=names or None))
    tell_written(out)
