"""``fltheory derive``."""

from __future__ import annotations

from typing import Annotated

import typer

from fltheory.commands.options import TheoremId
from fltheory.commands.selection import in_readings
from fltheory.progress import shown_progress


def command(
    theorem: TheoremId,
    reading: Annotated[
        str | None, typer.Option(help="One reading; all with a recorded proof by default.")
    ] = None,
) -> None:
    """Check the last steps of a theorem's proof symbolically, and the units of its formulas."""
    from fltheory.report import derivation_text

    for statement in in_readings(theorem, reading):
        if reading or statement.derivation is not None:
            with shown_progress("checking steps") as advance:
                text = derivation_text(statement, progress=advance)
            print(f"{text}\n")
