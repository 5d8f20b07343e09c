"""Where commands print their tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_OF_FILES = 180


def table_console() -> Console:
    """Return a console that does not squeeze tables when the output is not a terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_WIDTH_OF_FILES)
