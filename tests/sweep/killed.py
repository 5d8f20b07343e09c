"""Work in a process of its own that is killed, without notice, once it has kept so many cells."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence

from fltheory.sweep import Store
from fltheory.sweep.cell import Row

_FORK = multiprocessing.get_context("fork")


def killed_after(cells: int, work: Callable[[], object]) -> None:
    """Run it until its store has been given so many rows; that it ends before is an error."""
    running = _FORK.Process(target=_mortal, args=(cells, work))
    running.start()
    running.join()
    assert running.exitcode == -signal.SIGKILL


def _mortal(cells: int, work: Callable[[], object]) -> None:
    left, add = cells, Store.add

    def add_and_die(store: Store, rows: Sequence[Row]) -> None:
        nonlocal left
        add(store, rows)
        left -= len(rows)
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    Store.add = add_and_die  # type: ignore[method-assign]
    work()
