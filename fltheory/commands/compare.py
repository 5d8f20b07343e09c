"""``fltheory compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.options import READ, FigureFile, Reading, Seed, VerdictsAsJson
from fltheory.commands.shared.preparation import registered_in
from fltheory.commands.shared.written_files import check_figures, check_places, tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from rich.table import Table

    from fltheory.claims.statement import Statement
    from fltheory.engines import Setting
    from fltheory.long_work.progress import Progress
    from fltheory.report.verdict_file import MadeBy
    from fltheory.verify.own_steps import OneMeasure, OwnSteps
    from fltheory.verify.side_by_side import SideBySide

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
    from fltheory.report.figures.looseness_figure import write_looseness

    if measure is not None and not own_steps:
        raise ValueError(f"--measure must be left out without --own-steps, got {measure!r}")
    check_figures(figure=figure)
    check_places(".json", json=json)
    given = read_setting(setting)
    statements = registered_in(reading, theorems) if theorems or reading else None
    with shown_progress("comparing") as advance:
        asked = _Asked(given, statements, replicas, seed, advance)
        shown = _at_own_steps(asked, measure or "loss") if own_steps else _side_by_side(asked)
    if json is not None:
        shown.write(json)
    if shown.table is not None:
        table_console().print(shown.table)
    for line in shown.notes:
        print(line)
    tell_written(json)
    if figure is None:
        return
    try:
        write_looseness(shown.found, figure)
    except ValueError as error:
        # The table stands without it.
        print(f"nothing written to {figure}: {error}")
    else:
        tell_written(figure)


@dataclass(frozen=True)
class _Asked:
    """The comparison to make."""

    setting: Setting
    statements: Sequence[Statement] | None
    replicas: int
    seed: int
    progress: Progress

    @property
    def options(self) -> dict[str, Any]:
        return {"replicas": self.replicas, "seed": self.seed, "progress": self.progress}

    @property
    def made_by(self) -> MadeBy:
        from fltheory.report.verdict_file import MadeBy

        return MadeBy(self.seed, self.replicas)


@dataclass(frozen=True)
class _Shown:
    """The printed and the written form of a comparison."""

    found: SideBySide | OwnSteps
    table: Table | None
    notes: Iterator[str]
    write: Callable[[Path], None]


def _side_by_side(asked: _Asked) -> _Shown:
    from fltheory.report.terminal.comparison_table import comparison_notes, comparison_table
    from fltheory.report.verdict_file import write_comparison
    from fltheory.verify.side_by_side import compare

    found = compare(asked.setting, asked.statements, **asked.options)
    table = comparison_table(found) if found.answers else None
    write = partial(write_comparison, found=found, made_by=asked.made_by)
    return _Shown(found, table, comparison_notes(found), write)


def _at_own_steps(asked: _Asked, measure: OneMeasure) -> _Shown:
    from fltheory.report.terminal.comparison_table import own_steps_notes, own_steps_table
    from fltheory.report.verdict_file import write_own_steps
    from fltheory.verify.own_steps import at_own_steps

    found = at_own_steps(asked.setting, asked.statements, measure=measure, **asked.options)
    table = own_steps_table(found) if found.bounds else None
    write = partial(write_own_steps, found=found, made_by=asked.made_by)
    return _Shown(found, table, own_steps_notes(found), write)
