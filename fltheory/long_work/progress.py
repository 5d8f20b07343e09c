"""How far long work is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Timer
from typing import TypeAlias

_VARIABLE = "FLTHEORY_PROGRESS"
_FIRST_LINE = 2.0

Progress: TypeAlias = Callable[[float, float, str], None]


@contextmanager
def shown_progress(doing: str = "starting", *, each: bool = False) -> Iterator[Progress]:
    """Show on the error stream what is done, how far it is and how long it will take.

    The bar disappears when the work ends, is interrupted or fails. Where the error stream is
    not a terminal, work of more than two seconds writes a line, and further ones after twice the
    time each; none where the environment's ``FLTHEORY_PROGRESS`` is ``off``.

    Parameters
    ----------
    doing : str
        What is shown until the first call.
    each : bool
        For few and long stages: write a line for each that begins after two seconds.

    Yields
    ------
    callable
        To be called with (done, total, what is being done now); a total of 0 says that nobody
        knows how much there is.

    Examples
    --------
    >>> with shown_progress("counting") as progress:
    ...     for number in range(3):
    ...         progress(number, 3, f"number {number}")
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.table import Column

    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
    )
    if not console.is_terminal:
        with _lines(doing, each) as advance:
            yield advance
        return
    with Bar(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task(doing, total=None)

        def advance(done: float, total: float, name: str) -> None:
            bar.tasks[0].total = total or None
            bar.update(task, completed=done, description=name)

        yield advance


@contextmanager
def _lines(doing: str, each: bool) -> Iterator[Progress]:
    """Write how far the work is after two seconds, four, eight, ..., or at ``each`` stage."""
    begun, text, due, share = time.monotonic(), doing, _FIRST_LINE, 0.0
    lock = Lock()

    def write() -> None:
        nonlocal due
        with lock:
            seconds = time.monotonic() - begun
            # The timer and the work may both find that a line is due.
            if seconds < due:
                return
            due = _FIRST_LINE if each else 2 * seconds
            with suppress(OSError):  # nobody reads it any more
                left = f", about {seconds / share - seconds:.0f} s left" if share else ""
                print(f"fltheory: {text} ({seconds:.0f} s{left})", file=sys.stderr, flush=True)

    def advance(done: float, total: float, name: str) -> None:
        nonlocal text, share
        share = done / total if total else 0.0
        text = f"{done:g} of {total:g}, {name}" if total else name
        if not quiet:
            write()

    quiet = os.environ.get(_VARIABLE) == "off"
    # Work that takes long before it first says how far it is.
    timer = Timer(_FIRST_LINE + 0.05, write)
    timer.daemon = True
    if not quiet:
        timer.start()
    try:
        yield advance
    finally:
        timer.cancel()


def within(progress: Progress | None, before: int, total: int, prefix: str = "") -> Progress | None:
    """Return a callback for one of several pieces of work that share a bar.

    Parameters
    ----------
    progress : callable or None
        The bar that is shared.
    before : int
        Steps done before this piece.
    total : int
        Steps of all pieces together.
    prefix : str
        Shown in front of what is being done.

    Examples
    --------
    >>> part = within(lambda *shown: print(*shown), 10, 30)
    >>> part(5, 10, "second of three")
    15 30 second of three
    """
    if progress is None:
        return None
    shared = progress

    def advance(done: float, _: float, name: str) -> None:
        shared(before + done, total, f"{prefix}{name}")

    return advance
