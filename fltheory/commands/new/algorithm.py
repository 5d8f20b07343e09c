"""``fltheory new algorithm``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.new_files import write_new
from fltheory.commands.shared.options import WRITTEN

_NEXT = "next: python {file}; pytest {file}"


def command(
    file: Annotated[
        Path, WRITTEN, typer.Argument(help="The Python file to write, say my_algorithm.py.")
    ],
) -> None:
    """Write a commented algorithm of your own to start from; it runs at once."""
    write_new("algorithm", file)
    print(_NEXT.format(file=file))
