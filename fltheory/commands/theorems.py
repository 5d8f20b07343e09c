"""``fltheory theorems``."""

from __future__ import annotations

from fltheory.commands.console import table_console


def command() -> None:
    """List the registered theorems."""
    from rich.markup import escape
    from rich.table import Table

    from fltheory import theorems as registry

    table = Table()
    for heading in ("theorem", "kind", "readings", "regimes", "title", "source"):
        table.add_column(heading, overflow="fold")
    for identifier in registry.ids():
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
