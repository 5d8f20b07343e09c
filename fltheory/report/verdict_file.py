"""Verdicts as JSON and as CSV, with what made them: see docs/verdict-files.md.

Numbers that JSON cannot hold are the strings "inf", "-inf" and "nan"; CSV has the same ones.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fltheory.report.made_by import MadeBy
from fltheory.report.whole_file import write_whole
from fltheory.verify import Cell, HypothesisCheck

VERSION = 1
_EVIDENCE = ("grade", "error", "error_probability", "replicas", "scope")


def verdict_document(cells: Sequence[Cell], made_by: MadeBy) -> Mapping[str, Any]:
    """Return the document that `write_verdicts` writes."""
    return {
        "version": VERSION,
        "made_by": made_by.as_dict(),
        "cells": [_cell(cell) for cell in cells],
    }


def write_verdicts(path: Path, document: Mapping[str, Any]) -> None:
    """Write the document whole or not at all: an interrupted run leaves an older file as is."""
    write_whole(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def verdict_csv(cells: Sequence[Cell], made_by: MadeBy) -> str:
    """Return the verdicts as CSV, a row a cell, what made them in the last columns of each."""
    made = {f"made_by_{name}": value for name, value in made_by.as_dict().items()}
    rows = [{**_flat(_cell(cell)), **made} for cell in cells]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*CSV_COLUMNS, *made], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


CSV_COLUMNS = (
    *("theorem", "reading", "regime", "outcome", "is_rate", "direction"),
    *("truth", "bound", "ratio"),
    *(f"evidence_{name}" for name in _EVIDENCE),
    *("failed", "detail"),
)


def _flat(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell of the document as one row: hypotheses only where they failed."""
    evidence = {f"evidence_{name}": cell["evidence"][name] for name in _EVIDENCE}
    flat = {**cell, **evidence, "failed": "; ".join(cell["failed"])}
    flat["is_rate"] = json.dumps(cell["is_rate"])
    return {name: flat[name] for name in CSV_COLUMNS}


def _cell(cell: Cell) -> dict[str, Any]:
    verdict = cell.verdict
    evidence = verdict.evidence
    return {
        "theorem": verdict.theorem,
        "reading": verdict.reading,
        "regime": cell.regime,
        "outcome": verdict.outcome.name,
        "is_rate": verdict.is_rate,
        "direction": verdict.direction,
        "truth": _number(verdict.truth),
        "bound": _number(verdict.bound),
        "ratio": _number(verdict.ratio),
        "evidence": {
            "grade": evidence.grade.name.lower(),
            "error": _number(evidence.error),
            "error_probability": evidence.error_probability,
            "replicas": evidence.replicas,
            "scope": evidence.scope,
        },
        "hypotheses": [_hypothesis(check) for check in verdict.hypotheses],
        "failed": [check.failure for check in verdict.failed],
        "detail": verdict.detail,
    }


def _hypothesis(check: HypothesisCheck) -> dict[str, Any]:
    return {
        "name": check.name,
        "condition": check.condition,
        "source": check.source,
        "holds": check.holds,
        "margin": _number(check.margin),
        "at_round": check.at_round,
    }


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
