"""``fltheory weights``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.console import table_console
from fltheory.commands.exit_status import as_bad_input
from fltheory.commands.options import FigureFile
from fltheory.commands.written_files import check_figures, draw, tell_written
from fltheory.progress import shown_progress


def command(
    file: Annotated[Path, typer.Argument(help="TOML: availability, a, b, bias, ...")],
    out: FigureFile = None,
) -> None:
    """Find the aggregation weights that minimise CA-Fed's bound on the error."""
    from fltheory.report.terminal.weights_report import (
        weights_summary,
        weights_table,
        write_weights,
    )
    from fltheory.weights import solve
    from fltheory.weights.problem_file import read_trade_off

    check_figures(out=out)
    problem = read_trade_off(file)
    with shown_progress(f"solving for {problem.n_clients} clients") as advance:
        with as_bad_input(ArithmeticError):
            found = solve(problem)
        draw(partial(write_weights, problem, found), out, advance)
    table_console().print(weights_table(problem, found))
    print(weights_summary(found))
    tell_written(out)
