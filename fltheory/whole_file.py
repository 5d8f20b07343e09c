"""Files that are there whole, or as they were before."""

from __future__ import annotations

import os
from pathlib import Path


def writable(name: str, path: Path, *suffixes: str) -> Path:
    """Return a path that a file can be written to; asked before long work, it saves it.

    Parameters
    ----------
    name : str
        The argument, as the error names it.
    path : Path
    *suffixes : str
        Endings that it may have, any if none are given.

    Raises
    ------
    ValueError
        For another ending, a folder, or a place where nothing can be written.
    """
    if path.is_dir():
        raise ValueError(f"{name} must be a file, got the folder {str(path)!r}")
    ancestor = next(parent for parent in path.absolute().parents if parent.exists())
    if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
        raise ValueError(f"{name} must be where a file can be written, got {str(path)!r}")
    if suffixes and path.suffix not in suffixes:
        raise ValueError(f"{name} must end in {' or '.join(suffixes)}, got {str(path)!r}")
    return path


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file in one go, so that an interrupt leaves the one before."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
