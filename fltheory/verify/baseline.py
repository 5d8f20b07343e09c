"""Recorded verdicts and ratios, and the comparison of new ones with them.

A baseline is this code's own earlier output. It shows what has changed; it proves nothing.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from fltheory.claims.statement import Statement
from fltheory.evidence.verdict import Grade
from fltheory.files.csv_text import csv_text, read_text
from fltheory.files.read_file import text_of
from fltheory.files.whole_file import write_whole
from fltheory.validation import shown
from fltheory.verify.runs import Cell, CellKey, Record

COLUMNS = ("theorem", "reading", "regime", "outcome", "ratio", "evidence")
_WITHOUT_EVIDENCE = COLUMNS[:-1]
_EXACT_DRIFT = 1e-6
_PACKAGE = Path(__file__).parents[1]
_RECORDED = (
    _PACKAGE / "recorded_verdicts.csv",
    _PACKAGE.parent / "verification" / "baseline.csv",
)


Baseline: TypeAlias = Mapping[CellKey, Record]


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file, or a table that ``fltheory verify --csv`` wrote.

    Raises
    ------
    ValueError
        If the file is neither. The message names the line.
    """
    records: dict[CellKey, Record] = {}
    text = text_of("baseline must be an existing file (--record creates it)", path)
    with io.StringIO(text, newline="") as file:
        reader = csv.reader(file)
        header = tuple(next(reader, ()))
        columns = _columns(header)
        if columns is None:
            raise ValueError(
                f"{path}: the header must be {','.join(_WITHOUT_EVIDENCE)} (and evidence, if it is "
                f"recorded), or the header of a verdict table, got {shown(header)}"
            )
        for line, row in enumerate(reader, start=2):
            try:
                if len(row) != len(header):
                    raise ValueError("the row's length differs from the header's")
                cells = (read_text(row[i]) for i in columns)
                theorem, reading, regime, outcome, ratio, *evidence = cells
                grade = evidence[0] if evidence else ""
                records[theorem, reading, regime] = Record(outcome, float(ratio), grade)
            except ValueError as error:
                raise ValueError(
                    f"{path}, line {line}: not a recorded cell: {shown(row)}"
                ) from error
    return records


def _columns(header: Sequence[str]) -> list[int] | None:
    """Return the indices of a record's columns; None if the file does not have them."""
    if tuple(header) in (COLUMNS, _WITHOUT_EVIDENCE):
        return list(range(len(header)))
    # A table of verdicts has further columns, and a different name for the grade of evidence.
    names = (*_WITHOUT_EVIDENCE, "evidence_grade")
    return [header.index(name) for name in names] if set(names) <= set(header) else None


def write_baseline(path: Path, records: Baseline) -> None:
    """Write a baseline file; if writing fails, leave the old file as it was."""
    rows = (
        (*key, record.outcome, f"{record.ratio:.9g}", record.evidence)
        for key, record in sorted(records.items())
    )
    write_whole(path, csv_text([COLUMNS, *rows]))


def recorded_outcomes(statement: Statement) -> dict[str, str] | None:
    """Return the recorded outcome of every regime of a paper's statement.

    Return None if a regime has no record, as is the case for users' own statements, or if the file
    of records is missing. That file is installed with the package.
    """
    path = next((path for path in _RECORDED if path.is_file()), None)
    if path is None or not statement.regimes:
        return None
    records = read_baseline(path)
    keys = {name: (statement.id, statement.reading, name) for name in statement.regimes}
    if not records.keys() >= set(keys.values()):
        return None
    return {name: records[key].outcome for name, key in keys.items()}


def departure(cell: Cell, baseline: Baseline) -> str | None:
    """Return a message that says how, and how far, a cell differs from its record, or None."""
    record = baseline.get(cell.key)
    if record is None:
        return f"{cell.name}: not recorded"
    now = cell.record
    if now.outcome != record.outcome:
        return (
            f"{cell.name}: the verdict changed from {record.outcome} to {now.outcome}, "
            f"the ratio from {record.ratio:.9g} to {now.ratio:.9g}"
        )
    if record.evidence not in ("", now.evidence):
        return f"{cell.name}: the evidence changed from {record.evidence} to {now.evidence}"
    drift, allowed = _drift(now.ratio, record.ratio), _allowed_drift(cell)
    if drift > allowed:
        return (
            f"{cell.name}: the ratio drifted from {record.ratio:.9g} to {now.ratio:.9g}, "
            f"by {drift:.3g} of its size (allowed: {allowed:.3g})"
        )
    return None


def verdict_changed(cell: Cell, baseline: Baseline) -> bool:
    """Whether the cell's verdict differs from the recorded one."""
    record = baseline.get(cell.key)
    return record is not None and record.outcome != cell.verdict.outcome.name


def _drift(ratio: float, recorded: float) -> float:
    if ratio == recorded or (math.isnan(ratio) and math.isnan(recorded)):
        return 0.0
    if not (math.isfinite(ratio) and math.isfinite(recorded)):
        return math.inf
    return abs(ratio - recorded) / max(abs(recorded), abs(ratio))


def _allowed_drift(cell: Cell) -> float:
    """Return the allowed drift: rounding error if exact, the interval's width if sampled."""
    verdict = cell.verdict
    if verdict.evidence.grade is not Grade.STATISTICAL or verdict.truth == 0:
        return _EXACT_DRIFT
    return max(_EXACT_DRIFT, 2 * verdict.evidence.error / abs(verdict.truth))
