"""How a command ends other than well: one line on the error stream, and a status."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

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
    from typer.exceptions import TyperException

    try:
        command = typer.main.get_command(app)
        status = command(prog_name="fltheory", standalone_mode=False)
    except (ValueError, TyperException) as error:
        message = error.format_message() if isinstance(error, TyperException) else str(error)
        if message:
            print(f"fltheory: {message}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except Interrupted as interrupted:
        exit_interrupted(str(interrupted))
    except (KeyboardInterrupt, typer.Abort):
        exit_interrupted()
    if status == INTERRUPTED:
        exit_interrupted()
    sys.exit(status)


@contextmanager
def as_bad_input(*kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds into a ValueError with the same message."""
    try:
        yield
    except kinds as error:
        raise ValueError(str(error)) from error
