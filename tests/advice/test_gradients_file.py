"""Gradients as a file: what is read, and what is said of files that are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fltheory.advice.gradients_file import read_gradients

CLIENTS = ["ann", "bob", "cid", "dot"]
GOOD = [
    "client,point,x,y",
    ",start,0,0",
    ",late,1,2",
    *(f"{client},{point},{batch},1" for client in CLIENTS for point in ("start", "late")
      for batch in (1, 2)),
]  # fmt: skip


def written(folder: Path, lines: list[str]) -> Path:
    (folder / "gradients.csv").write_text("\n".join(lines))
    return folder / "gradients.csv"


def test_rows_are_put_in_order(tmp_path: Path) -> None:
    rows = [*GOOD[:3], *reversed(GOOD[3:])]
    found = read_gradients(written(tmp_path, rows), CLIENTS)
    assert found.clients == ("dot", "cid", "bob", "ann")
    assert found.points == ("start", "late")
    assert found.models is not None
    assert found.models.tolist() == [[0, 0], [1, 2]]
    np.testing.assert_array_equal(found.gradients[0][1], [[2, 1], [1, 1]])


def test_models_may_be_left_out(tmp_path: Path) -> None:
    found = read_gradients(written(tmp_path, [GOOD[0], *GOOD[3:]]), CLIENTS)
    assert found.models is None


@pytest.mark.parametrize(
    ("at", "line", "said"),
    [
        (0, "client,x,y", "line 1: the header must be client,point"),
        (0, "client,point", "line 1: the header must be client,point"),
        (4, "ann,start,1", "line 5: a row must have 4 fields, got 3"),
        (4, "eve,start,1,1", "line 5: client must be one of the log's, got 'eve'"),
        (4, "ann,,1,1", "line 5: point must be a name"),
        (4, "ann,start,1,one", "line 5: column 'y' must be a number below 1e100, got 'one'"),
        (4, "ann,start,nan,1", "line 5: column 'x' must be a number"),
        (4, "ann,start,1,1e200", "line 5: column 'y' must be a number"),
        (4, ",start,1,1", "line 5: the model at 'start' must be given once"),
        (4, "ann,late,1,1", "got 1 of 'ann' at 'start'"),
        (2, "ann,late,1,1", "models must be given at every point or at none, got none at 'late'"),
        (slice(7, None), [], "must come from at least three clients, got 1"),
    ],
)
def test_a_fault_is_said_with_its_line(tmp_path: Path, at, line, said: str) -> None:
    lines = list(GOOD)
    lines[at] = line
    with pytest.raises(ValueError, match=r"gradients\.csv: ") as error:
        read_gradients(written(tmp_path, lines), CLIENTS)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
