"""Long work whose results are kept one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fltheory.commands.shared.exit_status import Interrupted
from fltheory.commands.shared.kept_cells import resumable, resumed


@dataclass(frozen=True)
class Square:
    key: int
    value: int


def read(path: Path, plan: str) -> list[Square]:
    lines = path.read_text().splitlines() if path.is_file() else []
    return [Square(*map(int, line.split())) for line in lines]


def write(path: Path, results: Sequence[Square], plan: str) -> None:
    path.write_text("".join(f"{result.key} {result.value}\n" for result in results))


def squares(chosen, plan, *, done, progress) -> Iterator[Square]:
    for number in chosen:
        if number not in done:
            yield Square(number, number * number)


def interrupted_at(last: int):
    def work(chosen, plan, **options) -> Iterator[Square]:
        for square in squares(chosen, plan, **options):
            if square.key == last:
                raise KeyboardInterrupt
            yield square

    return work


def through(work, chosen, out: Path) -> list[int]:
    found = resumed(work, chosen, "plan", out, read=read, write=write, what="squares")
    return [square.value for square in found]


def test_results_are_kept_and_those_chosen_returned(tmp_path: Path) -> None:
    out = tmp_path / "squares"
    assert through(squares, [1, 2, 3], out) == [1, 4, 9]
    assert through(squares, [3, 4], out) == [9, 16]
    assert out.read_text() == "1 1\n2 4\n3 9\n4 16\n"


def test_what_is_kept_is_not_done_again(tmp_path: Path) -> None:
    out = tmp_path / "squares"
    out.write_text("2 -4\n")
    assert through(squares, [1, 2], out) == [1, -4]


def test_the_file_does_not_tell_the_order_in_which_results_came(tmp_path: Path) -> None:
    out = tmp_path / "squares"
    assert through(lambda chosen, plan, **all: squares([3, 1, 2], plan, **all), [1, 2, 3], out)
    assert out.read_text() == "1 1\n2 4\n3 9\n"


def test_an_interrupt_says_how_many_are_kept_and_the_rest_is_done_later(tmp_path: Path) -> None:
    out = tmp_path / "squares"
    with pytest.raises(Interrupted) as stop:
        through(interrupted_at(3), [1, 2, 3], out)
    assert str(stop.value) == f"2 squares are in {out}, the same command resumes"
    assert out.read_text() == "1 1\n2 4\n"
    assert through(squares, [1, 2, 3], out) == [1, 4, 9]


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(ValueError, match="a fault"), resumable(lambda: "nothing is kept"):
        raise ValueError("a fault")
