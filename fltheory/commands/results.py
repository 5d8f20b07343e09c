"""``fltheory results``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.options import READ, written
from fltheory.commands.shared.written_files import tell_written

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

_SHOWN = 50
_LEFT_OUT = ("seed", "replicas", "error", "detail", "versions")


def command(
    store: Annotated[Path, READ, typer.Argument(help="A results database from fltheory sweep.")],
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Keep only matching rows: algorithm.client_lr<=0.1, outcome=REFUTED; repeatable."
        ),
    ] = None,
    clock: Annotated[
        bool, typer.Option("--clock", help="Also show how long each cell took, and when.")
    ] = False,
    out: Annotated[
        Path | None,
        written(".csv", ".parquet"),
        typer.Option(help="Where to write the table: .csv or .parquet."),
    ] = None,
) -> None:
    """Show the results of sweeps, some or all, and write them as a table."""
    from fltheory.sweep import read_results
    from fltheory.sweep.table import write_results

    table = read_results(store, where=where or (), clock=clock)
    if out is not None:
        write_results(out, table)
    else:
        table_console().print(_table(table))
        if len(table) > _SHOWN:
            print(f"the first {_SHOWN} of {len(table)} rows; --out FILE.csv has all")
    counts = table["outcome"].value_counts(sort=True)
    print(f"{len(table)} rows" + "".join(f", {name} {count}" for name, count in counts.items()))
    tell_written(out)


def _table(results: pd.DataFrame) -> Table:
    """Return the first rows, without columns too detailed for a terminal."""
    from rich.markup import escape
    from rich.table import Table

    shown = [name for name in results.columns if name not in _LEFT_OUT]
    table = Table()
    for name in shown:
        table.add_column(name, overflow="fold")
    for values in results[shown].head(_SHOWN).itertuples(index=False):
        table.add_row(*(escape(_text(value)) for value in values))
    return table


def _text(value: object) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
