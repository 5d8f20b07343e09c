"""How a command ends other than well: one line on the error stream, and a status.

Lines fit a terminal: they are broken at spaces, not in the middle of words as terminals break them.
One word that is longer than the terminal stays whole, and so does a command that is there to
be pasted. What goes to a file or a pipe is left alone.
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from typer import Typer


_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b\x07]*(\x1b\\|\x07)")
_COMMAND = "fltheory "
_LEAST = 20


def narrowed(text: str, width: int) -> str:
    r"""Return a line as several that are at most so wide; what follows is indented like the first.

    Examples
    --------
    >>> print(narrowed("  the bound holds in every round", 20))
      the bound holds in
      every round
    >>> narrowed("written to a_folder/of_a_long_name.svg", 20)
    'written to\na_folder/of_a_long_name.svg'
    >>> narrowed("fltheory explain sa-fl/5 --corrected", 20)
    'fltheory explain sa-fl/5 --corrected'
    """
    # Styled lines come from tables, which know how wide the terminal is.
    if len(text) <= width or _STYLE.search(text) or text.lstrip().startswith(_COMMAND):
        return text
    indent = text[: min(len(text) - len(text.lstrip()), width // 2)]
    lines = textwrap.wrap(
        text,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return "\n".join(lines)


class NarrowLines:
    """A terminal's stream that breaks long lines at spaces."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._begun = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the lines that are whole now; what is begun waits for its end, or a flush."""
        *lines, self._begun = (self._begun + text).split("\n")
        width = max(_LEAST, shutil.get_terminal_size().columns)
        self._stream.write("".join(f"{narrowed(line, width)}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        """Write also what is begun."""
        begun, self._begun = self._begun, ""
        self._stream.write(begun)
        self._stream.flush()


BAD_INPUT = 2
INTERRUPTED = 130
UNHEARD = 141
_LONGEST = 700
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NOTHING = "nothing was written"
# An ellipsis is what tables put in the place of letters that they have no room for.
_ALIKE = {"\N{HORIZONTAL ELLIPSIS}": "~", "\N{MIDDLE DOT}": ".", "\N{MULTIPLICATION SIGN}": "x"}


class Interrupted(Exception):  # noqa: N818
    """An interrupt of a command that keeps what it has done; says where."""


def exit_interrupted(kept: str = _NOTHING) -> NoReturn:
    """End with the status of an interrupt, and say what is kept."""
    _tell(f"interrupted, {kept}")
    sys.exit(INTERRUPTED)


def exit_unheard() -> NoReturn:
    """End with the status of a program whose output nobody reads any more, and say nothing."""
    _drop_the_rest(sys.stdout)
    sys.exit(UNHEARD)


def _drop_the_rest(stream: Any) -> None:
    """Have what is still to be written to a stream, when Python ends, go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _check_streams() -> None:
    """End in a line where there is no output at all (``>&-``), before any work is done for it."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        _tell("the output must be open, got a closed one")
        sys.exit(BAD_INPUT)


def _tell(message: str) -> None:
    """Write the one line of an error, on a terminal broken at spaces."""
    # A name may have any characters in it; those that steer a terminal are written out.
    message = _STEERING.sub(lambda found: ascii(found[0])[1:-1], message)
    line = f"fltheory: {_cut(message)}"
    try:
        if sys.stderr.isatty():
            line = narrowed(line, shutil.get_terminal_size().columns)
        print(line, file=sys.stderr)
    except (OSError, ValueError):  # nobody reads it any more, it is full, or a file closed it
        _drop_the_rest(sys.stderr)


def _write_what_can_be_written(stream: Any) -> None:
    """Have letters that a stream's encoding lacks written as others, or as their numbers."""
    if hasattr(stream, "reconfigure") and not str(stream.encoding).lower().startswith("utf"):
        codecs.register_error("fltheory", _like)
        stream.reconfigure(errors="fltheory")


def _like(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return what stands for letters that cannot be written; in tables it must be as wide."""
    if isinstance(error, UnicodeEncodeError):
        letters = error.object[error.start : error.end]
        if all(letter in _ALIKE for letter in letters):
            return "".join(map(_ALIKE.__getitem__, letters)), error.end
    return codecs.backslashreplace_errors(error)


def _what_is_full(error: OSError | MemoryError | BrokenExecutor) -> str:
    """Return which file could not be read or written, and why; the output if it is none."""
    if isinstance(error, BrokenExecutor):
        return "processes must finish their work, got one that died: too little memory?"
    if isinstance(error, MemoryError):
        return f"there must be enough memory, got {error or 'too little'}"
    place = "the output" if error.filename is None else repr(str(error.filename))
    return f"{place} must be readable or writable, got: {error.strerror or error}"


def _status_of(app: Typer, name: str) -> Any:
    """Return how the command ends."""
    import typer

    for stream in (sys.stdout, sys.stderr):
        _write_what_can_be_written(stream)
    if sys.stdout.isatty():
        sys.stdout = NarrowLines(sys.stdout)
    command = typer.main.get_command(app)
    try:
        status = command(prog_name=name, standalone_mode=False)
    except SystemExit as stop:
        # So Typer ends where nobody reads the output any more.
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        raise
    # Whether the output could be written is known now, not when Python ends.
    sys.stdout.flush()
    return status


def run(app: Typer, name: str = "fltheory") -> NoReturn:
    """Run a command line, called so in its help; bad input is one line and exit status 2."""
    import typer

    _check_streams()
    usage_error = _usage_error()
    try:
        status = _status_of(app, name)
    except (ValueError, usage_error) as error:
        message = error.format_message() if isinstance(error, usage_error) else str(error)
        # Typer has Pydantic's words for a choice that is none.
        message = message.replace(": Value error, ", ": ")
        if message:
            _tell(message)
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
    if isinstance(error, OSError | MemoryError | BrokenExecutor) and place is None:
        _tell(_what_is_full(error))
        _drop_the_rest(sys.stdout)
        sys.exit(BAD_INPUT)
    if place is None:
        raise error
    _tell(f"{place}: {type(error).__name__}: {error}")
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
    from fltheory.files.user_file import LOADED_FILE

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
