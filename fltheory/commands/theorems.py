"""``fltheory theorems``."""

from __future__ import annotations

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.options import TheoremIds


def command(theorems: TheoremIds = None) -> None:
    """List the registered theorems, or those of a paper."""
    from rich.markup import escape
    from rich.table import Table

    from fltheory.theorems import registry

    table = Table()
    for heading in ("theorem", "kind", "readings", "regimes", "title", "source"):
        table.add_column(heading, overflow="fold")
    chosen = registry.registered(*theorems or ())
    for identifier in dict.fromkeys(statement.id for statement in chosen):
        statement = registry.get(identifier)
        table.add_row(
            identifier,
            str(statement.kind),
            ", ".join(registry.readings(identifier)),
            str(len(statement.regimes)),
            escape(statement.title),
            escape(statement.source),
        )
    table_console().print(table)
