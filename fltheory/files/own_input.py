"""Files that are read and files that are written: no result takes the place of what it is made of.

Files are compared, not their names: links, hard links, ``./x`` and letters' case do not matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

_File: TypeAlias = tuple[int, int, str]


@dataclass(frozen=True)
class Result:
    """A file that will be written.

    Attributes
    ----------
    name : str
        Of the argument, as an error says it.
    path : Path
    is_resumed : bool
        Whether what it held is read first, and kept: a store, a record, results so far.
    """

    name: str
    path: Path
    is_resumed: bool = False


_RESULTS: ContextVar[Mapping[_File, Result]] = ContextVar("_RESULTS")


@contextmanager
def results_apart(results: Iterable[Result], inputs: Iterable[Path]) -> Iterator[None]:
    """Refuse, now and as long as it lasts, to read a file that is to be written, or write it twice.

    Raises
    ------
    ValueError
        If two results are one file, or a result is an input; `check_no_result` for what is read
        meanwhile.
    """
    by_file: dict[_File, Result] = {}
    for result in results:
        other = by_file.setdefault(_file(result.path), result)
        if other.name != result.name:
            raise ValueError(
                f"{result.name} must be another file than {other.name}, got {str(result.path)!r}"
            )
    for path in inputs:
        _check(path, by_file)
    before = _RESULTS.set({file: one for file, one in by_file.items() if not one.is_resumed})
    try:
        yield
    finally:
        _RESULTS.reset(before)


def check_no_result(path: Path) -> None:
    """Raise ValueError for a file that is to be written, as `results_apart` was told."""
    _check(path, _RESULTS.get({}))


def _check(path: Path, results: Mapping[_File, Result]) -> None:
    if results and (result := results.get(_file(path))):
        raise ValueError(
            f"{result.name} must be another file than {str(path)!r}, which is read, "
            f"got {str(result.path)!r}"
        )


def _file(path: Path) -> _File:
    """Return what tells a file from any other, whether or not it is there yet."""
    place = Path(os.path.realpath(path))
    there = next(one for one in (place, *place.parents) if os.path.exists(one))
    about = there.stat()
    # Some disks take letters of another case for the same.
    return about.st_dev, about.st_ino, str(place.relative_to(there)).casefold()
