"""What comes before any command: theorems of one's own."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from fltheory.progress import shown_progress


def prepare(
    load: Annotated[
        list[Path] | None,
        typer.Option(help="A Python file with theorems of your own, in its STATEMENTS."),
    ] = None,
) -> None:
    """Load the theorems of the user's files."""
    # On a terminal, what takes a second or several says so.
    if sys.stderr.isatty() and "--help" not in sys.argv:
        with shown_progress("loading"):
            import_module("fltheory.report")
    if load:
        from fltheory import theorems as registry

        for path in load:
            registry.load(path)
