"""Figures as files, and the style that all of them are drawn in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from fltheory import validation
from fltheory.files.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".svg")


@contextmanager
def default_style() -> Iterator[None]:
    """Draw as matplotlib does by default, whatever the user's own settings say.

    Those may need LaTeX, or fonts that are not there; and a figure should be the same anywhere.
    """
    from matplotlib import rc_context, rcdefaults, rcParams

    with rc_context():
        rcdefaults()
        rcParams["svg.hashsalt"] = "fltheory"
        yield


def write_figure(figure: Figure | Callable[[], Figure], path: Path | str) -> None:
    """Write a figure as PNG or SVG, by suffix; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure, or callable
        One that is drawn, or what draws it.
    path : Path or str

    Raises
    ------
    ValueError
        For another suffix, when nothing is drawn, or for what is no figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> write_figure(Figure(), "bound.pdf")
    Traceback (most recent call last):
    ValueError: out must end in .png or .svg, got 'bound.pdf'
    """
    path = validation.path("path", path)
    if path.suffix not in _SUFFIXES:
        raise ValueError(f"out must end in {' or '.join(_SUFFIXES)}, got {str(path)!r}")
    write_whole(path, drawn(figure, path.suffix))


def drawn(figure: Figure | Callable[[], Figure], suffix: str) -> bytes:
    """Return what a figure's file holds."""
    from matplotlib.figure import Figure

    metadata = {"Date": None} if suffix == ".svg" else {"Software": "fltheory"}
    with default_style():
        content = BytesIO()
        made = figure() if callable(figure) else figure
        validation.instance_of("figure", made, Figure, "a figure, or what draws one")
        made.savefig(content, format=suffix[1:], dpi=160, metadata=metadata)
    return content.getvalue()
