"""Long work on all processors, or on any other executor, result by result.

Work that runs somebody else's code gets a process of its own: its end is not this one's.
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
# One in a worker process, whose processors belong to the other workers as well.
_usual_threads: int | None = None


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def sampling_threads() -> int:
    """Return how many threads a sampled run may take; its results are the same bits with any.

    As many as there are processors, one in a worker process or a cell of a sweep, or what the
    environment's ``FLTHEORY_THREADS`` says.

    Raises
    ------
    ValueError
        If that is no whole number of at least 1.
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
    executor : concurrent.futures.Executor, optional
        An executor that runs them instead, e.g. ``Client.get_executor()`` of Dask; it is left open.
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
    """Yield every item and its future once that is done, however it ended.

    An executor that is broken is given nothing more; the items that it had still come.

    Parameters
    ----------
    executor : concurrent.futures.Executor
    function : callable
    items : iterable
        Asked for the next item only when there is room for it.
    in_flight : int
        How many items may run or wait at a time: enough for all workers, few enough to lose.
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
    """Return the future of an item, also where the executor takes no more."""
    try:
        with _interrupts_later():
            return executor.submit(function, item)
    # Each executor has errors of its own for that.
    except Exception as error:
        future: Future[Result] = Future()
        future.set_exception(BrokenExecutor(f"{type(error).__name__}: {error}"))
        return future


def is_lost(future: Future[Any]) -> bool:
    """Whether a future ended with its executor, and says nothing of what it was to do."""
    return future.cancelled() or isinstance(future.exception(), BrokenExecutor)


@contextmanager
def worker_processes(processes: int) -> Iterator[Executor]:
    """Give an executor of several processes, which end with this one, and at once if it fails."""
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
    """An executor without others: what is submitted runs at once."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Run it, and return its future, which is done."""
        future: Future[Result] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread in this process.

    Several processes with as many threads each get in each other's way, and sums of matrix products
    depend on the number of threads in their last bits.
    """
    global _usual_threads
    before, _usual_threads = _usual_threads, 1
    try:
        with _blas_limited():
            yield
    finally:
        _usual_threads = before


def _blas_limited() -> AbstractContextManager[object]:
    """Limit linear algebra to one thread, from now on, or until the context ends."""
    # Only a library that is loaded can be limited.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Put an interrupt off: while processes are started it would be lost, or end one of them.

    To block the signal in this thread is not enough: another one, say a bar's, would take it, and
    Python would raise it here all the same, also in a hook after a fork, which drops errors.
    """
    if current_thread() is not main_thread():  # which alone is interrupted
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
    """Leave interrupts to the parent, and processors to its other workers."""
    global _usual_threads
    leave_interrupts_to_the_parent()
    _blas_limited()
    _usual_threads = 1


def leave_interrupts_to_the_parent() -> None:
    """Have this process go on where its parent is interrupted, and end where it ends.

    A worker waits for work on a pipe whose other end it holds as well: killed without notice, the
    parent would leave it behind for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_PATIENCE = 0.1  # seconds until it is asked whether the other process is still there
_RESULT, _ERROR, _PROGRESS, _END = range(4)


class EndedError(Exception):
    """A process that ended before its work; says how, and during what."""


def in_own_process(work: Callable[[Progress], Result], doing: str) -> Result:
    """Return what work gives, done in another process while this one shows how far it is.

    Whatever the work does to its process (`os._exit`, a signal, a crash of compiled code, another
    program in its place), this one goes on. Both have the same input, for a debugger to ask.

    Parameters
    ----------
    work : callable
        Called with what it tells its progress; importable by name, as is its result.
    doing : str
        What is shown until then.

    Raises
    ------
    EndedError
        If the process ends before its work.
    Exception
        What the work raises.
    """
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_answer, args=(work, sending))
    # Before there is a bar: a fork would copy its locks, without the thread that opens them.
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
            # Where another program took its place, that one goes on.
            process.kill()
        process.join()
    if kind == _END:
        raise EndedError(f"{_ending(process.exitcode or 0)} while {doing}")
    if kind == _ERROR:
        raise said
    return said


def _next(receiving: Connection, process: multiprocessing.Process) -> tuple[int, Any]:
    """Return the next message; a pipe is no proof of life, as others may have inherited it."""
    while receiving.poll(_PATIENCE) or process.is_alive() or receiving.poll():
        if receiving.poll():
            with suppress(EOFError, OSError):
                return receiving.recv()
            break
    return _END, None


def _answer(work: Callable[[Progress], Any], sending: Connection) -> None:
    leave_interrupts_to_the_parent()
    with suppress(OSError):
        # multiprocessing leaves it open, but has Python read from nothing.
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    try:
        message = _RESULT, work(lambda *said: sending.send((_PROGRESS, said)))
    except BaseException as error:
        error.add_note(traceback.format_exc())
        message = _ERROR, error
    sending.send(message)


def _ending(status: int) -> str:
    return f"status {status}" if status >= 0 else f"signal {Signals(-status).name}"
