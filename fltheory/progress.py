"""How far long work is: a bar on a terminal, silence elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = Callable[[float, float, str], None]


@contextmanager
def shown_progress(doing: str = "starting") -> Iterator[Progress]:
    """Show on the error stream what is done, how far it is and how long it will take.

    The bar disappears when the work ends, is interrupted or fails. Where the error stream is
    not a terminal nothing is written at all.

    Parameters
    ----------
    doing : str
        What is shown until the first call.

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
    hidden = not console.is_terminal
    with Bar(*columns, console=console, transient=True, expand=True, disable=hidden) as bar:
        task = bar.add_task(doing, total=None)

        def advance(done: float, total: float, name: str) -> None:
            bar.tasks[0].total = total or None
            bar.update(task, completed=done, description=name)

        yield advance


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
