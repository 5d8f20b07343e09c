"""``fltheory compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.options import READ, FigureFile, Reading, Seed, VerdictsAsJson
from fltheory.commands.shared.selection import registered_in
from fltheory.commands.shared.written_files import check_figures, check_places, tell_written
from fltheory.long_work.progress import shown_progress


def command(
    setting: Annotated[Path, READ, typer.Argument(help="A setting (TOML).")],
    theorems: Annotated[
        list[str] | None,
        typer.Argument(help="Ids or prefixes of ids; all about a run by default."),
    ] = None,
    reading: Reading = None,
    json: VerdictsAsJson = None,
    figure: FigureFile = None,
    replicas: Annotated[int, typer.Option(help="Sample size where sampled.")] = 2000,
    seed: Seed = 0,
) -> None:
    """Compare all theorems that apply to a setting, tightest first."""
    from fltheory.engines import read_setting
    from fltheory.report.figures.looseness_figure import write_looseness
    from fltheory.report.files.verdict_file import MadeBy, write_comparison
    from fltheory.report.terminal.comparison_table import comparison_notes, comparison_table
    from fltheory.verify.side_by_side import compare

    check_figures(figure=figure)
    check_places(".json", json=json)
    given = read_setting(setting)
    statements = registered_in(reading, theorems) if theorems or reading else None
    with shown_progress("comparing") as advance:
        found = compare(given, statements, replicas=replicas, seed=seed, progress=advance)
    if json is not None:
        write_comparison(json, found, MadeBy(seed, replicas))
    if found.answers:
        table_console().print(comparison_table(found))
    for line in comparison_notes(found):
        print(line)
    tell_written(json)
    if figure is None:
        return
    try:
        write_looseness(found, figure)
    except ValueError as error:
        # The table stands without it.
        print(f"nothing written to {figure}: {error}")
    else:
        tell_written(figure)
