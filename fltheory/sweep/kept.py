"""Work of other commands than a sweep, whose results are the rows of a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar

from fltheory.long_work.progress import Progress
from fltheory.sweep.cell import Row, Task
from fltheory.sweep.running import work_out
from fltheory.sweep.store import Store, StoreError

Made = TypeVar("Made")


@dataclass
class KeptWork:
    """A store, how what it does not hold is worked out, and which cells were asked for.

    Attributes
    ----------
    store : Store
    processes : int, optional
        As many as this process may use processors, by default; 1 runs in this one.
    executor : concurrent.futures.Executor, optional
        What runs the cells instead.
    in_flight : int, optional
        How many tasks may run or wait at a time, as of `fltheory.sweep.sweep`.
    keys : set of str
        The cells that `rows` has returned.
    """

    store: Store
    processes: int | None = None
    executor: Executor | None = None
    in_flight: int | None = None
    keys: set[str] = field(default_factory=set)

    def rows(self, tasks: Sequence[Task], progress: Progress | None = None) -> list[Row]:
        """Return the rows of every cell, in order, after what is missing was worked out.

        Raises
        ------
        ValueError
            If a cell could not be worked out; the others are kept.
        StoreError
            If the store can no longer be written.
        """
        found = work_out(
            tasks,
            self.store,
            processes=self.processes,
            executor=self.executor,
            in_flight=self.in_flight,
            progress=progress,
        )
        if found.failures:
            raise ValueError(f"{len(found.keys)} cells are in {self.store.path}; {found.complaint}")
        self.keys |= found.keys
        return [self.store[cell.key] for task in tasks for cell in task.cells]


def made_of(row: Row, make: Callable[[Row], Made]) -> Made:
    """Return what is made of a row.

    Raises
    ------
    StoreError
        If it is not what such work gives: somebody else has written it.
    """
    try:
        return make(row)
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"row {row.key} of the store must be as fltheory wrote it, got another {row.kind} of "
            f"{row.statement}: {type(error).__name__}: {error}"
        ) from error
