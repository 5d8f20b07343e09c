"""Figures as files."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from fltheory.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".svg")


def write_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Write a figure as PNG or SVG, by suffix; the same figure gives the same bytes.

    Raises
    ------
    ValueError
        For another suffix; nothing is drawn then.
    """
    if path.suffix not in _SUFFIXES:
        raise ValueError(f"out must end in {' or '.join(_SUFFIXES)}, got {str(path)!r}")
    from matplotlib import rc_context

    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": "fltheory"}
    with rc_context({"svg.hashsalt": "fltheory"}):
        content = BytesIO()
        draw().savefig(content, format=path.suffix[1:], dpi=160, metadata=metadata)
    write_whole(path, content.getvalue())
