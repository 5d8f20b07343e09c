"""Commands whose cells run on a real Dask cluster, one of whose two workers is killed midway."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fltheory.sweep import Store
from tests.commands.conftest import Words, said_and_written

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def cluster():
    options = {"processes": True, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        yield cluster


@pytest.mark.parametrize("name", ["mapping", "power", "findings"])
def test_a_worker_is_killed_midway_and_the_result_is_the_same(
    name: str,
    cluster,
    request: pytest.FixtureRequest,
    fltheory_command: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    words: Words = request.getfixturevalue(name)
    done = partial(said_and_written, fltheory_command, words)
    killed: list[int] = []

    def add_and_kill(store: Store, rows) -> None:
        add(store, rows)
        if not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    alone = done()
    add = Store.add
    monkeypatch.setattr(Store, "add", add_and_kill)
    monkeypatch.setattr(
        "fltheory.sweep.running.worker_processes", lambda count: pytest.fail("a process of ours")
    )
    assert done("--store", tmp_path / "there.db", "--dask", cluster.scheduler_address) == alone
    assert killed
