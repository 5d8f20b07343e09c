"""``fltheory reproduce ca-fed``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.options import FurtherPage, ResultsFile
from fltheory.commands.shared.resumption import resumed
from fltheory.commands.shared.terminal.console import table_console
from fltheory.commands.shared.written_files import check_places, tell_written


def command(
    seeds: Annotated[int, typer.Option(help="Data sets to run it on.")] = 10,
    rounds: Annotated[int, typer.Option(help="Rounds of a run.")] = 150,
    start_spread: Annotated[
        float, typer.Option(help="Start within so much / sqrt(dim): 1 as torch, 0 at zero.")
    ] = 1.0,
    momentum: Annotated[
        float, typer.Option(help="Of clients and server: 0 in the paper, 0.9 in its code.")
    ] = 0.0,
    out: ResultsFile = Path("out/ca-fed.json"),
    page: FurtherPage = None,
) -> None:
    """CA-Fed's Table I on synthetic data, beside the paper's figures."""
    from fltheory.files.whole_file import write_whole
    from fltheory.reproduce.experiments import ca_fed_synthetic as experiments
    from fltheory.reproduce.experiments.experiment_report import (
        MEASURED,
        experiment_page,
        experiment_summary,
        experiment_tables,
    )

    check_places(out=out, page=page)
    plan = experiments.Plan(rounds, start_spread=start_spread, momentum=momentum)
    results = resumed(
        experiments.measure_all,
        experiments.keys(seeds),
        plan,
        out,
        read=MEASURED.read,
        write=MEASURED.write,
        what="measured rows",
    )
    for table in experiment_tables(results):
        table_console().print(table)
    print(experiment_summary(results, plan))
    tell_written(out)
    if page is not None:
        made_by = (
            f"fltheory reproduce ca-fed --seeds {seeds} --rounds {rounds} "
            f"--start-spread {start_spread:g} --momentum {momentum:g} --out {out} --page {page}"
        )
        write_whole(page, experiment_page(results, plan, made_by))
        tell_written(page)
