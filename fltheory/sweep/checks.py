"""Cells that are checks: statements on one setting, and the rows that they give."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fltheory.engines import Setting
from fltheory.engines.setting_file import setting_of
from fltheory.evidence.truths import Sampling
from fltheory.sweep.cell import Row, Task, WorkCell, row_of
from fltheory.theorems.registry import get
from fltheory.verify.runs import Record, record_of

IMPOSSIBLE = "IMPOSSIBLE"
"""The outcome where there is no such setting, or the statement does not speak of it."""

ERROR_PROBABILITY = 1e-9
"""Allowed for all sampled intervals of a cell together."""


@dataclass(frozen=True)
class Checks(Task):
    """Cells on one setting, which share its truth."""

    def rows(self) -> list[Row]:
        """Check the cells.

        An error that is neither bad input nor arithmetic is not caught: it says nothing of a cell.
        """
        setting: Setting | ValueError | None = None
        rows = []
        for cell in self.cells:
            begun = time.perf_counter()
            if setting is None:
                setting = _setting(cell.setting)
            found = _found(cell, setting)
            rows.append(row_of(cell, found, time.perf_counter() - begun))
        return rows


def _setting(document: Mapping[str, Any]) -> Setting | ValueError:
    try:
        return setting_of(document)
    except (ValueError, ArithmeticError, TypeError) as error:
        return ValueError(str(error))


def _found(cell: WorkCell, setting: Setting | ValueError) -> Record:
    """Return the verdict, or why there is none."""
    if isinstance(setting, ValueError):
        return Record(IMPOSSIBLE, why=str(setting))
    try:
        sampling = Sampling(cell.replicas, cell.seed, ERROR_PROBABILITY)
        return record_of(get(cell.statement, cell.reading).verdict(setting, sampling))
    except (ValueError, ArithmeticError) as error:
        return Record(IMPOSSIBLE, why=str(error))
