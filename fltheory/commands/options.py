"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

TheoremId: TypeAlias = Annotated[str, typer.Argument(help="Id of a theorem, say sa-fl/5.")]
TheoremIds: TypeAlias = Annotated[
    list[str] | None, typer.Argument(help="Ids, or beginnings of ids; all by default.")
]
SearchBudget: TypeAlias = Annotated[int, typer.Option(help="Settings to try in each search.")]
SampleSeed: TypeAlias = Annotated[int, typer.Option(help="Seed where sampled.")]

FigureFile: TypeAlias = Annotated[Path | None, typer.Option(help="Write the figure: .png or .svg.")]
ResultsFile: TypeAlias = Annotated[
    Path, typer.Option(help="Keep results in this file; resume from it if it exists.")
]
PageFile: TypeAlias = Annotated[Path, typer.Option(help="The page to write.")]
FurtherPage: TypeAlias = Annotated[Path | None, typer.Option(help="Write the page to this file.")]
Check: TypeAlias = Annotated[bool, typer.Option(help="Write nothing; exit 1 if it differs.")]

WITNESSES = Path("verification/witnesses")
CERTIFICATES = Path("verification/certificates")
