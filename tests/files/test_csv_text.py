"""CSV of which a spreadsheet computes nothing, and which is read back as it was."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fltheory
from fltheory.advice.gradients_file import read_gradients
from fltheory.files.csv_text import csv_text, read_text
from fltheory.logs import read_log, write_log
from fltheory.logs.availability_log import AvailabilityLog
from fltheory.verify.baseline import read_baseline, write_baseline
from fltheory.verify.runs import Record
from fltheory.weights import for_clients
from fltheory.weights.sizes_file import read_sizes

NAMES = ("=1+1", "+49 30", "-x", "@SUM(A1)", "'=x", "-0.5", "it's", '=HYPERLINK("x,y")', "ann")
SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")


@given(
    st.lists(st.lists(st.text(alphabet="'=+-@\t\r\n,\"a1.", max_size=6), min_size=2, max_size=3))
)
def test_text_is_read_back_as_it_was_and_is_no_formula(rows: list[list[str]]) -> None:
    found = list(csv.reader(io.StringIO(csv_text(rows), newline="")))
    assert [[read_text(cell) for cell in row] for row in found] == rows
    for cell in (cell for row in found for cell in row if cell.startswith(SIGNS)):
        float(cell)


def test_numbers_stay_numbers() -> None:
    row = (-0.5, np.float32(-0.1), -3, "-0.5", "-inf", -np.inf, None)
    assert csv_text([row]) == "-0.5,-0.1,-3,-0.5,-inf,-inf,\n"


def test_no_file_is_written_otherwise() -> None:
    package = Path(fltheory.__file__).parent
    words = ("csv.writer", "DictWriter", "to_csv(", "savetxt(")
    writing = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in words)
    ]
    assert writing == []


def test_clients_keep_their_names_from_file_to_file(tmp_path: Path) -> None:
    """A log is drawn, read, weighed with sizes, and measured by gradients."""
    path = tmp_path / "file.csv"
    masks = np.tile(np.eye(len(NAMES), dtype=bool), (2, 1))
    write_log(path, AvailabilityLog.from_masks(masks, NAMES))
    log = read_log(path)
    assert log.clients == NAMES
    path.write_text(csv_text([("round", *NAMES), *((r, *m) for r, m in enumerate(masks * 1))]))
    assert read_log(path).clients == NAMES
    path.write_text(for_clients(NAMES, masks.mean(axis=0)).as_csv())
    weights = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [read_text(row["client"]) for row in weights] == list(NAMES)
    path.write_text(csv_text([("client", "size"), *((name, 2) for name in NAMES)]))
    sized, sizes = read_sizes(path, log)
    assert (sized.clients, sizes.tolist()) == (NAMES, [2.0] * len(NAMES))
    path.write_text(csv_text([("client", "point", 0), *((name, "-p", -1) for name in NAMES * 2)]))
    found = read_gradients(path, NAMES)
    assert (found.clients, found.points) == (NAMES, ("-p",))


@pytest.mark.parametrize("regime", NAMES)
def test_a_record_is_found_again_by_its_regime(tmp_path: Path, regime: str) -> None:
    records = {("my/1", "printed", regime): Record("HOLDS", -0.5, "exact")}
    write_baseline(tmp_path / "b.csv", records)
    assert read_baseline(tmp_path / "b.csv") == records
