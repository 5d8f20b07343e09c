"""``fltheory new setting``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.new_files import write_new
from fltheory.commands.shared.options import WRITTEN
from fltheory.commands.shared.preparation import next_command


def command(
    file: Annotated[
        Path, WRITTEN, typer.Argument(help="The TOML file to write, say my_setting.toml.")
    ],
) -> None:
    """Write a commented setting to start from; fltheory compare takes it at once."""
    write_new("setting", file, ".toml")
    print(f"next: {next_command('compare', file)}")
