"""Figures as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

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

    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": "fltheory"}
    with rc_context({"svg.hashsalt": "fltheory"}):
        draw().savefig(path, dpi=160, metadata=metadata)
