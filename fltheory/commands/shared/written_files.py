"""The files that commands write: their places, asked before the work, figures and pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from fltheory.long_work.progress import Progress


# Folders that were missing when the places of files were asked for.
_TO_BE_MADE: set[Path] = set()


def check_places(*suffixes: str, **places: Path | None) -> None:
    """Raise ValueError if a file cannot be written there, before the work for it.

    A folder that is not there is made with the file, and `tell_written` says so: it may be a
    misspelt one.

    Parameters
    ----------
    *suffixes : str
        Endings that the files may have, any if none are given.
    **places : Path or None
        By the name of the option; None where no file was asked for.
    """
    from fltheory.files.whole_file import writable

    for name, path in places.items():
        if path is not None:
            writable(name, path, *suffixes)
            if not path.parent.exists():
                _TO_BE_MADE.add(path.parent)


def check_figures(**places: Path | None) -> None:
    """Raise ValueError if a figure cannot be written there, before the work for it."""
    check_places(".png", ".svg", **places)


def draw(write: Callable[[Path], None], out: Path | None, progress: Progress) -> None:
    """Write a figure, if one was asked for; the bar says so meanwhile."""
    if out is not None:
        progress(0, 0, f"drawing {out}")
        write(out)


def tell_written(path: Path | None) -> None:
    """Say where a file was written, if it was asked for, and whether its folder is new."""
    if path is None:
        return
    if path.parent in _TO_BE_MADE:
        _TO_BE_MADE.remove(path.parent)
        print(f"written to {path}, {path.parent} is a new folder")
    else:
        print(f"written to {path}")


def check_page(page: Path, text: str, made_from: str) -> None:
    """Exit with status 1 and say so if a page is missing or has another text.

    Parameters
    ----------
    page : Path
    text : str
        What it should have.
    made_from : str
        What follows "is not what": its source, and how it is made.
    """
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        print(f"{page} is not what {made_from}")
        raise typer.Exit(1)
