"""``fltheory new ...``: templates for your own files, written where you say."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.options import written
from fltheory.commands.shared.preparation import next_command
from fltheory.commands.shared.written_files import tell_written


def theorem(
    file: Annotated[
        Path, written(".py"), typer.Argument(help="The Python file to write, e.g. my_theorem.py.")
    ],
) -> None:
    """Write a commented theorem file to start from; it runs as it is."""
    _write_new("theorem", file)
    print(f"next: fltheory --load {file} verify my")


def algorithm(
    file: Annotated[
        Path, written(".py"), typer.Argument(help="The Python file to write, e.g. my_algorithm.py.")
    ],
) -> None:
    """Write a commented algorithm file to start from; it runs as it is."""
    _write_new("algorithm", file)
    print(f"next: python {file}; pytest {file}")


def setting(
    file: Annotated[
        Path, written(".toml"), typer.Argument(help="The TOML file to write, e.g. my_setting.toml.")
    ],
) -> None:
    """Write a commented setting file to start from, e.g. for fltheory compare."""
    _write_new("setting", file)
    print(f"next: {next_command('compare', file)}")


def _write_new(what: str, place: Path) -> None:
    """Write a template to the file that the user names.

    Raises
    ------
    ValueError
        If the file exists or cannot be written, or a Python file has a name that cannot be imported
        or belongs to another module.
    """
    from importlib.resources import files

    from fltheory.files.whole_file import write_whole

    if place.exists():
        raise ValueError(f"file must be a new one, got {str(place)!r}, which exists")
    if place.suffix == ".py":
        _check_module(place)
    template = files("fltheory.commands").joinpath(f"templates/{what}.txt").read_text("utf-8")
    write_whole(place, template.replace(f"my_{what}", place.stem))
    tell_written(place)


def _check_module(place: Path) -> None:
    name = place.stem
    if not name.isidentifier() or iskeyword(name):
        raise ValueError(f"file must be named like a Python module, got {str(place)!r}")
    if name in sys.modules or find_spec(name) is not None:
        raise ValueError(f"file must not have the name of an installed module, got {str(place)!r}")
