"""``fltheory reproduce bias``."""

from __future__ import annotations

from fltheory.commands.shared.options import PAGES, Check, FurtherFigure, PageFile
from fltheory.commands.shared.written_files import (
    check_figures,
    check_page,
    check_places,
    tell_written,
)
from fltheory.long_work.progress import shown_progress


def command(
    out: PageFile = PAGES / "bias.md",
    figure: FurtherFigure = PAGES / "bias.svg",
    check: Check = False,
) -> None:
    """Make the table of every algorithm's limit under uneven participation."""
    from fltheory.files.whole_file import write_whole
    from fltheory.reproduce.bias_report import bias_page, write_bias_figure
    from fltheory.reproduce.participation_bias import Effort, bias_table

    check_places(out=out)
    check_figures(figure=figure)
    effort = Effort()
    with shown_progress() as advance:
        cells = list(bias_table(effort, progress=advance))
    page = bias_page(cells, effort, None if figure is None else figure.name)
    if check:
        check_page(out, page, "the algorithms give: run fltheory reproduce bias")
        return
    if figure is not None:
        write_bias_figure(cells, figure)
    write_whole(out, page)
    tell_written(out)
