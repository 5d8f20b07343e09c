"""The files that commands write: their places, asked before the work, figures and pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from fltheory.progress import Progress


def check_places(*suffixes: str, **places: Path | None) -> None:
    """Raise ValueError if a file cannot be written there, before the work for it.

    Parameters
    ----------
    *suffixes : str
        Endings that the files may have, any if none are given.
    **places : Path or None
        By the name of the option; None where no file was asked for.
    """
    from fltheory.whole_file import writable

    for name, path in places.items():
        if path is not None:
            writable(name, path, *suffixes)


def check_figures(**places: Path | None) -> None:
    """Raise ValueError if a figure cannot be written there, before the work for it."""
    check_places(".png", ".svg", **places)


def draw(write: Callable[[Path], None], out: Path | None, progress: Progress) -> None:
    """Write a figure, if one was asked for; the bar says so meanwhile."""
    if out is not None:
        progress(0, 0, f"drawing {out}")
        write(out)


def tell_written(path: Path | None) -> None:
    """Say where a file was written, if it was asked for."""
    if path is not None:
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
