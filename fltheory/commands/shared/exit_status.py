"""How a command fails: one line on the error stream, and an exit status.

Lines fit a terminal: they are broken at spaces, not in the middle of words as terminals break them.
A word that is longer than the terminal stays whole, and so does a command meant to be pasted.
Output to a file or a pipe is not changed.
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
    r"""Break a line into lines of at most ``width``, all indented like the first.

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
    # Styled lines come from tables, which already fit the terminal.
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
        """Write complete lines; an incomplete one waits for its end or a flush."""
        *lines, self._begun = (self._begun + text).split("\n")
        width = max(_LEAST, shutil.get_terminal_size().columns)
        self._stream.write("".join(f"{narrowed(line, width)}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        """Write an incomplete line, too."""
        begun, self._begun = self._begun, ""
        self._stream.write(begun)
        self._stream.flush()


BAD_INPUT = 2
INTERRUPTED = 130
UNHEARD = 141
_LONGEST = 700
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NOTHING = "nothing was written"
# Tables use an ellipsis in place of text for which they have no room.
_ALIKE = {"\N{HORIZONTAL ELLIPSIS}": "~", "\N{MIDDLE DOT}": ".", "\N{MULTIPLICATION SIGN}": "x"}


class Interrupted(Exception):  # noqa: N818
    """An interrupt of a command that keeps its results; the message says where."""


def exit_interrupted(kept: str = _NOTHING) -> NoReturn:
    """Exit with the status of an interrupt, and say what is kept."""
    _tell(f"interrupted, {kept}")
    sys.exit(INTERRUPTED)


def exit_unheard() -> NoReturn:
    """Exit silently with the status of a program whose output is no longer read."""
    _drop_the_rest(sys.stdout)
    sys.exit(UNHEARD)


def _drop_the_rest(stream: Any) -> None:
    """Discard what Python would still write to a stream at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _check_streams() -> None:
    """Exit with a message, before any work, if the output is closed (``>&-``)."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        _tell("the output must be open, got a closed one")
        sys.exit(BAD_INPUT)


def _tell(message: str) -> None:
    """Write the line of an error, broken at spaces on a terminal."""
    # A name may contain any characters; control characters are escaped.
    message = _STEERING.sub(lambda found: ascii(found[0])[1:-1], message)
    line = f"fltheory: {_cut(message)}"
    try:
        if sys.stderr.isatty():
            line = narrowed(line, shutil.get_terminal_size().columns)
        print(line, file=sys.stderr)
    except (OSError, ValueError):  # no longer read, full, or closed by a file
        _drop_the_rest(sys.stderr)


def _write_what_can_be_written(stream: Any) -> None:
    """Replace letters missing in a stream's encoding by similar ones or escapes."""
    if hasattr(stream, "reconfigure") and not str(stream.encoding).lower().startswith("utf"):
        codecs.register_error("fltheory", _like)
        stream.reconfigure(errors="fltheory")


def _like(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return a replacement for unencodable letters, of equal width where tables use them."""
    if isinstance(error, UnicodeEncodeError):
        letters = error.object[error.start : error.end]
        if all(letter in _ALIKE for letter in letters):
            return "".join(map(_ALIKE.__getitem__, letters)), error.end
    return codecs.backslashreplace_errors(error)


def _what_is_full(error: OSError | MemoryError | BrokenExecutor) -> str:
    """Return which file, or the output, could not be read or written, and why."""
    if isinstance(error, BrokenExecutor):
        return "processes must finish their work, got one that died: too little memory?"
    if isinstance(error, MemoryError):
        return f"there must be enough memory, got {error or 'too little'}"
    place = "the output" if error.filename is None else repr(str(error.filename))
    return f"{place} must be readable or writable, got: {error.strerror or error}"


def _status_of(app: Typer, name: str) -> Any:
    """Run the command and return its exit status."""
    import typer

    for stream in (sys.stdout, sys.stderr):
        _write_what_can_be_written(stream)
    if sys.stdout.isatty():
        sys.stdout = NarrowLines(sys.stdout)
    command = typer.main.get_command(app)
    try:
        status = command(prog_name=name, standalone_mode=False)
    except SystemExit as stop:
        # Typer exits this way if the output is no longer read.
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        raise
    # Flush here to find out now whether the output can be written.
    sys.stdout.flush()
    return status


def run(app: Typer, name: str = "fltheory") -> NoReturn:
    """Run a command line under this name; bad input gives one line and exit status 2."""
    import typer

    _check_streams()
    usage_error = _usage_error()
    try:
        status = _status_of(app, name)
    except (ValueError, usage_error) as error:
        message = error.format_message() if isinstance(error, usage_error) else str(error)
        # Typer's own message for an invalid choice is Pydantic's.
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
    """Exit with one line if the machine is at its limits or a user's file has a fault.

    Faults of this package are raised.
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
    """Return a message, truncated if it is too long, such as one that quotes a file."""
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."


def _usage_error() -> Any:
    """Return the exception that Typer raises for an invalid command line."""
    try:
        from typer.exceptions import TyperException
    except ImportError:  # an older Typer, the only one that Flower allows
        from click import ClickException

        return ClickException
    return TyperException


def _place_in_a_loaded_file(error: Exception) -> str | None:
    """Return the line of a user's file that raised an error; None if none did.

    An error from another process has its traceback only as text, so text is used for both.
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
