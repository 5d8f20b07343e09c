"""``fltheory weights``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.exit_status import as_bad_input
from fltheory.commands.shared.options import (
    CONDITION_MEANS,
    DISSIMILARITY_MEANS,
    NOISE_MEANS,
    READ,
    Columns,
    RoundLength,
    SizesFile,
    written,
)
from fltheory.commands.shared.preparation import deployment
from fltheory.commands.shared.written_files import draw, tell_written
from fltheory.long_work.progress import shown_progress

Method = Literal["auto", "newton", "cvxpy"]


def command(
    file: Annotated[
        Path,
        READ,
        typer.Argument(help="A log of who was online, or a problem (.toml) with a, b, ..."),
    ],
    sizes: SizesFile = None,
    method: Annotated[Method, typer.Option(help="Method of minimisation.")] = "auto",
    rounds: Annotated[
        int | None,
        typer.Option(help="Number of rounds, if FILE is a log; default: all rounds of the log."),
    ] = None,
    local_steps: Annotated[int, typer.Option(help="Local steps per round, if FILE is a log.")] = 1,
    noise: Annotated[float, typer.Option(help=NOISE_MEANS)] = 1.0,
    dissimilarity: Annotated[float, typer.Option(help=DISSIMILARITY_MEANS)] = 0.5,
    condition: Annotated[float, typer.Option(help=CONDITION_MEANS)] = 1.0,
    round_length: RoundLength = None,
    columns: Columns = None,
    out: Annotated[
        Path | None,
        written(".csv", ".png", ".svg"),
        typer.Option(help="Where to write the weights: .csv; or, as .png or .svg, their figure."),
    ] = None,
    figure: Annotated[
        Path | None,
        written(".png", ".svg"),
        typer.Option(help="Write a figure to this file: weights and trade-off."),
    ] = None,
) -> None:
    """Find the aggregation weights that minimise CA-Fed's bound on the error."""
    from dataclasses import replace

    from fltheory.logs import describe
    from fltheory.report.terminal.weights_report import (
        trade_off_figure,
        weights_assumptions,
        weights_figure,
        weights_summary,
        weights_table,
    )
    from fltheory.weights.client_weights import Training, for_clients, of_problem
    from fltheory.weights.sizes_file import read_trade_off

    # Options are refused before a long log is read.
    training = Training(
        1 if rounds is None else rounds, local_steps, noise, dissimilarity, condition
    )
    with shown_progress(f"reading {file}") as advance, as_bad_input(ArithmeticError):
        # A missing file gives the same message, whatever kind it should be.
        if file.suffix == ".toml" or not file.is_file():
            of_log = {"sizes": sizes, "round-length": round_length, "columns": columns}
            for name, value in of_log.items():
                if value is not None:
                    raise ValueError(
                        f"{name} must be given only with a log, got the problem {str(file)!r}"
                    )
            found, told = of_problem(read_trade_off(file), method), ""
        else:
            log, given = deployment(file, sizes, round_length, columns)
            described = describe(log)
            if rounds is None:
                training = replace(training, rounds=log.n_rounds)
            found = for_clients(log.clients, log.marginals, given, training=training, method=method)
            told = weights_assumptions(found, described, training, given)
        drawn = out if out is not None and out.suffix != ".csv" else None
        draw(partial(weights_figure, found.problem, found.solution), drawn, advance)
        draw(partial(trade_off_figure, found.problem, found.solution), figure, advance)
    if told:
        print(told)
    table_console().print(weights_table(found))
    print(weights_summary(found.solution))
    if out is not None and drawn is None:
        from fltheory.files.whole_file import write_whole

        write_whole(out, found.as_csv())
    tell_written(out)
    tell_written(figure)
