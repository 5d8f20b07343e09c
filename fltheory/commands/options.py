"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

TheoremId: TypeAlias = Annotated[str, typer.Argument(help="Id of a theorem, say sa-fl/5.")]
TheoremIds: TypeAlias = Annotated[
    list[str] | None, typer.Argument(help="Ids, or beginnings of ids; all by default.")
]
SampleSeed: TypeAlias = Annotated[int, typer.Option(help="Seed where sampled.")]

FigureFile: TypeAlias = Annotated[Path | None, typer.Option(help="Write the figure: .png or .svg.")]
ResultsFile: TypeAlias = Annotated[
    Path, typer.Option(help="Keep results in this file; resume from it if it exists.")
]
PageFile: TypeAlias = Annotated[Path, typer.Option(help="The page to write.")]
FurtherPage: TypeAlias = Annotated[Path | None, typer.Option(help="Write the page to this file.")]
Check: TypeAlias = Annotated[bool, typer.Option(help="Write nothing; exit 1 if it differs.")]

_PACKAGE = Path(__file__).parents[1]


def kept(name: str) -> Path:
    """Return a folder of kept certificates: the repository's, or what the wheel has of it."""
    places = (
        Path("verification") / name,
        _PACKAGE / "kept" / name,
        _PACKAGE.parent / "verification" / name,
    )
    return next((place for place in places if place.is_dir()), places[0])


WITNESSES = kept("witnesses")
CERTIFICATES = kept("certificates")
# Where pages of this project are made: among its documents, anywhere else in a folder of their own.
PAGES = Path("docs" if Path("mkdocs.yml").is_file() else "out")
