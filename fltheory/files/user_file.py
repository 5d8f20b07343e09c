"""Running a user's Python file, reporting any exception with the line that raised it."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from fltheory.files.read_file import MOST_BYTES, existing_file

LOADED_FILE = "fltheory_loaded_"
"""Prefix of the names of modules loaded from users' files."""


def run_file(path: Path | str, what: str) -> ModuleType:
    """Run a Python file and return it as a module.

    Parameters
    ----------
    path : Path or str
    what : str
        Description of the file for messages, such as ``"file of theorems"``.

    Raises
    ------
    ValueError
        If there is no such file, it is too large or not Python, it raises any exception, or it
        calls `sys.exit` or `os._exit`. The message is a single line that names the line of the
        file.
    """
    path = existing_file(f"{what} must exist", path, most_bytes=MOST_BYTES)
    name = f"{LOADED_FILE}{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{what} must be a Python file (.py), got {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickle look up a class's module.
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        with _staying():
            spec.loader.exec_module(module)
    # A file may do anything; any exception, and sys.exit, is an error of that file.
    except BaseException as error:
        # A module that failed while running is not kept.
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        if isinstance(error, KeyboardInterrupt):
            raise
        raise ValueError(fault_in(path, error)) from error
    return module


@contextmanager
def _staying() -> Iterator[None]:
    """Make `os._exit` raise like `sys.exit`; otherwise this process would end silently."""
    ends, here = os._exit, os.getpid()

    def raise_instead(status: int) -> NoReturn:
        if os.getpid() != here:  # in a process forked by the file, which must end
            ends(status)
        raise SystemExit(f"os._exit({status})")

    os._exit = raise_instead
    try:
        yield
    finally:
        os._exit = ends


def fault_in(path: Path, error: BaseException) -> str:
    """Return an exception of a file in one line, with the file and the line that raised it."""
    return f"{_place_in(path, error)}: {type(error).__name__}: {_first_line(error)}"


def _place_in(path: Path, error: BaseException) -> str:
    # Tracebacks have the file's absolute path.
    file = str(path.absolute())
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{path}, line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]
    return f"{path}, line {lines[-1]}" if lines else str(path)


def _first_line(error: BaseException) -> str:
    said = error.msg if isinstance(error, SyntaxError) else said_by(error)
    return said.splitlines()[0] if said else "no message"


def said_by(error: BaseException) -> str:
    """Return an exception's message, or a note if it has no printable one.

    Examples
    --------
    >>> said_by(ValueError("no")), said_by(ValueError())
    ('no', '')
    """
    try:
        return str(error)
    except Exception as second:
        return f"its message raises {type(second).__name__}"
