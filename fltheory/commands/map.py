"""``fltheory map``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.commands.console import table_console
from fltheory.commands.options import FigureFile, TheoremId
from fltheory.commands.written_files import check_figures, draw, tell_written
from fltheory.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.engines import Setting
    from fltheory.theorems import Family, Statement

_USUAL_REGIME = "biased minority excluded"


def command(
    theorem: TheoremId,
    x: Annotated[
        str | None,
        typer.Option(
            help="Along the x axis, say problem.sigma; by default q, or a family's first parameter."
        ),
    ] = None,
    y: Annotated[
        str | None, typer.Option(help="Along the y axis; by default rounds, or a family's second.")
    ] = None,
    reading: Annotated[str, typer.Option(help="Which reading to map.")] = "printed",
    regime: Annotated[
        str | None,
        typer.Option(help="Regime whose other parameters stay; a family's defaults if it has one."),
    ] = None,
    out: FigureFile = None,
) -> None:
    """Show over two parameters where a theorem applies, holds, is refuted, and how loose."""
    from fltheory import theorems as registry
    from fltheory.report import region_heading, region_table, write_region
    from fltheory.verify import default_axis, map_region

    check_figures(out=out)
    statement = registry.get(theorem, reading)
    start = _starting_point(statement, regime)
    first, second = _axes_of(start)
    axes = default_axis(start, x or first), default_axis(start, y or second)
    with shown_progress() as advance:
        region = map_region(statement, start, *axes, progress=advance)
        draw(partial(write_region, region), out, advance)
    print(region_heading(region))
    table_console().print(region_table(region))
    tell_written(out)


def _starting_point(statement: Statement, regime: str | None) -> Setting | Family:
    """Return what a map varies: a regime's setting, or the statement's family."""
    from fltheory.engines import Setting
    from fltheory.theorems import PointClaim, Theorem

    if regime is None and isinstance(statement, Theorem | PointClaim) and statement.family:
        return statement.family
    name = _USUAL_REGIME if regime is None else regime
    if name not in statement.regimes:
        known = ", ".join(statement.regimes)
        raise ValueError(f"regime must be one of {known}, got {name!r}")
    setting = statement.regimes[name].setting
    if not isinstance(setting, Setting):
        raise ValueError(
            f"theorem must be about runs of an algorithm to be mapped, got {statement.id}"
        )
    return setting


def _axes_of(start: Setting | Family) -> tuple[str, str]:
    from fltheory.theorems import Family

    if not isinstance(start, Family):
        return "q", "rounds"
    first, *rest = start.defaults
    return first, rest[0] if rest else first
