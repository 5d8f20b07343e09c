"""Work that runs somebody else's code, in a process of its own: its end is not this one's."""

from __future__ import annotations

import multiprocessing
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from signal import Signals
from typing import Any, TypeVar

from fltheory.long_work.parallel import leave_interrupts_to_the_parent
from fltheory.long_work.progress import Progress, shown_progress

Result = TypeVar("Result")

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
