"""``fltheory new theorem``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.new_files import write_new
from fltheory.commands.shared.options import WRITTEN

_NEXT = "next: fltheory --load {file} verify my"


def command(
    file: Annotated[
        Path, WRITTEN, typer.Argument(help="The Python file to write, say my_theorem.py.")
    ],
) -> None:
    """Write a commented theorem of your own to start from; it runs at once."""
    write_new("theorem", file)
    print(_NEXT.format(file=file))
