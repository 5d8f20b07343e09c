"""The files that commands write: checks against overwriting inputs, figures and pages."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from fltheory.commands.shared.options import FileUse
from fltheory.commands.shared.preparation import loaded_files
from fltheory.files.read_file import Result, results_apart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fltheory.long_work.progress import Progress


_OUTPUT = Path("/dev/stdout")
# Folders that were missing when output places were checked.
_TO_BE_MADE: set[Path] = set()


def file_uses(command: Callable[..., None]) -> dict[str, FileUse]:
    """Return how a command uses the files that its parameters name."""
    return {
        name: mark
        for name, hint in get_type_hints(command, include_extras=True).items()
        for mark in getattr(hint, "__metadata__", ())
        if isinstance(mark, FileUse)
    }


def with_inputs_kept(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that refuses, before any work, to overwrite inputs or write a file twice.

    It also refuses to start if an output file cannot be written.
    """

    @wraps(command)
    def careful(**given: Any) -> None:
        results, inputs, places = [], [*loaded_files()], list[tuple[FileUse, dict[str, Path]]]()
        if _OUTPUT.is_file():
            results.append(Result("the output", _OUTPUT))
        for name, use in file_uses(command).items():
            writes = given[use.writes] if isinstance(use.writes, str) else use.writes
            for path in _paths(given[name]):
                if writes:
                    files = path.glob(use.files) if use.files else [path]
                    results += [Result(name, file, use.reads) for file in files]
                    places += [(use, {name: path})] if not use.files else []
                elif os.path.isfile(path):
                    inputs.append(path)
        with results_apart(results, inputs):
            for use, place in places:
                check_places(*use.endings, **place)
            command(**given)

    return careful


def _paths(given: Path | str | Sequence[Path | str] | None) -> list[Path]:
    """Return the files that an argument may name; for ``file.py:function``, also the file."""
    if isinstance(given, list | tuple):
        return [path for one in given for path in _paths(one)]
    if isinstance(given, str):
        return [Path(given), Path(given.rpartition(":")[0])]
    return [given] if isinstance(given, Path) else []


def check_places(*suffixes: str, **places: Path | None) -> None:
    """Raise ValueError if a file cannot be written there, before the work for it.

    A missing folder is created with the file, and `tell_written` says so, as it may be misspelt.

    Parameters
    ----------
    *suffixes : str
        Allowed suffixes of the files; any if none are given.
    **places : Path or None
        Files by the name of the option; None if not requested.
    """
    from fltheory.files.whole_file import writable

    for name, path in places.items():
        if path is not None:
            writable(name, path, *suffixes)
            if not path.parent.exists():
                _TO_BE_MADE.add(path.parent)


def draw(figure: Callable[[], Figure], out: Path | None, progress: Progress) -> None:
    """Draw a figure and write it, if requested, with a progress message."""
    if out is not None:
        from fltheory.report import write_figure

        progress(0, 0, f"drawing {out}")
        write_figure(figure, out)


def tell_written(path: Path | None) -> None:
    """Print where a file was written, if requested, and whether its folder is new."""
    if path is None:
        return
    if path.parent in _TO_BE_MADE:
        _TO_BE_MADE.remove(path.parent)
        print(f"written to {path} (new folder {path.parent})")
    else:
        print(f"written to {path}")


def write_theorem(theorem: Callable[[], str], rocq: Path | None) -> None:
    """Write a theorem for Rocq, if requested, and print how to check it."""
    if rocq is None:
        return
    from fltheory.files.whole_file import write_whole

    write_whole(rocq, theorem())
    tell_written(rocq)
    print(
        f"check it, in a checkout of fltheory with Rocq: make rocq PROOF={shlex.quote(str(rocq))}"
    )


def check_page(page: Path, text: str, made_from: str) -> None:
    """Exit with status 1 and a message if a page is missing or has another text.

    Parameters
    ----------
    page : Path
    text : str
        The text that the page should have.
    made_from : str
        The rest of the message after "is not what": the page's source and how it is made.
    """
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        print(f"{page} is not what {made_from}")
        raise typer.Exit(1)
