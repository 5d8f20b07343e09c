"""Verdicts as JSON and as CSV, with versions and seeds; see docs/verdict-files.md.

Numbers that JSON cannot represent become the strings "inf", "-inf" and "nan", and CSV uses the same
strings.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fltheory import __version__
from fltheory.evidence.verdict import Evidence, Grade, HypothesisCheck
from fltheory.files.csv_text import csv_text
from fltheory.files.read_file import json_of
from fltheory.files.whole_file import write_whole
from fltheory.grammar.assertion import Relation
from fltheory.theorems import get
from fltheory.verify import Outcome, Verdict
from fltheory.verify.comparison import Answer, OwnSteps, SideBySide
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY, Cell, cell_of

_PACKAGES = ("numpy", "scipy", "sympy")


@dataclass(frozen=True)
class MadeBy:
    """The circumstances in which verdicts were made.

    Attributes
    ----------
    seed, replicas : int
        The seed and the number of runs for everything that was sampled.
    family_error_probability : float
        Probability that at least one sampled interval of the whole table misses the truth.
    """

    seed: int = 0
    replicas: int = 2000
    family_error_probability: float = FAMILY_ERROR_PROBABILITY

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of this package, of Python, and of the packages used for computing."""
        return {
            "fltheory": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        }

    def as_dict(self) -> dict[str, str | int | float]:
        """Return all entries, with versions first."""
        return {**self.versions, **vars(self)}


VERSION = 3
_NUMBERS = ("margin", "left", "right")
_EVIDENCE = ("grade", "error", "error_probability", "replicas", "scope")


def write_verdicts(
    path: Path, cells: Sequence[Cell], made_by: MadeBy, further: Mapping[str, Any] | None = None
) -> None:
    """Write cells and further entries; if writing fails, leave an existing file as it was."""
    document = {
        "version": VERSION,
        "made_by": made_by.as_dict(),
        "cells": [cell_document(cell) for cell in cells],
        **(further or {}),
    }
    write_whole(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def read_verdicts(path: Path, made_by: MadeBy) -> list[Cell]:
    """Read a file that `write_verdicts` made with the same versions and settings.

    Curves and the ends of asymmetric intervals are not in the file. The caller must make sure that
    the package's code has not changed since.

    Raises
    ------
    ValueError
        If it is not such a file, or was made with different versions, a different seed or a
        different sample size.
    """
    try:
        document = json_of("verdicts must be an existing file", path)
        known = document["version"], document["made_by"]
        cells = [read_cell(entry) for entry in document["cells"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ValueError(
            f"verdicts must be a file that fltheory verify wrote, got {str(path)!r}"
        ) from error
    if known != (VERSION, made_by.as_dict()):
        raise ValueError(
            f"verdicts must be made by {made_by.as_dict()}, got {known[1]} in {str(path)!r}"
        )
    return cells


def verdict_csv(cells: Sequence[Cell], made_by: MadeBy) -> str:
    """Return the verdicts as CSV, one row per cell, with versions and seeds in the last columns."""
    made = {f"made_by_{name}": value for name, value in made_by.as_dict().items()}
    rows = ((*_flat(cell_document(cell)).values(), *made.values()) for cell in cells)
    return csv_text([(*CSV_COLUMNS, *made), *rows])


CSV_COLUMNS = (
    *("theorem", "reading", "kind", "regime", "outcome", "scope", "weight", "is_rate", "relation"),
    *("truth", "bound", "ratio"),
    *(f"evidence_{name}" for name in _EVIDENCE),
    *("failed", "why", "detail"),
)


def _flat(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell of the document as one row, with only failed hypotheses."""
    evidence = {f"evidence_{name}": cell["evidence"][name] for name in _EVIDENCE}
    joined = {name: "; ".join(cell[name]) for name in ("failed", "why")}
    flat = {**cell, **evidence, **joined}
    flat["is_rate"] = json.dumps(cell["is_rate"])
    return {name: flat[name] for name in CSV_COLUMNS}


def cell_document(cell: Cell) -> dict[str, Any]:
    """Return a cell's entry in a file of verdicts."""
    verdict = cell.verdict
    evidence = verdict.evidence
    return {
        "theorem": verdict.theorem,
        "reading": verdict.reading,
        "kind": cell.kind.value,
        "regime": cell.regime,
        "outcome": verdict.outcome.name,
        "scope": verdict.scope.value,
        "weight": cell.weight.label if cell.weight else "",
        "why": [fault.why for fault in cell.faults],
        "is_rate": verdict.is_rate,
        "relation": verdict.relation,
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
        "left": _number(check.left),
        "relation": check.relation,
        "right": _number(check.right),
    }


def read_cell(entry: Mapping[str, Any]) -> Cell:
    """Return the cell of an entry that `cell_document` made."""
    evidence = entry["evidence"]
    return cell_of(
        get(entry["theorem"], entry["reading"]),
        entry["regime"],
        Verdict(
            theorem=entry["theorem"],
            reading=entry["reading"],
            outcome=Outcome[entry["outcome"]],
            evidence=Evidence(
                grade=Grade[evidence["grade"].upper()],
                error=float(evidence["error"]),
                error_probability=evidence["error_probability"],
                replicas=evidence["replicas"],
                scope=evidence["scope"],
            ),
            truth=float(entry["truth"]),
            bound=float(entry["bound"]),
            hypotheses=tuple(
                HypothesisCheck(**{**check, **{name: float(check[name]) for name in _NUMBERS}})
                for check in entry["hypotheses"]
            ),
            detail=entry["detail"],
            relation=Relation(entry["relation"]),
        ),
    )


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def write_own_steps(path: Path, found: OwnSteps, made_by: MadeBy) -> None:
    """Write theorems at their own steps: verdicts, and both sides in the measure over rounds."""
    cells = [cell_of(one.statements[0], path.stem, one.verdict) for one in found.bounds]
    over_rounds = [
        {
            "theorem": one.statements[0].id,
            "readings": [statement.reading for statement in one.statements],
            "brought_by": one.brought_by,
            **{
                name: [_number(value) for value in getattr(one, name).tolist()]
                for name in ("rounds", "truth", "bound", "provable")
            },
            "why_not_provable": one.why_not_provable,
        }
        for one in found.bounds
    ]
    silent = [_silent(one) for one in found.silent]
    further = {"measure": found.measure, "over_rounds": over_rounds, "silent": silent}
    write_verdicts(path, cells, made_by, further)


def _silent(answer: Answer) -> dict[str, str]:
    statement = answer.statement
    return {"theorem": statement.id, "reading": statement.reading, "reason": answer.reason}


def write_comparison(path: Path, found: SideBySide, made_by: MadeBy) -> None:
    """Write a file of verdicts that also says why the other statements do not apply."""
    cells = [
        cell_of(answer.statement, path.stem, answer.verdict)
        for answer in found.answers
        if answer.verdict is not None
    ]
    further = {
        "silent": [_silent(one) for one in found.silent],
        "provable": found.provable,
        "why_not_provable": found.why_not_provable,
    }
    write_verdicts(path, cells, made_by, further)
