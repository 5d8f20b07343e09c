"""``fltheory cutoff``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from fltheory.commands.console import table_console
from fltheory.commands.options import FigureFile
from fltheory.commands.written_files import check_figures, draw, tell_written
from fltheory.progress import shown_progress

# A negative number is no option: what is no probability is said to be none.
CONTEXT = {"ignore_unknown_options": True}


def command(
    p: Annotated[list[float], typer.Argument(help="Participation probabilities, one a client.")],
    rounds: Annotated[int, typer.Option(help="Rounds of a run, the T of the paper.")] = 1000,
    out: FigureFile = None,
) -> None:
    """Find the cut-off K that makes FedAU's weights best, beside the paper's choices."""
    from fltheory.fedau import best_cutoff
    from fltheory.report.terminal.cutoff_report import cutoff_table, write_cutoffs

    check_figures(out=out)
    with shown_progress("trying cut-offs") as advance:
        found = best_cutoff(p, rounds, progress=advance)
        draw(partial(write_cutoffs, p, rounds, found, progress=advance), out, advance)
    table_console().print(cutoff_table(found))
    tell_written(out)
