"""``fltheory reproduce impossibility``."""

from __future__ import annotations

from typing import Annotated

import typer

from fltheory.commands.console import table_console


def command(
    M: Annotated[int, typer.Argument(help="Clients.")],
    n: Annotated[int, typer.Argument(help="Samples of each client.")],
    m: Annotated[int, typer.Argument(help="Clients who take part.")],
) -> None:
    """Show how surely every learner fails if clients stay away: SA-FL's Theorem 1."""
    from fltheory.reproduce.learnability_report import impossibility_table

    table_console().print(impossibility_table(M, n, m))
