"""``fltheory trace fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.deployment import deployment
from fltheory.commands.shared.options import WRITTEN, Columns, LogFile, RoundLength
from fltheory.commands.shared.written_files import check_places, tell_written


def command(
    log: LogFile,
    out: Annotated[Path, WRITTEN, typer.Option(help="Where to write the process, a TOML file.")],
    round_length: RoundLength = None,
    columns: Columns = None,
) -> None:
    """Fit a two-state chain to each client of a log, in the form of a setting's participation."""
    from fltheory.engines.setting_file import write_participation
    from fltheory.logs.transitions import fit_on_off

    check_places(".toml", out=out)
    record, _ = deployment(log, None, round_length, columns)
    write_participation(out, fit_on_off(record), record.clients)
    print(f"{record.n_clients} clients, each a two-state chain fitted to {record.n_rounds} rounds")
    tell_written(out)
