"""Work in a process of its own that is killed, without notice, once it has kept so many cells."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

from fltheory.sweep import Store
from fltheory.sweep.cell import Row

_FORK = multiprocessing.get_context("fork")


def killed_after(cells: int, work: Callable[[], object]) -> int:
    """Run it until its store has been given so many rows; that it ends before is an error.

    Returns how many it was given: a task's rows are kept together, so they may be more.
    """
    given = _FORK.Value("i", 0)
    running = _FORK.Process(target=_mortal, args=(cells, given, work))
    running.start()
    running.join()
    assert running.exitcode == -signal.SIGKILL
    return int(given.value)


def _mortal(cells: int, given: Any, work: Callable[[], object]) -> None:
    add = Store.add

    def add_and_die(store: Store, rows: Sequence[Row]) -> None:
        add(store, rows)
        given.value += len(rows)
        if given.value >= cells:
            os.kill(os.getpid(), signal.SIGKILL)

    Store.add = add_and_die  # type: ignore[method-assign]
    work()
