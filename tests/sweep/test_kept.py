"""Work whose results are rows of a store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from fltheory.sweep import Store
from fltheory.sweep.cell import Row, Task, WorkCell, row_of
from fltheory.sweep.kept import KeptWork
from fltheory.verify.runs import Record


@dataclass(frozen=True)
class Squares(Task):
    """Squares numbers, but not 13."""

    def rows(self) -> list[Row]:
        numbers = [cell.setting["number"] for cell in self.cells]
        if 13 in numbers:
            raise LookupError("unlucky")
        return [
            row_of(cell, Record("SQUARED", result=str(number**2)), 0.5)
            for cell, number in zip(self.cells, numbers, strict=True)
        ]


def squares(*numbers: int) -> Squares:
    cells = (WorkCell("own/1", "printed", {"number": number}, kind="square") for number in numbers)
    return Squares(tuple(cells), ())


def test_rows_come_in_order_and_only_what_is_missing_is_worked_out(tmp_path: Path) -> None:
    told: list[tuple[float, float]] = []
    with Store(tmp_path / "store.db", create=True) as store, ThreadPoolExecutor(2) as threads:
        first = KeptWork(store, processes=1).rows([squares(3, 1)])
        assert [row.result for row in first] == ["9", "1"]
        assert (first[0].kind, first[0].setting) == ("square", '{"number": 3}')
        kept = KeptWork(store, executor=threads)
        rows = kept.rows(
            [squares(2, 1), squares(3)], lambda done, total, name: told.append((done, total))
        )
        assert [row.result for row in rows] == ["4", "1", "9"]
        assert len(store) == len(kept.keys) == 3
    assert told[-1] == (3, 3)


def test_what_could_not_be_worked_out_is_said_and_the_rest_kept(tmp_path: Path) -> None:
    with Store(tmp_path / "store.db", create=True) as store:
        with pytest.raises(ValueError, match=r"^1 cells are in .*1 more could not .*unlucky"):
            KeptWork(store, processes=1).rows([squares(13), squares(2)])
        assert len(store) == 1
