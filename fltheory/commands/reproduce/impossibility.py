"""``fltheory reproduce impossibility``."""

from __future__ import annotations

from typing import Annotated

import typer

from fltheory.commands.shared.terminal.console import table_console


def command(
    clients: Annotated[int, typer.Argument(metavar="M", help="Clients.")],
    samples: Annotated[int, typer.Argument(metavar="n", help="Samples of each client.")],
    present: Annotated[int, typer.Argument(metavar="m", help="Clients who take part.")],
) -> None:
    """Show how surely every learner fails if clients stay away: SA-FL's Theorem 1."""
    from fltheory.reproduce.learnability_report import impossibility_table

    table_console().print(impossibility_table(clients, samples, present))
