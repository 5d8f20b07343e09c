"""Reading untrusted files, but only if they are regular files of reasonable size."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

MOST_BYTES = 64 * 1024**2
"""Size of the largest text that is read."""

MOST_LEVELS = 100
"""Largest nesting depth of tables and lists in a document."""

# Python's TOML reader needs memory quadratic in the number of parts of a key. The search for such
# keys must not take quadratic time itself, so it starts only where a key may start, and does not
# backtrack.
_LONG_KEY = re.compile(r"(?<![\w\"'. \t-])[ \t]*+(?:[\w\"'-]++[ \t]*+\.[ \t]*+){1000}")


def existing_file(must_be: str, path: Path | str, *, most_bytes: int | None = None) -> Path:
    """Return the path of an existing file that is not a folder, pipe or device.

    Parameters
    ----------
    must_be : str
        Beginning of the error message, such as "file of a setting must exist".
    path : Path or str
    most_bytes : int, optional
        Largest size that is read.

    Raises
    ------
    ValueError
        If there is no such file, the file is larger, or the running command will write it.
    """
    from fltheory import validation  # imports NumPy, which help does not need

    path = validation.path("path", path)
    got = f"{must_be}, got {str(path)!r}"
    try:
        if not path.is_file():
            raise ValueError(f"{got}, a folder" if path.is_dir() else got)
        size = path.stat().st_size
    except OSError as error:
        raise ValueError(f"{got}: {error.strerror}") from error
    if most_bytes is not None and size > most_bytes:
        raise ValueError(f"{path}: must have at most {most_bytes} bytes, got {size}")
    check_no_result(path)
    return path


def text_of(must_be: str, path: Path | str, *, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a UTF-8 file.

    Raises
    ------
    ValueError
        If there is no such file, or it is too large, unreadable or not a text file.
    """
    path = existing_file(must_be, path, most_bytes=most_bytes)
    try:
        with open(path, encoding="utf-8-sig", opener=_without_waiting) as file:
            text = file.read(most_bytes + 1)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: must be text in UTF-8, got: {error}") from error
    except OSError as error:
        raise ValueError(f"{path}: must be readable, got: {error.strerror or error}") from error
    if len(text) > most_bytes:
        # The kernel's files report no size and may be endless.
        raise ValueError(f"{path}: must have at most {most_bytes} bytes, got more")
    return text


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without blocking, because a kernel file may have no data yet."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def toml_of(must_be: str, path: Path | str) -> dict[str, Any]:
    """Return the document of a TOML file.

    Raises
    ------
    ValueError
        As in `text_of`, or if the text is not TOML or is nested beyond `MOST_LEVELS`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "setting.toml"
    ...     _ = file.write_text("rounds = 3")
    ...     toml_of("file of a setting must exist", file)
    {'rounds': 3}
    """
    return toml_in(path, text_of(must_be, path))


def toml_in(place: Path | str, text: str) -> dict[str, Any]:
    """Return the document of TOML text; error messages begin with ``place``.

    Raises
    ------
    ValueError
        If the text is not TOML, or is nested beyond `MOST_LEVELS`.
    """
    if _LONG_KEY.search(text):
        raise ValueError(f"{place}: must have keys with fewer dotted parts, got a key with 1000")
    document: dict[str, Any] = _parsed("TOML", place, tomllib.loads, text)
    return document


def json_of(must_be: str, path: Path | str) -> Any:
    """Return the document of a JSON file.

    Raises
    ------
    ValueError
        As in `text_of`, or if the text is not JSON or is nested beyond `MOST_LEVELS`.
    """
    return json_in(path, text_of(must_be, path))


def json_in(place: Path | str, text: str) -> Any:
    """Return the document of JSON text; error messages begin with ``place``.

    Raises
    ------
    ValueError
        If the text is not JSON, or is nested beyond `MOST_LEVELS`.

    Examples
    --------
    >>> json_in("setting", "[1, 2")
    Traceback (most recent call last):
    ValueError: setting: must be JSON, got: Expecting ',' delimiter: line 1 column 6 (char 5)
    """
    return _parsed("JSON", place, json.loads, text)


def _parsed(kind: str, path: Path | str, parse: Callable[[str], Any], text: str) -> Any:
    try:
        document = parse(text)
    except ValueError as error:
        said = str(error)
        raise ValueError(f"{path}: must be {kind}, got: {said[:200]}") from error
    except RecursionError:
        document = None
        deep = True
    else:
        deep = levels(document, MOST_LEVELS + 1) > MOST_LEVELS
    if deep:
        raise ValueError(f"{path}: must be nested at most {MOST_LEVELS} levels deep, got more")
    return document


def levels(document: Any, most: int) -> int:
    """Return the nesting depth of lists and tables, counted up to ``most``.

    Examples
    --------
    >>> levels({"a": [[1]]}, 10)
    3
    """
    depth, here = 0, [document]
    while depth < most:
        here = [one for one in here if isinstance(one, dict | list)]
        if not here:
            return depth
        depth += 1
        here = [item for one in here for item in (one.values() if isinstance(one, dict) else one)]
    return depth


_File: TypeAlias = tuple[int, int, str]


@dataclass(frozen=True)
class Result:
    """A file that will be written.

    Attributes
    ----------
    name : str
        Name of the argument in error messages.
    path : Path
    is_resumed : bool
        Whether the file's previous content is read first and kept, as with a store or a record of
        results.
    """

    name: str
    path: Path
    is_resumed: bool = False


_RESULTS: ContextVar[Mapping[_File, Result]] = ContextVar("_RESULTS")


@contextmanager
def results_apart(results: Iterable[Result], inputs: Iterable[Path]) -> Iterator[None]:
    """Refuse, inside the block, to read a file that will be written, or to write a file twice.

    Raises
    ------
    ValueError
        If two results are the same file, or a result is an input. Files that are read inside the
        block are checked by `check_no_result`.
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
    """Raise ValueError for a file that `results_apart` lists as a result."""
    _check(path, _RESULTS.get({}))


def _check(path: Path, results: Mapping[_File, Result]) -> None:
    if results and (result := results.get(_file(path))):
        raise ValueError(
            f"{result.name} must be another file than {str(path)!r}, which is read, "
            f"got {str(result.path)!r}"
        )


def _file(path: Path) -> _File:
    """Return a key that identifies a file, whether or not it exists yet."""
    place = Path(os.path.realpath(path))
    there = next(one for one in (place, *place.parents) if os.path.exists(one))
    about = there.stat()
    # Some file systems ignore case.
    return about.st_dev, about.st_ino, str(place.relative_to(there)).casefold()
