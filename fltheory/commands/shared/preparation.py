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
DOORS = """\
Is a convergence theorem true as printed, where does it apply, how loose is it?

  a theorem            fltheory verify sa-fl/5
    your own           fltheory new theorem my_theorem.py
  an implementation    fltheory conformance my_code.py:run scaffold
  a log                fltheory advise log.csv

fltheory --help lists all commands; fltheory COMMAND --help has the options of one."""


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
    context: typer.Context,
    load: Load = None,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Load the theorems of the user's files; without a command, say where to begin."""
    if context.invoked_subcommand is None:
        print(DOORS if sys.stdout.isatty() else context.get_help())
        return
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
