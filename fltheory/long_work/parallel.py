"""Long computations on all processors, or on any other executor, result by result.

Work that runs users' code gets a separate process, so that a crash does not end this process.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from multiprocessing.connection import Connection
from signal import Signals
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

from fltheory import validation
from fltheory.long_work.progress import Progress, shown_progress

Item = TypeVar("Item")
Result = TypeVar("Result")


_THREADS = "FLTHEORY_THREADS"
# This is set to one in a worker process, because other workers share the processors.
_usual_threads: int | None = None


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def sampling_threads() -> int:
    """Return the number of threads for a sampled run; its results do not depend on it.

    This is the number of processors, or one in a worker process or a cell of a sweep, unless the
    environment variable ``FLTHEORY_THREADS`` sets it.

    Raises
    ------
    ValueError
        If that variable is not a positive integer.
    """
    told = os.environ.get(_THREADS)
    if told is None:
        return _usual_threads or processors()
    if not re.fullmatch("[1-9][0-9]{0,8}", told):
        raise ValueError(f"{_THREADS} must be a whole number of at least 1, got {told!r}")
    return int(told)


def as_they_come(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    processes: int | None = None,
    *,
    executor: Executor | None = None,
) -> Iterator[Result]:
    """Yield ``function(item)`` for all items as they finish, from several processes.

    An interrupt reaches only this process, which then ends the others at once. Items that are
    running or waiting are dropped.

    Parameters
    ----------
    function : callable
        A function that is importable by name, like its argument and result.
    items : sequence
    processes : int, optional
        By default, the number of available processors. With 1, the items run in this process, in
        order.
    executor : concurrent.futures.Executor, optional
        An executor to use instead, for example Dask's ``Client.get_executor()``; it is left open.
    """
    processes = processes or processors()
    if executor is not None:
        for _, future in futures_as_they_come(executor, function, items):
            yield future.result()
    elif processes == 1:
        yield from map(function, list(items))
    else:
        with worker_processes(processes) as pool:
            yield from as_they_come(function, items, executor=pool)


def futures_as_they_come(
    executor: Executor,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    in_flight: int = 64,
) -> Iterator[tuple[Item, Future[Result]]]:
    """Yield every item with its future as soon as the future is done, however it ended.

    A broken executor gets no further items, but the items it already had are still yielded.

    Parameters
    ----------
    executor : concurrent.futures.Executor
    function : callable
    items : iterable
        The next item is taken only when there is room for it.
    in_flight : int
        Number of items that may run or wait at a time. It should be large enough for all workers,
        but small enough that these items can be lost.
    """
    waiting = iter(items)
    running: dict[Future[Result], Item] = {}
    try:
        while True:
            for item in islice(waiting, in_flight - len(running)):
                running[_submitted(executor, function, item)] = item
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                if is_lost(future):
                    waiting = iter(())
                yield running.pop(future), future
    finally:
        for future in running:
            future.cancel()


def _submitted(
    executor: Executor, function: Callable[[Item], Result], item: Item
) -> Future[Result]:
    """Return the future of an item, or a failed future if the executor refuses the item."""
    try:
        with _interrupts_later():
            return executor.submit(function, item)
    # Each executor has its own errors for this.
    except Exception as error:
        future: Future[Result] = Future()
        future.set_exception(BrokenExecutor(f"{type(error).__name__}: {error}"))
        return future


def is_lost(future: Future[Any]) -> bool:
    """Return whether a future failed only because its executor ended."""
    return future.cancelled() or isinstance(future.exception(), BrokenExecutor)


@contextmanager
def worker_processes(processes: int) -> Iterator[Executor]:
    """Provide an executor of several processes, which end with this one, and at once on failure."""
    processes = validation.whole_number("processes", processes, at_least=1)
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, initializer=_depend_on_the_parent)
    try:
        yield pool
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class InThisProcess(Executor):
    """An executor that runs submitted work at once, in this process."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Run the function, and return a finished future."""
        future: Future[Result] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def one_thread() -> Iterator[None]:
    """Use a single thread in this process inside the block.

    Several processes that each have many threads slow each other down, and the last bits of matrix
    products depend on the number of threads.
    """
    global _usual_threads
    before, _usual_threads = _usual_threads, 1
    try:
        with _blas_limited():
            yield
    finally:
        _usual_threads = before


def _blas_limited() -> AbstractContextManager[object]:
    """Limit linear algebra to one thread, at once and until the end of the context, if entered."""
    # Only a loaded library can be limited.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Delay interrupts while processes start, when one could be lost or could end a process.

    Blocking the signal in this thread is not enough: another thread, such as a progress bar's,
    would receive it, and Python would still raise it in this thread, perhaps in a hook after a
    fork, where errors are dropped.
    """
    if current_thread() is not main_thread():  # the only thread that Python interrupts
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _depend_on_the_parent() -> None:
    """Ignore interrupts, which the parent handles, and use one thread."""
    global _usual_threads
    leave_interrupts_to_the_parent()
    _blas_limited()
    _usual_threads = 1


def leave_interrupts_to_the_parent() -> None:
    """Make this process ignore interrupts, and end when its parent ends.

    A worker waits for work on a pipe, and it also holds the pipe's other end. So it would wait for
    ever if the parent were killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_PATIENCE = 0.1  # seconds between checks that the other process is alive
_RESULT, _ERROR, _PROGRESS, _END = range(4)


class EndedError(Exception):
    """The error that a process ended before its work; the message says how and at what stage."""


def in_own_process(work: Callable[[Progress], Result], doing: str) -> Result:
    """Return the result of work done in another process, while this one shows the progress.

    Whatever the work does to its process (`os._exit`, a signal, a crash of compiled code,
    replacement by another program), this process continues. Both processes share standard input, so
    that a debugger works.

    Parameters
    ----------
    work : callable
        Called with a progress callback. The function and its result must be importable by name.
    doing : str
        Text shown until the work's first progress report.

    Raises
    ------
    EndedError
        If the process ends before its work is done.
    Exception
        Any exception that the work raises.
    """
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_answer, args=(work, sending))
    # The process starts before the bar exists, because a fork would copy the bar's locks without
    # the thread that releases them.
    process.start()
    sending.close()
    with receiving:
        try:
            with shown_progress(doing) as progress:
                kind, said = _next(receiving, process)
                while kind == _PROGRESS:
                    progress(*said)
                    doing = said[-1]
                    kind, said = _next(receiving, process)
        except BaseException:
            process.kill()
            raise
        if kind == _END:
            # If another program has replaced the process, that program keeps running.
            process.kill()
        process.join()
    if kind == _END:
        raise EndedError(f"{_ending(process.exitcode or 0)} while {doing}")
    if kind == _ERROR:
        raise said
    return said


def _next(receiving: Connection, process: multiprocessing.Process) -> tuple[int, Any]:
    """Return the next message, checking that the process is alive, which the pipe cannot show."""
    while receiving.poll(_PATIENCE) or process.is_alive() or receiving.poll():
        if receiving.poll():
            with suppress(EOFError, OSError):
                return receiving.recv()
            break
    return _END, None


def _answer(work: Callable[[Progress], Any], sending: Connection) -> None:
    leave_interrupts_to_the_parent()
    with suppress(OSError):
        # multiprocessing leaves the descriptor open, but makes Python read from nothing.
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    try:
        message = _RESULT, work(lambda *said: sending.send((_PROGRESS, said)))
    except BaseException as error:
        error.add_note(traceback.format_exc())
        message = _ERROR, error
    sending.send(message)


def _ending(status: int) -> str:
    return f"status {status}" if status >= 0 else f"signal {Signals(-status).name}"
