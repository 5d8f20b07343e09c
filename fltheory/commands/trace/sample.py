"""``fltheory trace sample``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.deployment import deployment
from fltheory.commands.shared.options import READ, WRITTEN, Columns, RoundLength, Seed
from fltheory.commands.shared.written_files import check_places, tell_written


def command(
    process: Annotated[
        Path,
        READ,
        typer.Argument(help="A process, as TOML, or a log whose fitted chains are drawn."),
    ],
    rounds: Annotated[int, typer.Option(help="Rounds of a run.")],
    out: Annotated[Path, WRITTEN, typer.Option(help="Where to write the log: .csv or .csv.gz.")],
    seed: Seed = 0,
    round_length: RoundLength = None,
    columns: Columns = None,
) -> None:
    """Draw a log: who is online, by a process or like another log."""
    from fltheory import validation
    from fltheory.engines.setting_file import read_participation
    from fltheory.logs import write_log
    from fltheory.logs.transitions import draw_log, fit_on_off

    check_places(".csv", ".gz", out=out)
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
