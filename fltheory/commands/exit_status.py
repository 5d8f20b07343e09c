"""How a command ends other than well: one line on the error stream, and a status."""

from __future__ import annotations

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
_NOTHING = "nothing was written"


class Interrupted(Exception):  # noqa: N818
    """An interrupt of a command that keeps what it has done; says where."""


def exit_interrupted(kept: str = _NOTHING) -> NoReturn:
    """End with the status of an interrupt, and say what is kept."""
    print(f"fltheory: interrupted, {kept}", file=sys.stderr)
    sys.exit(INTERRUPTED)


def run(app: Typer) -> NoReturn:
    """Run the command line; bad input is one line and exit status 2."""
    import typer

    usage_error = _usage_error()
    try:
        command = typer.main.get_command(app)
        status = command(prog_name="fltheory", standalone_mode=False)
    except (ValueError, usage_error) as error:
        message = error.format_message() if isinstance(error, usage_error) else str(error)
        if message:
            print(f"fltheory: {message}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except Interrupted as interrupted:
        exit_interrupted(str(interrupted))
    except (KeyboardInterrupt, typer.Abort):
        exit_interrupted()
    except Exception as error:
        place = _place_in_a_loaded_file(error)
        if place is None:
            raise
        print(f"fltheory: {place}: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    if status == INTERRUPTED:
        exit_interrupted()
    sys.exit(status)


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
