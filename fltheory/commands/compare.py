"""``fltheory compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.options import (
    READ,
    FigureFile,
    Reading,
    Seed,
    VerdictsAsJson,
)
from fltheory.commands.shared.preparation import registered_in
from fltheory.commands.shared.written_files import tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from fltheory.claims.statement import Statement
    from fltheory.engines import Setting
    from fltheory.verify.comparison import OneMeasure

Measure = Literal["loss", "distance"]


def command(
    setting: Annotated[Path, READ, typer.Argument(help="A setting (TOML).")],
    theorems: Annotated[
        list[str] | None,
        typer.Argument(help="Ids or prefixes of ids; by default all theorems about runs."),
    ] = None,
    reading: Reading = None,
    json: VerdictsAsJson = None,
    figure: FigureFile = None,
    own_steps: Annotated[
        bool,
        typer.Option(
            "--own-steps",
            help="Use each theorem's own algorithm and step sizes, not the setting's.",
        ),
    ] = False,
    measure: Annotated[
        Measure | None,
        typer.Option(help="With --own-steps: compare in loss (default) or distance."),
    ] = None,
    replicas: Annotated[int, typer.Option(help="Sample size if sampled.")] = 2000,
    seed: Seed = 0,
) -> None:
    """Compare all theorems that apply to a setting, tightest first.

    With --own-steps, on the setting's problem and participation; its rounds count averages.
    """
    from fltheory.engines import read_setting
    from fltheory.report.verdict_file import MadeBy

    if measure is not None and not own_steps:
        raise ValueError(f"--measure must be left out without --own-steps, got {measure!r}")
    given = read_setting(setting)
    statements = registered_in(reading, theorems) if theorems or reading else None
    with shown_progress("comparing") as advance:
        asked = {"replicas": replicas, "seed": seed, "progress": advance}
        shown = (
            _at_own_steps(given, statements, measure or "loss", **asked)
            if own_steps
            else _side_by_side(given, statements, **asked)
        )
    if json is not None:
        shown.write(json, made_by=MadeBy(seed, replicas))
    if shown.table is not None:
        table_console().print(shown.table)
    for line in shown.notes:
        print(line)
    tell_written(json)
    if figure is None:
        return
    from fltheory.report import write_figure

    try:
        write_figure(shown.figure, figure)
    except ValueError as error:
        # The table does not depend on it.
        print(f"nothing written to {figure}: {error}")
    else:
        tell_written(figure)


@dataclass(frozen=True)
class _Shown:
    """The printed, the drawn and the written form of a comparison."""

    table: Table | None
    notes: Iterator[str]
    figure: Callable[[], Figure]
    write: Callable[..., None]


def _side_by_side(setting: Setting, statements: Sequence[Statement] | None, **asked: Any) -> _Shown:
    from fltheory.report.figures.looseness_figure import looseness_figure
    from fltheory.report.terminal.comparison_table import comparison_notes, comparison_table
    from fltheory.report.verdict_file import write_comparison
    from fltheory.verify.comparison import compare

    found = compare(setting, statements, **asked)
    table = comparison_table(found) if found.answers else None
    return _Shown(
        table,
        comparison_notes(found),
        partial(looseness_figure, found),
        partial(write_comparison, found=found),
    )


def _at_own_steps(
    setting: Setting, statements: Sequence[Statement] | None, measure: OneMeasure, **asked: Any
) -> _Shown:
    from fltheory.report.figures.looseness_figure import own_steps_figure
    from fltheory.report.terminal.comparison_table import own_steps_notes, own_steps_table
    from fltheory.report.verdict_file import write_own_steps
    from fltheory.verify.comparison import at_own_steps

    found = at_own_steps(setting, statements, measure=measure, **asked)
    table = own_steps_table(found) if found.bounds else None
    return _Shown(
        table,
        own_steps_notes(found),
        partial(own_steps_figure, found),
        partial(write_own_steps, found=found),
    )
