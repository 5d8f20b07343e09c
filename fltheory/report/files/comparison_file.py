"""Statements side by side on one setting, as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from fltheory.files.whole_file import write_whole
from fltheory.report.files.made_by import MadeBy
from fltheory.report.files.verdict_file import VERSION, cell_document
from fltheory.verify.runs import cell_of
from fltheory.verify.side_by_side import SideBySide


def write_comparison(path: Path, found: SideBySide, made_by: MadeBy) -> None:
    """Write verdicts in the form of a file of verdicts, and why other statements are silent."""
    cells = [
        cell_of(answer.statement, path.stem, answer.verdict)
        for answer in found.answers
        if answer.verdict is not None
    ]
    document = {
        "version": VERSION,
        "made_by": made_by.as_dict(),
        "cells": [cell_document(cell) for cell in cells],
        "silent": [
            {"theorem": one.statement.id, "reading": one.statement.reading, "reason": one.reason}
            for one in found.silent
        ],
        "provable": found.provable,
        "why_not_provable": found.why_not_provable,
    }
    write_whole(path, json.dumps(document, indent=2, allow_nan=False) + "\n")
