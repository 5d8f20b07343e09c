"""SA-FL's Theorem 1 as a table: the probability that every learner fails if clients stay away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from fltheory.cli import run_script
from fltheory.commands.shared.console import table_console
from fltheory.learnability import impossibility
from fltheory.learnability.impossibility import (
    Impossibility,
    alike_clients,
    drawn_clients,
    split_clients,
)

_LONGEST_FRACTION = 10**9


def impossibility_table(M: int, n: int, m: int) -> Table:
    """Return a table of Theorem 1's construction, and of its cases with chosen clients.

    Raises
    ------
    ValueError
        For the reasons of `fltheory.learnability.impossibility`.
    """
    cases = {
        "samples chosen (the proof)": impossibility(M, n, m),
        "clients hold one point each": split_clients(M, n, m),
        "each client's point drawn": drawn_clients(M, n, m),
        "clients alike, all samples drawn": alike_clients(M, n, m),
    }
    table = Table(
        title=f"M = {M}, n = {n}, m = {m}: epsilon = {next(iter(cases.values())).epsilon}"
    )
    for heading in ("case", "P(x_2)", "P(hidden)", "P(error > epsilon)", "no coins", "E error"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for name, figures in cases.items():
        table.add_row(name, *(_short(value) for value in _columns(figures)))
    return table


def _columns(figures: Impossibility) -> Sequence[object]:
    return (
        figures.rare_probability,
        figures.hidden_probability,
        figures.minimax_probability,
        figures.minimax_deterministic,
        figures.minimax_expected_error,
    )


def _short(value: object) -> str:
    """Return a fraction if it is short, else its decimal value."""
    if getattr(value, "denominator", 1) < _LONGEST_FRACTION:
        return str(value)
    return f"{float(value):.6g}"  # type: ignore[arg-type]


def command(
    clients: Annotated[int, typer.Argument(metavar="M", help="Clients.")],
    samples: Annotated[int, typer.Argument(metavar="n", help="Samples of each client.")],
    present: Annotated[int, typer.Argument(metavar="m", help="Clients who take part.")],
) -> None:
    """Show how surely every learner fails if clients stay away: SA-FL's Theorem 1."""
    table_console().print(impossibility_table(clients, samples, present))


if __name__ == "__main__":
    run_script(command)
