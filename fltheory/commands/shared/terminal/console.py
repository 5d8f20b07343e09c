"""Where commands print their tables and drawings, and what fits there."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_OF_FILES = 180


def table_console() -> Console:
    """Return a console where tables fit, and are not squeezed if the output is no terminal."""
    from fltheory.commands.shared.terminal.fitting_tables import TableConsole

    return TableConsole() if sys.stdout.isatty() else TableConsole(width=_WIDTH_OF_FILES)


def can_be_shown(lines: Sequence[str]) -> bool:
    """Whether what is drawn over several lines fits a terminal, and has letters that it knows."""
    try:
        "".join(lines).encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    width = shutil.get_terminal_size().columns
    return not sys.stdout.isatty() or all(len(line) <= width for line in lines)
