"""Sweeps on one process, on several, on other executors; interrupted, killed, and gone on with."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fltheory.sweep import Store, read_results, sweep
from fltheory.sweep.cell import rows_of
from fltheory.sweep.design import design_of
from tests.sweep.designs import small

DESIGN = design_of(small())
N_CELLS = 8
_FORK = multiprocessing.get_context("fork")
_MANY = design_of(small(readings=["derived"], random={"count": 12, "x0": {"from": 0.0, "to": 1.0}}))


def swept(path: Path, **options):
    with Store(path, create=True) as store:
        return sweep(options.pop("design", DESIGN), store, **options)


def table(path: Path) -> str:
    return read_results(path).to_csv()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "whole.db"
    assert swept(path, processes=1).added == N_CELLS
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("many") / "many.db"
    swept(path, processes=1, design=_MANY)
    return table(path)


def test_one_process_two_and_threads_give_the_same_bits(whole: Path, tmp_path: Path) -> None:
    assert swept(tmp_path / "two.db", processes=2).added == N_CELLS
    with ThreadPoolExecutor(3) as threads:
        found = swept(tmp_path / "threads.db", executor=threads)
    assert found.added == len(found.keys) == N_CELLS
    assert table(tmp_path / "two.db") == table(tmp_path / "threads.db") == table(whole)


def test_an_interrupted_sweep_goes_on_where_it_stopped(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    def interrupt(done: float, total: float, name: str) -> None:
        assert total == N_CELLS
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(path, processes=1, progress=interrupt)
    told: list[tuple[float, str]] = []
    found = swept(path, processes=1, progress=lambda done, total, name: told.append((done, name)))
    assert (found.added, len(found.keys), found.failures) == (4, N_CELLS, [])
    assert told[-1][0] == N_CELLS
    assert sum("already" in name for _, name in told) == 2
    assert table(path) == table(whole)
    assert swept(path, processes=1).added == 0


def rows_in(path: Path) -> int:
    try:
        with Store(path) as store:
            return len(store)
    except ValueError:
        return 0


def killed_after(rows: int, path: Path) -> None:
    """Run a sweep, kill it once it has added rows, and wait for its workers to end."""
    options = {"processes": 2, "design": _MANY}
    running = _FORK.Process(target=swept, args=(path,), kwargs=options)
    begun = rows_in(path)
    running.start()
    while rows_in(path) < begun + rows and running.is_alive():
        time.sleep(0.005)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    workers = children.read_text().split() if children.exists() else []
    running.kill()
    running.join()
    while any(is_running(worker) for worker in workers):
        time.sleep(0.005)


def test_a_sweep_killed_again_and_again_ends_with_the_same_table(many: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for rows in (0, 3, 5, 0, 9):
        killed_after(rows, path)
    before = rows_in(path)
    assert before >= 17
    assert swept(path, processes=1, design=_MANY).added == 48 - before
    assert table(path) == many


def is_running(process: str) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_two_sweeps_write_to_one_store(many: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    options = {"processes": 1, "design": _MANY}
    both = [_FORK.Process(target=swept, args=(path,), kwargs=options) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert [one.exitcode for one in both] == [0, 0]
    assert table(path) == many


def dies_once(task):
    """End the worker like a machine without memory, the first time that it has this setting."""
    mark = Path(os.environ["MARK"])
    if task.cells[0].setting["rounds"] == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return rows_of(task)


def dies_always(task):
    if task.cells[0].setting["rounds"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return rows_of(task)


def test_a_worker_that_is_killed_costs_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    monkeypatch.setattr("fltheory.sweep.running.rows_of", dies_once)
    found = swept(tmp_path / "store.db", processes=2)
    assert (found.added, found.failures) == (N_CELLS, [])
    assert (tmp_path / "mark").exists()
    assert table(tmp_path / "store.db") == table(whole)


def test_cells_that_always_end_their_worker_are_left_out_and_named(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fltheory.sweep.running.rows_of", dies_always)
    found = swept(tmp_path / "store.db", processes=2)
    assert found.added == 4
    assert {cell.setting["rounds"] for cell, _ in found.failures} == {2}
    assert "out of memory" in found.failures[0][1]
    monkeypatch.setattr("fltheory.sweep.running.rows_of", rows_of)
    assert swept(tmp_path / "store.db", processes=1).added == 4
    assert table(tmp_path / "store.db") == table(whole)


def forgetful(task):
    if task.cells[0].setting["rounds"] == 2:
        raise KeyError("no bad input")
    return rows_of(task)


def test_an_error_of_a_cell_ends_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fltheory.sweep.running.rows_of", forgetful)
    for processes in (1, 2):
        found = swept(tmp_path / f"{processes}.db", processes=processes)
        assert (found.added, len(found.failures)) == (4, 4)
        assert found.failures[0][1] == "KeyError: 'no bad input'"


def test_an_executor_that_takes_nothing_is_said_to(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as closed:
        pass
    found = swept(tmp_path / "store.db", executor=closed)
    assert found.added == 0
    assert found.failures[0][1] == "the executor takes no more work"
