"""Arguments and options of several commands; a name means the same in all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


@dataclass(frozen=True)
class FileUse:
    """How a command uses the file that a parameter names.

    Every parameter that names a file is annotated with one, so that no command overwrites its
    input: `with_inputs_kept` compares them before the command runs.

    Attributes
    ----------
    reads : bool
    writes : bool or str
        Whether the file is written, or the flag without which it is not. A file from which work is
        resumed is also read.
    files : str
        For an output folder, a pattern of the files written in it.
    endings : tuple of str
        Allowed suffixes of a written file; any if empty.
    """

    reads: bool = False
    writes: bool | str = False
    files: str = ""
    endings: tuple[str, ...] = ()


READ = FileUse(reads=True)
WRITTEN = FileUse(writes=True)
UPDATED = FileUse(reads=True, writes=True)


def written(*endings: str) -> FileUse:
    """Return the use of a written file with one of these suffixes."""
    return FileUse(writes=True, endings=endings)


TheoremId: TypeAlias = Annotated[
    str, typer.Argument(help="Id of a theorem, e.g. sa-fl/5, or an unambiguous prefix.")
]
Load: TypeAlias = Annotated[
    list[Path] | None,
    READ,
    typer.Option(help="A Python file with your own theorems, in its STATEMENTS."),
]
Rocq: TypeAlias = Annotated[
    Path | None,
    written(".v"),
    typer.Option(help="Where to write the proof as a theorem that Rocq (Coq) checks (.v)."),
]
TheoremIds: TypeAlias = Annotated[
    list[str] | None, typer.Argument(help="Ids or prefixes of ids, or atlas; all by default.")
]
Reading: TypeAlias = Annotated[
    str | None, typer.Option(help="Which reading, e.g. printed or derived; all by default.")
]
PrintedReading: TypeAlias = Annotated[
    str, typer.Option(help="Which reading, e.g. printed or derived.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Random seed.")]

# A command's main output goes to --out; additional outputs are named after their kind.
FigureFile: TypeAlias = Annotated[
    Path | None,
    written(".png", ".svg"),
    typer.Option(help="Write a figure to this file: .png or .svg."),
]
Changes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set a parameter or an option: name=value; repeatable."),
]
LogFile: TypeAlias = Annotated[
    Path, READ, typer.Argument(help="A log of who was online: CSV (also .gz) or Parquet.")
]
RoundLength: TypeAlias = Annotated[
    float | None,
    typer.Option(help="How long a round lasts, in the log's unit of time; 1 by default."),
]

Columns: TypeAlias = Annotated[
    str | None,
    typer.Option(help="What the log's columns are called, e.g. client=user,from=login,to=logout."),
]
SizesFile: TypeAlias = Annotated[
    Path | None,
    READ,
    typer.Option(
        help=(
            "CSV client,size: each client's weight, including clients never seen; equal by default."
        )
    ),
]
# Assumptions about the clients of a log.
NOISE_MEANS = "Gradient noise relative to the gradient at the start (only if FILE is a log)"
DISSIMILARITY_MEANS = "Gamma, in units of L ||w_0 - w*||^2 (only if FILE is a log)"
CONDITION_MEANS = "L / mu (only if FILE is a log)"
ResultsFile: TypeAlias = Annotated[
    Path, UPDATED, typer.Option(help="Results database; rerun the same command to resume.")
]
StoreFile: TypeAlias = Annotated[
    Path | None,
    UPDATED,
    typer.Option(
        help="Results database of every cell; rerun to resume. See fltheory results.",
    ),
]
DaskAddress: TypeAlias = Annotated[
    str | None, typer.Option(help="Run on a Dask cluster: its scheduler, e.g. tcp://HOST:8786.")
]
PageFile: TypeAlias = Annotated[Path, WRITTEN, typer.Option(help="Where to write the page.")]
VerdictsAsJson: TypeAlias = Annotated[
    Path | None, written(".json"), typer.Option(help="Write the verdicts as JSON to this file.")
]
FurtherPage: TypeAlias = Annotated[
    Path | None, WRITTEN, typer.Option(help="Write a page to this file.")
]
Check: TypeAlias = Annotated[bool, typer.Option(help="Write nothing; exit 1 if it differs.")]

_PACKAGE = Path(__file__).parents[2]


def pair(option: str) -> Callable[[str], tuple[str, str]]:
    """Return a parser of an option's ``name=value``."""

    def split(text: str) -> tuple[str, str]:
        name, sign, value = text.partition("=")
        if not (sign and name and value):
            raise ValueError(f"{option} must be name=value, got {text!r}")
        return name.strip(), value.strip()

    return split


def kept(name: str) -> Path:
    """Return a folder of kept certificates, of the repository or of the wheel."""
    places = (
        Path("verification") / name,
        _PACKAGE / "kept" / name,
        _PACKAGE.parent / "verification" / name,
    )
    return next((place for place in places if place.is_dir()), places[0])


WITNESSES = kept("witnesses")
CERTIFICATES = kept("certificates")
# The folder of this project's pages: its documents, or elsewhere a folder of their own.
PAGES = Path("docs" if Path("mkdocs.yml").is_file() else "out")
