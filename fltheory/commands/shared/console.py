"""The console for tables and drawings of commands, and what fits on it."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

_ANY_WIDTH = 1_000_000


class TableConsole(Console):
    """A console that never truncates the content of tables or breaks their words."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print tables so that they fit, and everything else as usual."""
        if len(objects) == 1 and isinstance(objects[0], Table):
            print_table(self, objects[0])
        else:
            super().print(*objects, **options)


def print_table(console: Console, table: Table) -> None:
    """Print a table in columns if its words fit side by side, otherwise in blocks of lines.

    If the output is not a terminal, it is as wide as the words need.
    """
    measured = [_measured(console, column) for column in table.columns]
    wide = console.options.update_width(_ANY_WIDTH)
    natural = table.__rich_measure__(console, wide).maximum
    least = natural - sum(one.span for one in measured)
    if not console.is_terminal:
        console.width = max(console.width, least)
    room = console.width - least
    if natural <= console.width:
        Console.print(console, table)
    elif room >= 0:
        Console.print(console, _with_widths(table, measured, room))
    else:
        for block in _blocks(console, table):
            for line in _wrapped(block, console.width):
                Console.print(console, line, no_wrap=True, overflow="ignore", crop=False)


def _measured(console: Console, column: Column) -> Measurement:
    """Return the widths of a column's longest word and longest line."""
    wide = console.options.update_width(_ANY_WIDTH)
    each = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
    most = max(one.maximum for one in each)
    # Rich keeps the lines of such columns whole.
    least = most if column.no_wrap else max(one.minimum for one in each)
    return Measurement(least, most)


def _with_widths(table: Table, measured: list[Measurement], room: int) -> Table:
    """Return the table with columns as wide as their longest words, and shares of the room."""
    missing = sum(one.span for one in measured)
    fitting = copy(table)
    fitting.columns = [
        replace(column, width=one.minimum + room * one.span // missing)
        for column, one in zip(table.columns, measured, strict=True)
    ]
    return fitting


def _blocks(console: Console, table: Table) -> Iterator[Text]:
    """Yield the lines ``name: value`` of every row, with an empty line between rows."""
    if table.title:
        yield _text(console, table.title)
    names = [_text(console, column.header) for column in table.columns]
    for index, cells in enumerate(zip(*(column.cells for column in table.columns), strict=True)):
        if index or table.title:
            yield Text()
        for name, cell in zip(names, cells, strict=True):
            value = _text(console, cell)
            if value.plain.strip():
                yield Text.assemble(name, ": " if name.plain else "", value)


def _text(console: Console, cell: Any) -> Text:
    return cell if isinstance(cell, Text) else console.render_str(str(cell))


def _wrapped(text: Text, width: int) -> Iterator[Text]:
    """Yield lines broken at spaces; a word wider than a line stays whole."""
    breaks, begun = [], 0
    for word in re.finditer(r"\S+", text.plain):
        if word.end() - begun > width and word.start() > begun:
            begun = word.start()
            breaks.append(begun)
    for line in text.divide(breaks):
        line.rstrip()
        yield line


if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_OF_FILES = 180


def table_console() -> Console:
    """Return a console where tables fit, and are not squeezed if the output is no terminal."""
    from fltheory.commands.shared.console import TableConsole

    return TableConsole() if sys.stdout.isatty() else TableConsole(width=_WIDTH_OF_FILES)


def can_be_shown(lines: Sequence[str]) -> bool:
    """Return whether a drawing of several lines fits the terminal and its encoding."""
    try:
        "".join(lines).encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    width = shutil.get_terminal_size().columns
    return not sys.stdout.isatty() or all(len(line) <= width for line in lines)
