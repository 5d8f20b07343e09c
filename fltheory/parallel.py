"""Long work on all processors, result by result."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import TypeVar

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
        futures: list[Future[Result]] = [pool.submit(function, item) for item in items]
        for future in as_completed(futures):
            yield future.result()
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
