"""Cells that are checks: a row is what the check says, or why there is none."""

from __future__ import annotations

import json

import pytest
from threadpoolctl import threadpool_info

from fltheory.engines.setting_file import setting_of
from fltheory.long_work.parallel import sampling_threads
from fltheory.sweep.cell import rows_of, versions
from fltheory.sweep.design import design_of
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
        ({"grid": {"rounds": [1], "participation.size": [9]}}, "participation.size must be"),
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


def test_sampling_has_one_thread_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def looked(document):
        seen.append(sampling_threads())
        raise ValueError("seen")

    monkeypatch.setattr("fltheory.long_work.parallel.processors", lambda: 5)
    monkeypatch.setattr("fltheory.sweep.cell.setting_of", looked)
    row()
    assert seen == [1]
    assert sampling_threads() == 5
