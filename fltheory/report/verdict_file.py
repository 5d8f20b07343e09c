"""Verdicts as a JSON file, with what made them.

Schema: ``made_by`` holds versions, seed and error probability; ``cells`` a list of objects
with the columns of the terminal's table and every hypothesis with its margin. Numbers that
JSON cannot hold are the strings "inf", "-inf" and "nan".
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fltheory import __version__
from fltheory.verify import Cell, HypothesisCheck

_PACKAGES = ("numpy", "scipy", "sympy")


def verdict_document(
    cells: Sequence[Cell], *, seed: int, replicas: int, family_error_probability: float
) -> Mapping[str, Any]:
    """Return the document that `write_verdicts` writes."""
    return {
        "made_by": {
            "fltheory": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
            "seed": seed,
            "replicas": replicas,
            "family_error_probability": family_error_probability,
        },
        "cells": [_cell(cell) for cell in cells],
    }


def write_verdicts(path: Path, document: Mapping[str, Any]) -> None:
    """Write the document whole or not at all: an interrupted run leaves an older file as is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(
            json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


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
