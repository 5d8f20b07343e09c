"""A cell, its key, and the files that travel with it."""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.files.user_file import run_file
from fltheory.sweep.cell import Checks, WorkCell, rows_of
from fltheory.sweep.design import design_of
from fltheory.theorems import registry
from tests.sweep.designs import small


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_files_of_ones_own_travel_with_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "sweep_of_mine.py"
    mine.write_text(
        "from dataclasses import replace\nfrom fltheory import theorems\n"
        "STATEMENTS = (replace(theorems.get('sa-fl/5'), id='sweep/1'),)\n"
    )
    theorems.load(mine)
    # An implementation that was checked for conformance is no file of theorems.
    other = tmp_path / "run_of_mine.py"
    other.write_text("def run(x0): ...\n")
    run_file(other, "file")
    files = tuple(sorted(registry.loaded_files().items()))
    assert "run_of_mine" not in dict(files)
    assert ("sweep_of_mine", mine.read_text()) in files
    (cell, *_) = design_of(small(statements=["sweep/1"], readings=None)).task(0, files).cells
    (here,) = rows_of(Checks((cell,), files))
    # Another process has not loaded it, or has another text of it.
    del registry._BY_NAME["sweep/1", "printed"]
    mine.unlink()
    monkeypatch.setitem(registry._LOADED, "sweep_of_mine", "older")
    (there,) = rows_of(Checks((cell,), files))
    assert astuple(replace(there, seconds=here.seconds)) == astuple(here)


def test_keys_tell_contents_apart() -> None:
    cell = WorkCell("a/1", "printed", {"rounds": 1, "x0": [0.5]})
    assert cell.key == replace(cell, setting={"x0": [0.5], "rounds": 1}).key
    others = [
        replace(cell, statement="a/2"),
        replace(cell, reading="derived"),
        replace(cell, setting={"rounds": 1, "x0": [0.25]}),
        replace(cell, seed=1),
        replace(cell, replicas=1),
        replace(cell, files="ab"),
        replace(cell, kind="search"),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 8


def test_the_key_of_a_check_is_that_of_the_first_stores() -> None:
    """SHA-256 of the content as JSON, worked out with sha256sum."""
    cell = WorkCell("a/1", "printed", {"rounds": 1})
    assert cell.key == "fa4eaec3a1a5fb2d8cdc9828ff6c05b1"
