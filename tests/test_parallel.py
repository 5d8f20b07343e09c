"""Work in several processes."""

from __future__ import annotations

import multiprocessing
import os
import time
from functools import partial
from pathlib import Path

import pytest

from fltheory.parallel import as_they_come, rest_as_they_come


def process_of(item: int) -> tuple[int, int]:
    return item, os.getpid()


def test_one_process_is_this_one_and_keeps_the_order() -> None:
    results = list(as_they_come(process_of, [3, 1, 2], processes=1))
    assert results == [(3, os.getpid()), (1, os.getpid()), (2, os.getpid())]


def test_several_processes_do_every_item_once() -> None:
    results = list(as_they_come(process_of, range(20), processes=2))
    assert sorted(item for item, _ in results) == list(range(20))
    assert os.getpid() not in {process for _, process in results}


def test_an_error_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        list(as_they_come(partial(divmod, 1), [1, 0], processes=2))


def touched_after(item: tuple[float, Path]) -> None:
    seconds, path = item
    time.sleep(seconds)
    path.touch()


def test_an_interrupt_ends_the_other_processes_at_once(tmp_path: Path) -> None:
    """None comes to the end of its work, be the machine as slow as it may."""
    items = [(0.0, tmp_path / "a"), (60.0, tmp_path / "b"), (60.0, tmp_path / "c")]
    results = as_they_come(touched_after, items, processes=2)
    next(results)
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt)
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    assert multiprocessing.active_children() == []


def test_only_the_rest_is_done_and_progress_counts_all() -> None:
    told: list[tuple[int, int, str]] = []
    results = rest_as_they_come(
        abs,
        [-1, -2, -3],
        done=[-2],
        begins="begun",
        about=str,
        processes=1,
        progress=lambda *said: told.append(said),
    )
    assert list(results) == [1, 3]
    assert told == [(1, 3, "begun"), (2, 3, "1"), (3, 3, "3")]
