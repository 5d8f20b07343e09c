"""``fltheory sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.commands.shared.kept_cells import resumable, tell_other_versions, workers
from fltheory.commands.shared.options import READ, UPDATED, DaskAddress
from fltheory.commands.shared.written_files import tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.sweep import Store
    from fltheory.sweep.running import SweepRun


def command(
    file: Annotated[
        Path, READ, typer.Argument(help="What to sweep (TOML): a setting, statements, axes.")
    ],
    out: Annotated[
        Path,
        UPDATED,
        typer.Option(help="Where to keep results: a database; rerun the command to resume."),
    ] = Path("out/sweep.db"),
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Processes on this machine; one per processor by default."),
    ] = None,
    dask: DaskAddress = None,
) -> None:
    """Check statements over a grid or random draws of settings; rerun to resume."""
    from fltheory.sweep import Store, read_sweep, sweep

    if dask is not None and processes is not None:
        raise ValueError("processes must be left out with --dask, which has its own workers")
    design = read_sweep(file)
    with workers(dask) as (executor, in_flight), Store(out, create=True) as store:
        with resumable(lambda: f"{len(store)} cells are in {out}"), shown_progress() as advance:
            found = sweep(
                design,
                store,
                processes=processes,
                executor=executor,
                in_flight=in_flight,
                progress=advance,
            )
        _tell(found, store)
    tell_written(out)
    print(f"fltheory results {out} shows them")
    if found.failures:
        raise typer.Exit(1)


def _tell(found: SweepRun, store: Store) -> None:
    """Print the number of cells, their outcomes, and what is missing."""
    print(f"{len(found.keys)} cells, {found.added} of them new")
    for outcome, count in store.outcomes(found.keys).most_common():
        print(f"  {outcome}: {count}")
    tell_other_versions(store, found.keys)
    if found.failures:
        print(found.complaint)
