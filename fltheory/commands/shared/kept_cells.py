"""Work that is kept cell by cell in a store, if one was asked for, and who does it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fltheory.commands.shared.resumption import resumable
from fltheory.commands.shared.written_files import check_places, tell_written

if TYPE_CHECKING:
    from fltheory.sweep import Store
    from fltheory.sweep.kept import KeptWork


# Enough for a worker to have the next task at hand, few enough to lose.
_IN_FLIGHT_A_THREAD = 4


@contextmanager
def workers(dask: str | None) -> Iterator[tuple[Executor | None, int | None]]:
    """Give a cluster's executor and how many tasks it takes at a time; neither without an address.

    Raises
    ------
    ValueError
        If there is no such cluster, or its workers cannot do the work.
    """
    if dask is None:
        yield None, None
        return
    from fltheory.sweep.on_dask import dask_workers

    with dask_workers(dask) as (executor, threads):
        yield executor, _IN_FLIGHT_A_THREAD * threads


@contextmanager
def kept_in(path: Path | None, dask: str | None = None) -> Iterator[KeptWork | None]:
    """Give what keeps work in a store, None without one; an interrupt says what is kept.

    Raises
    ------
    ValueError
        If there can be no such store, or no such cluster to do the work, or there is a cluster but
        no store.
    """
    if path is None:
        if dask is not None:
            raise ValueError("store must be given with --dask, to keep the workers' results")
        yield None
        return
    from fltheory.sweep import Store
    from fltheory.sweep.kept import KeptWork

    check_places(store=path)
    with (
        workers(dask) as (executor, in_flight),
        Store(path, create=True) as store,
        resumable(lambda: f"{len(store)} cells are in {path}"),
    ):
        yield KeptWork(store, executor=executor, in_flight=in_flight)


def tell_kept(kept: KeptWork | None) -> None:
    """Say where the cells of a command are, and which of them other versions made."""
    if kept is not None:
        tell_other_versions(kept.store, kept.keys)
        tell_written(kept.store.path)


def tell_other_versions(store: Store, keys: set[str]) -> None:
    """Say which of some cells were made with other versions than are here."""
    from fltheory.sweep.cell import versions

    for made_by, count in store.versions(keys).items():
        if made_by != versions():
            print(f"  {count} of them were made with {made_by}, and are kept as they are")
