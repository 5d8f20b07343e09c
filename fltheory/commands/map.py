"""``fltheory map``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.kept_cells import kept_in, tell_kept
from fltheory.commands.shared.options import (
    Changes,
    DaskAddress,
    FigureFile,
    StoreFile,
    TheoremId,
    pair,
)
from fltheory.commands.shared.preparation import the_id
from fltheory.commands.shared.written_files import draw, tell_written
from fltheory.long_work.progress import shown_progress


def command(
    theorem: TheoremId,
    x: Annotated[
        str | None,
        typer.Option(
            help="Parameter along the x axis, e.g. problem.sigma; by default q, client_lr, or a "
            "family's first."
        ),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option(help="Parameter along the y axis; by default rounds, or a family's second."),
    ] = None,
    reading: Annotated[
        str | None,
        typer.Option(
            help="Which reading, e.g. printed or derived; default: the first reading that is an "
            "inequality."
        ),
    ] = None,
    regime: Annotated[
        str | None,
        typer.Option(help="Regime to start from; default: a family, else the first regime."),
    ] = None,
    changes: Changes = None,
    points: Annotated[
        int | None, typer.Option(help="Values along each axis; by default about 13.")
    ] = None,
    figure: FigureFile = None,
    store: StoreFile = None,
    dask: DaskAddress = None,
) -> None:
    """Map over two parameters where a theorem applies, holds or is refuted, and how loose it is."""
    from fltheory.report.figures.region_figure import region_figure, region_heading, region_table
    from fltheory.sweep.kept import map_into
    from fltheory.theorems import registry
    from fltheory.verify import map_region
    from fltheory.verify.region_map import (
        default_axis,
        default_axis_names,
        starting_point,
        with_parameters,
    )

    theorem = the_id(theorem)
    statement = registry.get(theorem, _mapped_reading(theorem) if reading is None else reading)
    numbers = _numbers(changes or ())
    start = with_parameters(starting_point(statement, regime), numbers)
    first, second = default_axis_names(start)
    names = (first if x is None else x, second if y is None else y)
    if on_an_axis := [name for name in names if name in numbers]:
        raise ValueError(f"--set {on_an_axis[0]} must be left out: it is on an axis")
    axes = [default_axis(start, name) for name in names]
    if points is not None:
        axes = [axis.with_points(points) for axis in axes]
    with kept_in(store, dask) as kept:
        with shown_progress() as advance:
            if kept is None:
                region = map_region(statement, start, *axes, progress=advance)
            else:
                region = map_into(kept, statement, start, *axes, progress=advance)
            draw(partial(region_figure, region), figure, advance)
        print(region_heading(region))
        table_console().print(region_table(region))
        tell_kept(kept)
    tell_written(figure)


def _numbers(changes: Sequence[str]) -> dict[str, float]:
    numbers = {}
    for name, value in map(pair("--set"), changes):
        try:
            numbers[name] = float(value)
        except ValueError:
            numbers[name] = math.nan
        if not math.isfinite(numbers[name]):
            raise ValueError(f"--set {name} must be a number, got {value!r}")
    return numbers


def _mapped_reading(theorem: str) -> str:
    """Return the first reading that is not a claimed order, or the printed one if all are."""
    from fltheory.theorems import registry

    known = registry.readings(theorem)
    return next((one for one in known if not registry.get(theorem, one).axes), "printed")
