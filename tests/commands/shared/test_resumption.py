"""Long work whose results are kept one by one in a file, from which the same command goes on."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from fltheory.commands.shared import kept_cells
from fltheory.commands.shared.exit_status import Interrupted
from fltheory.commands.shared.kept_cells import ResultFile, resumable


@dataclass(frozen=True)
class Plan:
    power: int


@dataclass(frozen=True)
class Found:
    key: int
    value: float


FOUND = ResultFile(
    "found", "powers", "search", lambda entry: Plan(**entry), lambda entry: Found(**entry)
)
SQUARES = Plan(2)


def power_of(key: int, plan: Plan) -> Found:
    return Found(key, float(key**plan.power))


def interrupted_at(last: int, key: int, plan: Plan) -> Found:
    if key == last:
        raise KeyboardInterrupt
    return power_of(key, plan)


def through(work, chosen, out: Path) -> list[float]:
    found = FOUND.resumed(work, chosen, SQUARES, out, begins="begun", about=str)
    return [one.value for one in found]


def keys_in(out: Path) -> list[int]:
    return [entry["key"] for entry in json.loads(out.read_text())["found"]]


@pytest.mark.parametrize("number", [1, 2])
def test_results_are_kept_and_those_chosen_returned(
    processors, number: int, tmp_path: Path
) -> None:
    """However many processes there are, and in whatever order results come."""
    processors(number)
    out = tmp_path / "squares"
    assert through(power_of, [3, 1, 2], out) == [9, 1, 4]
    assert through(power_of, [3, 4], out) == [9, 16]
    assert keys_in(out) == [1, 2, 3, 4]


def test_what_is_kept_is_not_done_again(processors, tmp_path: Path) -> None:
    processors(1)
    out = tmp_path / "squares"
    FOUND.write(out, [Found(2, -4.0)], SQUARES)
    assert through(power_of, [1, 2], out) == [1, -4]


def test_progress_counts_what_was_there(processors, monkeypatch, tmp_path: Path) -> None:
    processors(1)
    out, told = tmp_path / "squares", list[object]()
    FOUND.write(out, [Found(2, 4.0)], SQUARES)
    shown = nullcontext(lambda *said: told.append(said))
    monkeypatch.setattr(kept_cells, "shown_progress", lambda: shown)
    assert through(power_of, [1, 2], out) == [1, 4]
    assert told == [(1, 2, "begun"), (2, 2, "Found(key=1, value=1.0)")]


def test_an_interrupt_says_how_many_are_kept_and_the_rest_is_done_later(
    processors, tmp_path: Path
) -> None:
    processors(1)
    out = tmp_path / "squares"
    with pytest.raises(Interrupted) as stop:
        through(partial(interrupted_at, 3), [1, 2, 3], out)
    assert str(stop.value) == f"2 found powers are in {out}; rerun the same command to resume"
    assert keys_in(out) == [1, 2]
    assert through(power_of, [1, 2, 3], out) == [1, 4, 9]


def test_two_commands_may_keep_results_in_one_file_at_once(processors, tmp_path: Path) -> None:
    processors(1)
    out = tmp_path / "squares"

    def meanwhile(key: int, plan: Plan) -> Found:
        through(power_of, [key + 10], out)
        return power_of(key, plan)

    assert through(meanwhile, [1, 2], out) == [1, 4]
    assert keys_in(out) == [11, 12, 1, 2]


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(ValueError, match="a fault"), resumable(lambda: "nothing is kept"):
        raise ValueError("a fault")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path, results = tmp_path / "found.json", [Found(1, 0.1), Found(2, 1e300)]
    assert FOUND.read(path, Plan(3)) == []
    FOUND.write(path, results, Plan(3))
    assert FOUND.read(path, Plan(3)) == results
    assert [entry.name for entry in tmp_path.iterdir()] == ["found.json"]


def test_another_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    FOUND.write(path, [], Plan(3))
    with pytest.raises(ValueError, match=r"of the plan Plan\(power=4\), got Plan\(power=3\) in"):
        FOUND.read(path, Plan(4))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"plan": {"power": 3}, "found": [{"key": 1}]}',
        '{"plan": 1, "found": []}',
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "found.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"a file that search wrote, got '.*found.json'"):
        FOUND.read(path, Plan(3))
