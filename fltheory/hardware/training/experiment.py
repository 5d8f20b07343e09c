"""An experiment file: the runs behind each cell of a paper's table, and the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.files.read_file import toml_in, toml_of
from fltheory.files.tables import Table, checked_table, made, merged
from fltheory.hardware.training.run import FIGURES
from fltheory.hardware.training.settings import RunSettings, run_settings

_OWN_KEYS = ("title", "source", "seeds", "figure", "notes", "columns", "rows")


@dataclass(frozen=True)
class ExperimentCell:
    """One cell of the table.

    Attributes
    ----------
    settings : RunSettings
    baseline : RunSettings or None
        If given, the cell holds the figure minus the baseline's, seed by seed.
    figure : str
        The figure of a run that the cell shows, one of `FIGURES`.
    rounds : tuple of int or None
        The rounds after which measurements are used, or None for all. Round 0 is before training.
    paper : str
        The paper's figure, or empty if the paper has none.
    """

    settings: RunSettings
    baseline: RunSettings | None
    figure: str
    rounds: tuple[int, ...] | None
    paper: str


@dataclass(frozen=True)
class Experiment:
    """A table of a paper, to be reproduced.

    Attributes
    ----------
    title, source : str
    seeds : tuple of int
    figure : str
        The figure of a run that is compared, unless a column sets its own.
    notes : tuple of str
        Details that the paper leaves open, and the choices made here.
    columns : tuple of str
        Headings.
    rows : tuple of (str, tuple of ExperimentCell)
        Headings and cells.
    """

    title: str
    source: str
    seeds: tuple[int, ...]
    figure: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ExperimentCell, ...]], ...]

    @property
    def runs(self) -> tuple[RunSettings, ...]:
        """Every distinct setting, including baselines, in the order of the table."""
        cells = [cell for _, row in self.rows for cell in row]
        wanted = [run for cell in cells for run in (cell.baseline, cell.settings) if run]
        return tuple({run.key(0): run for run in wanted}.values())


@dataclass(frozen=True)
class _Column:
    label: str
    set: Mapping[str, Any] | None = None
    figure: str | None = None
    rounds: Sequence[int] | None = None

    def __post_init__(self) -> None:
        validation.text("label", self.label)
        if self.rounds is not None:
            _check_rounds(self.rounds)
        if self.set is not None:
            checked_table(self.set, "set")
        if self.figure is not None:
            validation.one_of("figure", self.figure, tuple(FIGURES))


@dataclass(frozen=True)
class _TableRow:
    label: str
    set: Mapping[str, Any] | None = None
    less: Mapping[str, Any] | None = None
    paper: Sequence[float | str] = ()

    def __post_init__(self) -> None:
        validation.text("label", self.label)
        for name in ("set", "less"):
            if getattr(self, name) is not None:
                checked_table(getattr(self, name), name)
        if not isinstance(self.paper, list | tuple):
            raise ValueError(f"paper must be a list, got {self.paper!r}")
        for entry in self.paper:
            if isinstance(entry, bool) or not isinstance(entry, int | float | str):
                raise ValueError(f"paper must hold numbers and strings, got {entry!r}")


@dataclass(frozen=True)
class _Heading:
    title: str
    source: str
    seeds: Sequence[int]
    figure: str
    columns: Sequence[Table]
    rows: Sequence[Table]
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("title", "source"):
            validation.text(name, getattr(self, name))
        for name in ("seeds", "columns", "rows", "notes"):
            entries = getattr(self, name)
            if not isinstance(entries, list | tuple) or not (entries or name == "notes"):
                raise ValueError(f"{name} must be a list with entries, got {entries!r}")
        for seed in self.seeds:
            validation.seed_number("seeds", seed)
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds must differ, got {list(self.seeds)}")
        validation.one_of("figure", self.figure, tuple(FIGURES))
        for note in self.notes:
            validation.text("notes", note)


@checks_kinds
def read_experiment(path: Path | str, changes: Sequence[str] = ()) -> Experiment:
    """Read an experiment from a TOML file.

    Parameters
    ----------
    path : path
    changes : sequence of str
        Entries ``key=value`` with a dotted key and a value in TOML, e.g. ``training.rounds=10``,
        which change values for the whole table.

    Raises
    ------
    ValueError
        If there is no such file, it is not TOML, or an entry is unknown, missing or out of range.
        The message begins with the file's name.

    Examples
    --------
    >>> read_experiment("experiments/digits.toml", ["training.rounds=10"]).title[:13]
    'Test accuracy'
    """
    document = toml_of("file must be an existing file", path)
    for change in changes:
        document = merged(document, _parsed(change))
    try:
        return experiment(document)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def experiment(document: Table) -> Experiment:
    """Return the experiment that a document describes; raise ValueError if it is invalid."""
    own = {key: value for key, value in document.items() if key in _OWN_KEYS}
    base = {key: value for key, value in document.items() if key not in _OWN_KEYS}
    heading = made(_Heading, own, "")
    columns = [
        made(_Column, checked_table(entry, where), where)
        for where, entry in _numbered("columns", heading.columns)
    ]
    labels = [column.label for column in columns]
    if len(set(labels)) < len(labels):
        raise ValueError(f"columns must have labels that differ, got {', '.join(labels)}")
    rows = []
    for where, entry in _numbered("rows", heading.rows):
        row = made(_TableRow, checked_table(entry, where), where)
        if row.paper and len(row.paper) != len(columns):
            raise ValueError(
                f"{where}.paper must have {len(columns)} entries, got {len(row.paper)}"
            )
        rows.append((row.label, _cells(base, row, columns, heading.figure, where)))
    return Experiment(
        heading.title,
        heading.source,
        tuple(heading.seeds),
        heading.figure,
        tuple(heading.notes),
        tuple(labels),
        tuple(rows),
    )


def _cells(
    base: Table, row: _TableRow, columns: Sequence[_Column], figure: str, where: str
) -> tuple[ExperimentCell, ...]:
    cells = []
    papers = row.paper or [""] * len(columns)
    for column, paper in zip(columns, papers, strict=True):
        table = merged(merged(base, row.set or {}), column.set or {})
        try:
            settings = run_settings(table)
            less = None if row.less is None else run_settings(merged(table, row.less))
        except ValueError as error:
            raise ValueError(f"{error} (in {where}, column {column.label!r})") from error
        rounds = None if column.rounds is None else tuple(column.rounds)
        for run in (settings, less):
            if run is not None and rounds is not None:
                _check_measured(rounds, run, f"column {column.label!r}")
        cells.append(ExperimentCell(settings, less, column.figure or figure, rounds, _shown(paper)))
    return tuple(cells)


def _check_rounds(rounds: Any) -> None:
    if not isinstance(rounds, list | tuple) or not rounds:
        raise ValueError(f"rounds must be a list of whole numbers, got {rounds!r}")
    for number in rounds:
        validation.whole_number("rounds", number, at_least=0)
    if sorted(set(rounds)) != list(rounds):
        raise ValueError(f"rounds must be increasing, got {list(rounds)}")


def _check_measured(rounds: Sequence[int], run: RunSettings, where: str) -> None:
    last, every = run.training.rounds, run.training.evaluate_every
    for number in rounds:
        if number > last or (number % every and number != last):
            raise ValueError(
                f"rounds must be among those after which models are measured, every {every} of "
                f"{last}, got {number} (in {where})"
            )


def _shown(paper: float | str) -> str:
    return paper if isinstance(paper, str) else f"{paper:g}"


def _numbered(name: str, entries: Sequence[Table]) -> list[tuple[str, Table]]:
    return [(f"{name}[{place}]", entry) for place, entry in enumerate(entries, start=1)]


def _parsed(change: str) -> dict[str, Any]:
    try:
        document = toml_in("set", change)
    except ValueError as error:
        raise ValueError(
            f"set must be key=value in TOML, got {validation.shown(change)}: {error}"
        ) from error
    if not document:
        raise ValueError(f"set must be key=value in TOML, got {validation.shown(change)}")
    return document
