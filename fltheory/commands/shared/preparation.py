"""What comes before any command: loading the user's theorems."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from fltheory import __version__
from fltheory.commands.shared.options import Load
from fltheory.long_work.progress import shown_progress

_LOADED: list[Path] = []


def loaded_files() -> tuple[Path, ...]:
    """Return the files of theorems that this run has loaded."""
    return tuple(_LOADED)


def next_command(*words: str | Path) -> str:
    """Return a command ready to paste, with the files that this run has loaded."""
    loads = [part for path in loaded_files() for part in ("--load", str(path))]
    return shlex.join(["fltheory", *map(str, words), *loads])


def _show_version(asked: bool) -> None:
    if asked:
        print(f"fltheory {__version__}")
        raise typer.Exit


def prepare(
    load: Load = None,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Load the theorems of the user's files."""
    # On a terminal, what takes a second or several says so.
    if sys.stderr.isatty() and "--help" not in sys.argv:
        with shown_progress("loading"):
            import_module("fltheory.report")
    load_statements(load)


def load_statements(load: Sequence[Path] | None) -> None:
    """Load what users' files register; what a file prints is not the command's answer."""
    _LOADED[:] = load or ()
    if load:
        from fltheory import theorems as registry

        with redirect_stdout(sys.stderr):
            for path in load:
                registry.load(path)
