"""``fltheory reproduce findings``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.kept_cells import kept_in, tell_kept
from fltheory.commands.shared.options import (
    PAGES,
    READ,
    WITNESSES,
    Check,
    DaskAddress,
    PageFile,
    StoreFile,
)
from fltheory.commands.shared.written_files import check_page, check_places, tell_written
from fltheory.long_work.progress import shown_progress


def command(
    witnesses: Annotated[Path, READ, typer.Argument(help="Folder of certificates.")] = WITNESSES,
    out: PageFile = PAGES / "findings.md",
    budget: Annotated[int, typer.Option(help="Settings to try in each search.")] = 10_000,
    check: Check = False,
    verdicts: Annotated[
        Path | None,
        READ,
        typer.Option(help="Verdicts of fltheory verify --json, so that none is checked again."),
    ] = None,
    store: StoreFile = None,
    dask: DaskAddress = None,
) -> None:
    """Make the page of findings: certificates are checked, repairs and the rest searched."""
    from fltheory.files.whole_file import write_whole
    from fltheory.report.files.made_by import MadeBy
    from fltheory.report.files.verdict_file import read_verdicts
    from fltheory.reproduce.findings import findings

    check_places(out=out)
    paths = sorted(witnesses.glob("*.json"))
    if not paths:
        raise ValueError(f"witnesses must be a folder with certificates, got {str(witnesses)!r}")
    known = None if verdicts is None else read_verdicts(verdicts, MadeBy())
    with kept_in(store, dask) as kept:
        with shown_progress() as advance:
            page = findings(paths, witnesses, budget, verdicts=known, kept=kept, progress=advance)
        tell_kept(kept)
    if check:
        check_page(out, page, "the certificates say: run fltheory reproduce findings")
        return
    write_whole(out, page)
    tell_written(out)
