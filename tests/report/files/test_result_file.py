"""Files of results that a command goes on from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from fltheory.report.files.result_file import ResultFile


@dataclass(frozen=True)
class Plan:
    budget: int


@dataclass(frozen=True)
class Found:
    name: str
    value: float


FOUND = ResultFile("found", "search", lambda entry: Plan(**entry), lambda entry: Found(**entry))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path, results = tmp_path / "found.json", [Found("a", 0.1), Found("b", 1e300)]
    assert FOUND.read(path, Plan(3)) == []
    FOUND.write(path, results, Plan(3))
    assert FOUND.read(path, Plan(3)) == results
    assert [entry.name for entry in tmp_path.iterdir()] == ["found.json"]


def test_another_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    FOUND.write(path, [], Plan(3))
    with pytest.raises(ValueError, match=r"same plan, Plan\(budget=4\), got Plan\(budget=3\) in"):
        FOUND.read(path, Plan(4))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"plan": {"budget": 3}, "found": [{"name": "a"}]}',
        '{"plan": 1, "found": []}',
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "found.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"a file that search wrote, got '.*found.json'"):
        FOUND.read(path, Plan(3))
