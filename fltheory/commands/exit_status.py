"""How a command ends other than well: one line on the error stream, and a status."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from typer import Typer

BAD_INPUT = 2
INTERRUPTED = 130
UNHEARD = 141
_LONGEST = 700
_NOTHING = "nothing was written"


class Interrupted(Exception):  # noqa: N818
    """An interrupt of a command that keeps what it has done; says where."""


def exit_interrupted(kept: str = _NOTHING) -> NoReturn:
    """End with the status of an interrupt, and say what is kept."""
    print(f"fltheory: interrupted, {kept}", file=sys.stderr)
    sys.exit(INTERRUPTED)


def exit_unheard() -> NoReturn:
    """End with the status of a program whose output nobody reads any more, and say nothing."""
    # What is still to be written, when Python ends, goes nowhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(UNHEARD)


def _write_what_can_be_written(stream: Any) -> None:
    """Have letters that a stream's encoding lacks written as their numbers."""
    if hasattr(stream, "reconfigure") and not str(stream.encoding).lower().startswith("utf"):
        stream.reconfigure(errors="backslashreplace")


def _what_is_full(error: OSError | MemoryError) -> str:
    """Return which file could not be read or written, and why; the output if it is none."""
    if isinstance(error, MemoryError):
        return f"there must be enough memory, got {error or 'too little'}"
    place = "the output" if error.filename is None else repr(str(error.filename))
    return f"{place} must be readable or writable, got: {error.strerror or error}"


def _status_of(app: Typer) -> Any:
    """Return how the command ends."""
    import typer

    for stream in (sys.stdout, sys.stderr):
        _write_what_can_be_written(stream)
    command = typer.main.get_command(app)
    status = command(prog_name="fltheory", standalone_mode=False)
    # Whether the output could be written is known now, not when Python ends.
    sys.stdout.flush()
    return status


def run(app: Typer) -> NoReturn:
    """Run the command line; bad input is one line and exit status 2."""
    import typer

    usage_error = _usage_error()
    try:
        status = _status_of(app)
    except (ValueError, usage_error) as error:
        message = error.format_message() if isinstance(error, usage_error) else str(error)
        if message:
            print(f"fltheory: {_cut(message)}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except Interrupted as interrupted:
        exit_interrupted(str(interrupted))
    except (KeyboardInterrupt, typer.Abort):
        exit_interrupted()
    except Exception as error:
        _exit_by(error)
    if status == INTERRUPTED:
        exit_interrupted()
    sys.exit(status)


def _exit_by(error: Exception) -> NoReturn:
    """End in one line: by a machine at its limits, or a fault in a user's file.

    What is our fault is raised.
    """
    if isinstance(error, BrokenPipeError):
        exit_unheard()
    place = _place_in_a_loaded_file(error)
    if isinstance(error, OSError | MemoryError) and place is None:
        print(f"fltheory: {_what_is_full(error)}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    if place is None:
        raise error
    print(f"fltheory: {place}: {type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(BAD_INPUT)


def _cut(message: str) -> str:
    """Return a message, without the rest of what a file of any size is full of."""
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."


def _usage_error() -> Any:
    """Return what Typer raises for a command line that it does not understand."""
    try:
        from typer.exceptions import TyperException
    except ImportError:  # an older Typer: Flower allows no other
        from click import ClickException

        return ClickException
    return TyperException


def _place_in_a_loaded_file(error: Exception) -> str | None:
    """Return the line of a user's file that an error came from, None if it is no such line's.

    What another process raised has its traceback as text only; so text is read for both.
    """
    from fltheory.user_file import LOADED_FILE

    files = {
        str(module.__file__) for name, module in sys.modules.items() if name.startswith(LOADED_FILE)
    }
    text = "".join(traceback.format_exception(error))
    places = [
        f"{file}, line {line}"
        for file, line in re.findall(r'File "(.+?)", line (\d+)', text)
        if file in files
    ]
    return places[-1] if places else None


@contextmanager
def as_bad_input(*kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds into a ValueError with the same message."""
    try:
        yield
    except kinds as error:
        raise ValueError(str(error)) from error
