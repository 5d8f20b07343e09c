"""``fltheory reproduce shapley``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.options import PAGES, WRITTEN, Check, PageFile
from fltheory.commands.shared.written_files import (
    check_figures,
    check_page,
    check_places,
    tell_written,
)
from fltheory.long_work.progress import shown_progress


def command(
    out: PageFile = PAGES / "fedar-shapley.md",
    figure: Annotated[
        Path, WRITTEN, typer.Option(help="Write a figure to this file: .png or .svg.")
    ] = PAGES / "fedar-shapley.svg",
    check: Check = False,
) -> None:
    """FedAR's motivating experiment: Shapley values of stale updates, exact on quadratics."""
    from fltheory.files.whole_file import write_whole
    from fltheory.reproduce.experiments.shapley_report import (
        measured_scenarios,
        shapley_page,
        write_shapley_figure,
    )

    check_places(out=out)
    check_figures(figure=figure)
    with shown_progress() as advance:
        found = measured_scenarios(progress=advance)
    text = shapley_page(found, figure.name)
    if check:
        check_page(out, text, "the experiment gives: run fltheory reproduce shapley")
        return
    write_shapley_figure(found, figure)
    write_whole(out, text)
    tell_written(figure)
    tell_written(out)
