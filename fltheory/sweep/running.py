"""Computing cells that a store does not have yet, of a sweep or other work, on any executor."""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.long_work.parallel import (
    InThisProcess,
    futures_as_they_come,
    is_lost,
    processors,
    worker_processes,
)
from fltheory.long_work.progress import Progress
from fltheory.sweep.cell import Row, Task, WorkCell, own_files, rows_of, versions
from fltheory.sweep.design import Design
from fltheory.sweep.store import Store

_TRIES_ALONE = 2


@dataclass
class SweepRun:
    """The outcome of a run of a sweep or of other tasks.

    Attributes
    ----------
    keys : set of str
        Keys of its cells that are now in the store.
    added : int
        Number of cells that this run has added.
    failures : list of pairs
        Cells that could not be checked, with reasons.
    """

    keys: set[str] = field(default_factory=set)
    added: int = 0
    failures: list[tuple[WorkCell, str]] = field(default_factory=list)

    @property
    def complaint(self) -> str:
        """A line with the number of missing cells and the reason for one of them."""
        cell, why = self.failures[0]
        return (
            f"{len(self.failures)} more could not be checked, for example {cell.statement} "
            f"{cell.reading}: {why}; rerun the same command to retry"
        )


@checks_kinds
def sweep(
    design: Design,
    store: Store,
    *,
    processes: int | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    progress: Progress | None = None,
) -> SweepRun:
    """Check the cells that are not in the store yet, and store each row as soon as it is ready.

    Cells are checked in random order, and are looked up in the store just before, so several sweeps
    that share a store rarely check the same cell.

    Parameters
    ----------
    design : Design
    store : Store
    processes : int, optional
        By default, as many as the processors that this process may use. With 1, cells run in this
        process.
    executor : concurrent.futures.Executor, optional
        Runs the cells instead, e.g. Dask's ``Client.get_executor()``.
    in_flight : int, optional
        Number of settings that may run or wait at a time; a kill loses these. By default four per
        process, or 64 with another executor.
    progress : callable, optional
        Called with (cells done, number of cells, the last one).

    Returns
    -------
    SweepRun

    Raises
    ------
    StoreError
        If the store can no longer be written to; it keeps what it has.

    Examples
    --------
    A statement is checked on runs of two lengths. A second call has nothing left to do:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from fltheory.sweep import read_results, read_sweep
    >>> temporary = tempfile.TemporaryDirectory()
    >>> folder = Path(temporary.name)
    >>> _ = (folder / "sweep.toml").write_text(
    ...     '''
    ...     statements = ["sa-fl/5"]
    ...     readings = ["repaired"]
    ...     x0 = 1.0
    ...     problem = {kind = "QuadraticProblem", hessians = [[1.0]], optima = [[-1.0], [1.0]]}
    ...     participation = {kind = "UniformSubset", n_clients = 2, size = 1}
    ...     grid = {rounds = [10, 100]}
    ...     [algorithm]
    ...     kind = "Safari"
    ...     q = 0.5
    ...     client_lr = 0.05
    ...     assist_lr = 0.025
    ...     local_steps = 1
    ...     '''
    ... )
    >>> design = read_sweep(folder / "sweep.toml")
    >>> with Store(folder / "sweep.db", create=True) as store:
    ...     first = sweep(design, store, processes=1)
    ...     second = sweep(design, store, processes=1)
    >>> read_results(folder / "sweep.db")["outcome"].tolist(), second.added
    (['HOLDS', 'HOLDS'], 0)
    >>> temporary.cleanup()
    """
    files = own_files()
    run = RunningTasks(lambda number: design.task(number, files), design.n_cells, store, progress)
    return run.through(len(design), processes, executor, in_flight)


class RunningTasks:
    """Numbered tasks, their store and their progress."""

    def __init__(
        self,
        task: Callable[[int], Task],
        n_cells: int,
        store: Store,
        progress: Progress | None,
    ) -> None:
        self.task, self.n_cells = task, n_cells
        self.store, self.progress = store, progress
        self.found = SweepRun()
        self.passed = 0

    def through(
        self,
        n_tasks: int,
        processes: int | None,
        executor: Executor | None,
        in_flight: int | None,
    ) -> SweepRun:
        """Compute the tasks, as `sweep` does."""
        count = validation.whole_number("processes", processes or processors(), at_least=1)
        numbers = list(range(n_tasks))
        random.SystemRandom().shuffle(numbers)
        tasks = self._waiting(numbers)
        if executor is not None:
            for task in self._collect(executor, tasks, in_flight or 64):
                self._fail(task, "the executor takes no more work")
            return self.found
        # A worker that dies, for instance because memory is full, breaks the executor. The tasks in
        # flight are repeated, each setting in its own worker.
        while suspects := self._on_own(count, tasks, in_flight or 4 * count):
            for task in suspects:
                self._alone(task)
        return self.found

    def _on_own(self, processes: int, tasks: Iterator[Task], in_flight: int) -> list[Task]:
        """Run tasks in this process or its workers; return those in flight when a worker ended."""
        if processes == 1:
            return self._collect(InThisProcess(), tasks, 1)
        with worker_processes(processes) as executor:
            return self._collect(executor, tasks, in_flight)

    def _alone(self, task: Task) -> None:
        for _ in range(_TRIES_ALONE):
            with worker_processes(1) as executor:
                if not self._collect(executor, iter([task]), 1):
                    return
        self._fail(task, "its worker process ended without notice, e.g. out of memory")

    def _waiting(self, numbers: list[int]) -> Iterator[Task]:
        """Yield tasks with the cells that are not in the store, each cell once."""
        seen: set[str] = set()
        for number in numbers:
            task = self.task(number)
            cells = []
            for cell in task.cells:
                key = cell.key
                if key not in seen and key in self.store:
                    self.found.keys.add(key)
                elif key not in seen:
                    cells.append(cell)
                seen.add(key)
            if len(cells) < len(task.cells):
                self._tell(len(task.cells) - len(cells), "already in the store")
            if cells:
                yield replace(task, cells=tuple(cells))

    def _collect(self, executor: Executor, tasks: Iterator[Task], in_flight: int) -> list[Task]:
        """Store the rows of finished tasks; return the tasks that a broken executor left undone."""
        suspects = []
        for task, future in futures_as_they_come(executor, rows_of, tasks, in_flight):
            if is_lost(future):
                suspects.append(task)
            else:
                self._keep(task, future)
        return suspects

    def _keep(self, task: Task, future: Future[list[Row]]) -> None:
        error = future.exception()
        if error is not None:
            self._fail(task, f"{type(error).__name__}: {error}")
            return
        rows = future.result()
        self.store.add(rows)
        self.found.keys.update(row.key for row in rows)
        self.found.added += len(rows)
        self._tell(len(rows), f"{rows[-1].statement} {rows[-1].reading}: {rows[-1].outcome}")

    def _fail(self, task: Task, why: str) -> None:
        self.found.failures += [(cell, why) for cell in task.cells]
        self._tell(len(task.cells), why)

    def _tell(self, cells: int, text: str) -> None:
        self.passed += cells
        if self.progress is not None:
            self.progress(self.passed, self.n_cells, text)


_SECONDS_TO_ANSWER = 4
# Dask deserialises a task in the worker, so missing or outdated packages there show up here.
_FIRST_ANSWER_SECONDS = 60


@contextmanager
def dask_workers(address: str) -> Iterator[tuple[Executor, int]]:
    """Provide the executor of a Dask cluster and its total number of threads.

    Parameters
    ----------
    address : str
        Address of the scheduler, e.g. ``tcp://10.0.0.1:8786``.

    Raises
    ------
    ValueError
        If ``distributed`` is not installed, no scheduler answers within seconds, it has no workers,
        or their versions differ from those here.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("dask needs distributed: pip install 'fltheory[dask]'") from error
    # Dask's reports of lost connections would be mixed with our own output.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _check_answer(address)
    try:
        client = Client(address, timeout=_SECONDS_TO_ANSWER, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"dask must be a scheduler that answers, got {address!r}: {error}"
        ) from error
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise ValueError(f"dask must be a scheduler with workers, got {address!r} without any")
        _check_versions(client.get_executor(), address)
        yield client.get_executor(), threads


def _check_answer(address: str) -> None:
    """Refuse an address where nothing listens, which a Dask client would keep trying."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
        if not (parts.scheme and host and port):
            raise ValueError("no address such as tcp://HOST:8786")
        socket.create_connection((host, port), _SECONDS_TO_ANSWER).close()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"dask must be a scheduler that answers, got {address!r}: {error}"
        ) from error


def _check_versions(executor: Executor, address: str) -> None:
    try:
        there = executor.submit(versions).result(_FIRST_ANSWER_SECONDS)
    except Exception as error:
        raise ValueError(
            f"dask must have workers with fltheory, got {type(error).__name__}: {error} "
            f"from {address!r}"
        ) from error
    if there != versions():
        raise ValueError(f"dask must have workers with {versions()}, got {there} at {address!r}")
