"""Work in a process of its own, which may end at any moment and in any way."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from threading import Thread

import pytest

from fltheory.long_work.parallel import EndedError, in_own_process
from fltheory.long_work.progress import Progress


def told(progress: Progress) -> tuple[int, int]:
    progress(1, 2, "half")
    return os.getpid(), os.getppid()


def refusing(progress: Progress) -> None:
    raise ValueError("no")


def ended_by(end: Callable[[], object], progress: Progress) -> None:
    progress(0, 1, "ending")
    end()


def from_a_thread() -> None:
    thread = Thread(target=os._exit, args=(0,))
    thread.start()
    thread.join()


def with_a_child_that_stays() -> None:
    """It has inherited the pipe on which the result would come."""
    if os.fork():
        os._exit(0)
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(5)"])


def test_what_it_gives_and_raises() -> None:
    process, parent = in_own_process(told, "starting")
    assert process != parent == os.getpid()
    with pytest.raises(ValueError, match="no"):
        in_own_process(refusing, "starting")


@pytest.mark.parametrize(
    ("end", "how"),
    [
        (partial(os._exit, 0), "status 0"),
        (from_a_thread, "status 0"),
        (with_a_child_that_stays, "status 0"),
        (partial(os.execv, "/bin/true", ["true"]), "(status 0|signal SIGKILL)"),
        (partial(signal.raise_signal, signal.SIGTERM), "signal SIGTERM"),
    ],
)
def test_an_end_is_no_success(end: Callable[[], object], how: str) -> None:
    with pytest.raises(EndedError, match=f"^{how} while ending$"):
        in_own_process(partial(ended_by, end), "starting")
