"""One paper's cells: its statements in all of their regimes, and what is recorded of them.

A paper's file needs no more than ::

    CELLS = PaperCells("sa-fl")

    @CELLS.each
    def test_verdict_and_ratio_are_as_recorded(statement, regime, as_recorded):
        as_recorded(CELLS, statement, regime)
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fltheory import theorems
from fltheory.engines import Setting
from fltheory.theorems import Statement
from fltheory.verify import Verdict, check
from fltheory.verify.baseline import Baseline, Record
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY, Cell, shared_settings_together


class PaperCells:
    """The registered statements whose ids begin alike, each in every one of its regimes.

    All sampled intervals of a paper's cells together miss with FAMILY_ERROR_PROBABILITY.
    """

    def __init__(self, beginning: str) -> None:
        self._beginning = beginning
        self.statements = [s for s in theorems.registered() if s.id.startswith(beginning)]
        self._pairs = shared_settings_together(
            [(statement, name) for statement in self.statements for name in statement.regimes]
        )

    @property
    def each(self) -> pytest.MarkDecorator:
        """A mark that runs a test on each cell: its ``statement`` and ``regime``."""
        ids = [f"{statement.id}-{statement.reading}-{name}" for statement, name in self._pairs]
        return pytest.mark.parametrize(("statement", "regime"), self._pairs, ids=ids)

    def verdict(self, statement: Statement, setting: Setting) -> Verdict:
        """Check as the cells are checked, so that truths are shared with them."""
        share = FAMILY_ERROR_PROBABILITY / len(self._pairs)
        return check(statement, setting, error_probability=share)

    def checked(self, statement: Statement, regime: str) -> Cell:
        """Return one cell."""
        return Cell(regime, self.verdict(statement, statement.regimes[regime].setting))

    def rows(self, record: Baseline) -> dict[tuple[str, str, str], Record]:
        """Return what is recorded of this paper, by (theorem, reading, regime)."""
        return {key: row for key, row in record.items() if key[0].startswith(self._beginning)}


Recorder = Callable[[PaperCells, Statement, str], Verdict]
