"""Progress of long work: a bar on a terminal, occasional lines elsewhere."""

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
    """Show on the error stream the current work, its progress and the remaining time.

    The bar disappears when the work ends, is interrupted or fails. If the error stream is not a
    terminal, a line is written after two seconds and then each time the elapsed time doubles. No
    lines are written if the environment variable ``FLTHEORY_PROGRESS`` is ``off``.

    Parameters
    ----------
    doing : str
        Text shown until the first call.
    each : bool
        Whether to write a line for each stage that begins after two seconds; meant for a few long
        stages.

    Yields
    ------
    callable
        Takes (done, total, description of the current work); a total of 0 means that it is unknown.

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
    """Write the progress after two, four, eight, ... seconds, or at each stage if ``each``."""
    begun, text, due, share = time.monotonic(), doing, _FIRST_LINE, 0.0
    lock = Lock()

    def write() -> None:
        nonlocal due
        with lock:
            seconds = time.monotonic() - begun
            # The timer and the work may both decide to write a line.
            if seconds < due:
                return
            due = _FIRST_LINE if each else 2 * seconds
            with suppress(OSError):  # the stream has been closed
                left = f", about {seconds / share - seconds:.0f} s left" if share else ""
                print(f"fltheory: {text} ({seconds:.0f} s{left})", file=sys.stderr, flush=True)

    def advance(done: float, total: float, name: str) -> None:
        nonlocal text, share
        share = done / total if total else 0.0
        text = f"{done:g} of {total:g}, {name}" if total else name
        if not quiet:
            write()

    quiet = os.environ.get(_VARIABLE) == "off"
    # This is for work that takes long before its first progress report.
    timer = Timer(_FIRST_LINE + 0.05, write)
    timer.daemon = True
    if not quiet:
        timer.start()
    try:
        yield advance
    finally:
        timer.cancel()


def within(progress: Progress | None, before: int, total: int, prefix: str = "") -> Progress | None:
    """Return a callback for one of several pieces of work that share a progress bar.

    Parameters
    ----------
    progress : callable or None
        The shared progress callback.
    before : int
        Steps done before this piece.
    total : int
        Steps of all pieces together.
    prefix : str
        Text shown before the description.

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
