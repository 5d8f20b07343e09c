"""A cell's row: what the check says, or why there is none."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from fltheory import theorems
from fltheory.engines.setting_file import setting_of
from fltheory.sweep.cell import Cell, Task, rows_of, versions
from fltheory.sweep.design import design_of
from fltheory.theorems import registry
from fltheory.user_file import run_file
from fltheory.verify import check
from tests.sweep.designs import small


def row(**changed):
    return rows_of(design_of(small(**changed)).task(0))[0]


def test_a_row_is_what_check_says() -> None:
    found = row()
    document = json.loads(found.setting)
    verdict = check("sa-fl/5", setting_of(document))
    assert (found.outcome, found.truth, found.bound) == (
        verdict.outcome.name,
        verdict.truth,
        verdict.bound,
    )
    assert (found.evidence, found.ratio) == ("EXACT", verdict.ratio)
    assert found.why.startswith(verdict.failed[0].name)
    assert found.versions == versions()
    assert "fltheory" in versions()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"grid": {"rounds": [-1]}}, "rounds must be"),
        ({"grid": {"rounds": [1], "participation.size": [9]}}, "participation: size must be"),
        (
            {"grid": {"rounds": [1]}, "statements": ["scaffold/convex"]},
            "algorithm must be Scaffold",
        ),
    ],
)
def test_an_impossible_cell_says_why(changed, why) -> None:
    found = row(**changed)
    assert (found.outcome, found.truth) == ("IMPOSSIBLE", None)
    assert why in found.why


def test_a_threaded_library_has_one_thread_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def looked(document):
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        raise ValueError("seen")

    monkeypatch.setattr("fltheory.sweep.cell.setting_of", looked)
    row()
    assert set(seen) == {1}


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
    (here,) = rows_of(Task((cell,), files))
    # Another process has not loaded it, or has another text of it.
    del registry._BY_NAME["sweep/1", "printed"]
    mine.unlink()
    monkeypatch.setitem(registry._LOADED, "sweep_of_mine", "older")
    (there,) = rows_of(Task((cell,), files))
    assert astuple(replace(there, seconds=here.seconds)) == astuple(here)


def test_keys_tell_contents_apart() -> None:
    cell = Cell("a/1", "printed", {"rounds": 1, "x0": [0.5]})
    assert cell.key == replace(cell, setting={"x0": [0.5], "rounds": 1}).key
    others = [
        replace(cell, statement="a/2"),
        replace(cell, reading="derived"),
        replace(cell, setting={"rounds": 1, "x0": [0.25]}),
        replace(cell, seed=1),
        replace(cell, replicas=1),
        replace(cell, files="ab"),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 7
