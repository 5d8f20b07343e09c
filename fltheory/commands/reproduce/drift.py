"""``fltheory reproduce drift``."""

from __future__ import annotations

from fltheory.commands.shared.options import FigureFile
from fltheory.commands.shared.terminal.console import table_console
from fltheory.commands.shared.written_files import check_figures, tell_written


def command(out: FigureFile = None) -> None:
    """Show how tight the local drift lemma's 5 and 30 are: the least constants, over K and eta."""
    from fltheory.reproduce.drift_map import drift_summary, drift_table, write_drift_map

    check_figures(out=out)
    table_console().print(drift_table())
    print(drift_summary())
    if out is not None:
        write_drift_map(out)
        tell_written(out)
