"""``fltheory reproduce pac-figures``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.options import FileUse, Seed
from fltheory.commands.shared.terminal.console import table_console
from fltheory.commands.shared.written_files import check_places, tell_written
from fltheory.long_work.progress import shown_progress


def command(
    out: Annotated[
        Path,
        FileUse(writes=True, files="*.[ps][nv]g"),
        typer.Option(help="Where to write the figures: a folder."),
    ] = Path("out"),
    suffix: Annotated[str, typer.Option(help=".png or .svg")] = ".svg",
    replicas: Annotated[int, typer.Option(help="Sample size where sampled.")] = 400,
    seed: Seed = 0,
) -> None:
    """Draw error against samples, with and without a server's data; compare with it alone."""
    from fltheory import validation
    from fltheory.reproduce.learnability_report import (
        comparison_table,
        comparisons,
        write_learnability_figures,
    )

    validation.one_of("suffix", suffix, (".png", ".svg"))
    validation.whole_number("replicas", replicas, at_least=2)
    validation.seed_number("seed", seed)
    check_places(out=out / f"figure{suffix}")
    with shown_progress() as advance:
        rows = comparisons(replicas=replicas, seed=seed, progress=advance)
    table_console().print(comparison_table(rows))
    for path in write_learnability_figures(out, suffix):
        tell_written(path)
