"""Work in several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest
from threadpoolctl import threadpool_info

from fltheory.long_work.parallel import (
    InThisProcess,
    _interrupts_later,
    as_they_come,
    futures_as_they_come,
    is_lost,
    one_thread,
    sampling_threads,
    worker_processes,
)


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


def test_any_executor_does_the_work_and_is_left_open() -> None:
    with ThreadPoolExecutor(2) as threads:
        assert sorted(as_they_come(abs, range(-200, 0), executor=threads)) == list(range(1, 201))
        assert threads.submit(abs, -1).result() == 1


def test_items_are_asked_for_as_there_is_room() -> None:
    asked = []

    def items():
        for item in range(5):
            asked.append(item)
            yield item

    found = []
    for item, future in futures_as_they_come(InThisProcess(), float, items(), in_flight=1):
        found.append((item, future.result()))
        assert len(asked) == len(found)
    assert found == [(item, float(item)) for item in range(5)]


def test_in_this_process_an_error_is_the_futures() -> None:
    (ended,) = futures_as_they_come(InThisProcess(), int, ["x"])
    assert isinstance(ended[1].exception(), ValueError)
    assert not is_lost(ended[1])


def die(item: int) -> None:
    os._exit(1)


def test_a_broken_executor_gives_its_items_back_and_gets_no_more() -> None:
    items = iter(range(1000))
    with worker_processes(1) as pool:
        lost = [
            item for item, future in futures_as_they_come(pool, die, items, 2) if is_lost(future)
        ]
    assert sorted(lost) == list(range(len(lost)))
    assert len(lost) < 10
    assert next(items) == len(lost)
    with pytest.raises(BrokenExecutor):
        list(as_they_come(die, [1, 2, 3], processes=2))


def threads_of(item: int) -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info()}


def test_workers_have_one_thread_of_linear_algebra() -> None:
    assert list(as_they_come(threads_of, [1, 2], processes=2)) == [{1}, {1}]


def sampling_threads_of(item: int) -> int:
    return sampling_threads()


def test_sampling_takes_all_processors_and_one_in_a_worker(
    monkeypatch: pytest.MonkeyPatch, processors
) -> None:
    processors(5)
    assert sampling_threads() == 5
    assert list(as_they_come(sampling_threads_of, [1, 2], processes=2)) == [1, 1]
    with one_thread():
        assert sampling_threads() == 1
    assert sampling_threads() == 5
    monkeypatch.setenv("FLTHEORY_THREADS", "3")
    assert sampling_threads() == 3
    assert list(as_they_come(sampling_threads_of, [1, 2], processes=2)) == [3, 3]


@pytest.mark.parametrize("told", ["0", "-1", "two", "1.5", "", "9" * 5000])
def test_threads_that_are_told_must_be_a_number(told: str, monkeypatch) -> None:
    monkeypatch.setenv("FLTHEORY_THREADS", told)
    with pytest.raises(ValueError, match="FLTHEORY_THREADS must be a whole number of at least 1"):
        sampling_threads()


def test_an_interrupt_is_put_off_where_another_thread_could_take_it() -> None:
    """A mask of this thread's alone leaves the signal to the other, and Python raises it here."""
    over, done = Event(), []
    other = Thread(target=over.wait)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    other.start()

    def interrupted() -> None:
        with _interrupts_later():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            done.append("started")

    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        over.set()
        other.join()
        signal.signal(signal.SIGINT, before)
    assert done == ["started"]
