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
    from fltheory.report.terminal.derivation_text import derivation_text

    statements = in_readings(theorem, reading)
    if not reading and all(statement.derivation is None for statement in statements):
        print(f"no steps of a proof of {theorem} are recorded: --reading checks units alone")
    for statement in statements:
        if reading or statement.derivation is not None:
            with shown_progress("checking steps") as advance:
                text = derivation_text(statement, progress=advance)
            print(f"{text}\n")
