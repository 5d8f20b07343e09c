"""Long work that is kept result by result, in a file or a store, and who does it.

The same command resumes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from fltheory.commands.shared.exit_status import Interrupted
from fltheory.commands.shared.written_files import check_places, tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.sweep import Store
    from fltheory.sweep.kept import KeptWork


class Keyed(Protocol):
    """A result that knows which piece of the work it is."""

    @property
    def key(self) -> object:
        """Which piece of the work this is."""


Plan = TypeVar("Plan")
Result = TypeVar("Result", bound=Keyed)


@contextmanager
def resumable(kept: Callable[[], str]) -> Iterator[None]:
    """Let an interrupt say what is kept until then, and that the command can be given again.

    Raises
    ------
    Interrupted
        By an interrupt.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise Interrupted(f"{kept()}, the same command resumes") from interrupt


def resumed(
    work: Callable[..., Iterable[Result]],
    chosen: Collection[object],
    plan: Plan,
    out: Path,
    *,
    read: Callable[[Path, Plan], list[Result]],
    write: Callable[[Path, Sequence[Result], Plan], None],
    what: str,
) -> list[Result]:
    """Do what is not in the file yet, keep each result in it at once, return the chosen ones.

    Parameters
    ----------
    work : callable
        Called with the chosen keys and the plan, and with ``done``, the keys of results that are
        there already, and ``progress``; yields results as they come in.
    chosen : collection of keys
    plan : Plan
        Only results of the same plan are resumed from.
    out : Path
        The file; it may also hold results that are not asked for now.
    read, write : callable
        How the file is read, empty if there is none, and written.
    what : str
        What the results are, as an interrupt says it.

    Raises
    ------
    Interrupted
        By an interrupt; what was done is in the file.
    """
    kept = {result.key: result for result in read(out, plan)}
    done = list(kept)
    with resumable(lambda: f"{len(kept)} {what} are in {out}"), shown_progress() as advance:
        for result in work(chosen, plan, done=done, progress=advance):
            # Another command may have kept its own there meanwhile.
            kept |= {one.key: one for one in read(out, plan)} | {result.key: result}
            write(out, list(kept.values()), plan)
    # In the end the file does not tell in which order, or in how many runs, they came.
    results = [kept[key] for key in chosen if key in kept]
    ordered = [*(result for key, result in kept.items() if key not in chosen), *results]
    if ordered != list(kept.values()):
        write(out, ordered, plan)
    return results


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
