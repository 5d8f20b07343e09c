"""Long work on all processors, result by result."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

from fltheory.progress import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")


def as_they_come(
    function: Callable[[Item], Result], items: Sequence[Item], processes: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` of all items as they are ready, from several processes.

    An interrupt reaches this process alone, which then ends the others at once: what runs and
    what waits is dropped.

    Parameters
    ----------
    function : callable
        Importable by its name, like its argument and result.
    items : sequence
    processes : int, optional
        As many as this process may use processors, by default; 1 runs in this one, in order.
    """
    processes = processes or len(os.sched_getaffinity(0))
    if processes == 1:
        yield from map(function, list(items))
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, initializer=_leave_interrupts_to_the_parent)
    try:
        with _interrupts_later():
            futures: list[Future[Result]] = [pool.submit(function, item) for item in items]
        for future in as_completed(futures):
            yield future.result()
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def rest_as_they_come(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    done: Collection[Item],
    begins: str,
    about: Callable[[Result], str],
    processes: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Yield ``function(item)`` of the items that are not ``done`` already, as they are ready.

    Parameters
    ----------
    function, items, processes
        As of `as_they_come`.
    done : collection of items
    begins : str
        What progress says before the first result.
    about : callable
        What it says of a result.
    progress : callable, optional
        Called with (items done, items in all, text).
    """
    waiting = [item for item in items if item not in done]
    ready = len(items) - len(waiting)
    if progress is not None:
        progress(ready, len(items), begins)
    for result in as_they_come(function, waiting, processes):
        ready += 1
        if progress is not None:
            progress(ready, len(items), about(result))
        yield result


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Put an interrupt off: while processes are started it would be lost, or end one of them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
