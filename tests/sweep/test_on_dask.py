"""A real Dask cluster: the same bits, also where a worker is killed; what does not answer."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest

from fltheory.sweep import Store, read_results, sweep
from fltheory.sweep.design import design_of
from tests.sweep.designs import small

distributed = pytest.importorskip("distributed")

from fltheory.sweep.running import dask_workers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
DESIGN = design_of(small(random={"count": 12, "x0": {"from": 0.0, "to": 1.0}}))
N_CELLS = 96


@pytest.fixture
def cluster():
    options = {"processes": True, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        yield cluster


def test_a_worker_is_killed_midway_and_the_table_is_the_same(cluster, tmp_path: Path) -> None:
    places = tmp_path / "here.db", tmp_path / "there.db"
    with Store(places[0], create=True) as store:
        sweep(DESIGN, store, processes=1)
    killed = []

    def kill_one(done: float, total: float, name: str) -> None:
        if done >= N_CELLS / 3 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    with ExitStack() as opened:
        executor, threads = opened.enter_context(dask_workers(cluster.scheduler_address))
        assert threads == 2
        store = opened.enter_context(Store(places[1], create=True))
        found = sweep(DESIGN, store, executor=executor, in_flight=8, progress=kill_one)
    assert (found.added, found.failures) == (N_CELLS, [])
    assert killed
    here, there = (read_results(place).to_csv() for place in places)
    assert here == there


def test_a_scheduler_that_goes_away_ends_the_sweep(cluster, tmp_path: Path) -> None:
    closing = Thread(target=cluster.close)

    def close(done: float, total: float, name: str) -> None:
        if done >= N_CELLS / 3 and not closing.ident:
            closing.start()

    with (
        Store(tmp_path / "store.db", create=True) as store,
        dask_workers(cluster.scheduler_address) as (executor, _),
    ):
        found = sweep(DESIGN, store, executor=executor, in_flight=8, progress=close)
        assert len(store) == found.added < N_CELLS
    closing.join()
    assert found.failures[-1][1] == "the executor takes no more work"


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "tcp://127.0.0.1:x", ""])
def test_nobody_answers(address: str) -> None:
    with (
        pytest.raises(ValueError, match="dask must be a scheduler that answers"),
        dask_workers(address),
    ):
        pass
