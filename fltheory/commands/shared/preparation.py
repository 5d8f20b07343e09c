"""Preparation of any command: loading the user's theorems, and finding its subject.

The subject is a choice of statements, or a log and the sizes of its clients.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory import __version__
from fltheory.commands.shared.options import Load
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.claims.statement import Statement
    from fltheory.logs import AvailabilityLog
    from fltheory.validation import FloatArray


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
    # On a terminal, work of a second or more is announced.
    if sys.stderr.isatty() and "--help" not in sys.argv:
        with shown_progress("loading"):
            import_module("fltheory.report")
    load_statements(load)


def load_statements(load: Sequence[Path] | None) -> None:
    """Load the statements of users' files; what a file prints is not mixed with the output."""
    _LOADED[:] = load or ()
    if load:
        from fltheory import theorems as registry

        with redirect_stdout(sys.stderr):
            for path in load:
                registry.load(path)


def the_id(typed: str) -> str:
    """Return a theorem's id: the typed text, or the only id that starts with it.

    Raises
    ------
    ValueError
        If no id starts that way, or several do; the message lists them.
    """
    from fltheory.theorems import registry

    begun = list(dict.fromkeys(statement.id for statement in registry.registered(typed)))
    if typed in begun or len(begun) == 1:
        return typed if typed in begun else begun[0]
    raise ValueError(f"theorem must be one of {', '.join(begun)}, got {typed!r}")


def in_readings(theorem: str, reading: str | None) -> list[Statement]:
    """Return a theorem in the requested reading, or in all readings."""
    from fltheory.theorems import registry

    readings = registry.readings(theorem) if reading is None else (reading,)
    return [registry.get(theorem, name) for name in readings]


def registered_in(reading: str | None, beginnings: Sequence[str] | None) -> tuple[Statement, ...]:
    """Return the statements with these prefixes (all if empty), in one reading if given.

    Raises
    ------
    ValueError
        If no id starts that way, or none of those statements has the reading.
    """
    from fltheory.theorems import registry

    named = registry.registered(*beginnings or ())
    found = tuple(one for one in named if reading in (None, one.reading))
    if not found:
        known = ", ".join(dict.fromkeys(one.reading for one in named))
        raise ValueError(f"reading must be one of {known}, got {reading!r}")
    return found


def deployment(
    log: Path, sizes: Path | None, round_length: float | None, columns: str | None
) -> tuple[AvailabilityLog, FloatArray | None]:
    """Return a log with all its clients, and their sizes if a file of them is given."""
    from fltheory.logs import read_log
    from fltheory.weights.sizes_file import read_sizes

    named = None if columns is None else _named_columns(columns)
    record = read_log(log, round_length=round_length, columns=named)
    return (record, None) if sizes is None else read_sizes(sizes, record)


def _named_columns(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name and column for name, _, column in pairs):
        raise ValueError(f"columns must be like client=user,from=login,to=logout, got {text!r}")
    return {name.strip(): column.strip() for name, _, column in pairs}
