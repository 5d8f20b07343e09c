"""Commands whose cells are kept in a store: killed, and gone on with, they say the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fltheory.sweep import Store
from tests.commands.conftest import Words, said_and_written
from tests.sweep.killed import killed_after
from tests.typed import run_typed

# Points; mutants; two searches about the refuted statement, one of the other, and its two regimes.
CELLS = {"mapping": 6, "power": 3, "findings": 5}


@pytest.mark.parametrize(("name", "killed"), [("mapping", 4), ("power", 1), ("findings", 3)])
def test_killed_and_gone_on_with_the_result_is_the_same(
    name: str,
    killed: int,
    request: pytest.FixtureRequest,
    fltheory_command: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    words: Words = request.getfixturevalue(name)
    monkeypatch.setattr("fltheory.long_work.parallel.processors", lambda: 1)
    monkeypatch.setattr("fltheory.sweep.running.processors", lambda: 1)
    result = Path(str(words[-1]))

    done = partial(said_and_written, fltheory_command, words)
    alone = done()
    path = tmp_path / "killed.db"

    def in_store() -> None:
        monkeypatch.setattr("sys.argv", [])
        run_typed([*words, "--store", path])

    result.unlink()
    given = killed_after(killed, in_store)
    assert not result.exists()
    with Store(path) as store:
        before = dict(store.rows())
    # Tasks come in random order, and two regimes are one task.
    assert len(before) == given in {killed, killed + 1}
    assert done("--store", path) == done("--store", tmp_path / "whole.db") == alone
    with Store(path) as store:
        after = dict(store.rows())
    # What was kept was not made again: seconds, and the time of writing, are as they were.
    assert before.items() <= after.items()
    assert len(after) == CELLS[name]
    tables = []
    for one in (path, tmp_path / "whole.db"):
        out = tmp_path / "table.csv"
        assert fltheory_command("results", one, "--out", out)[0] == 0
        tables.append(out.read_bytes())
    assert tables[0] == tables[1]
    # Nothing is left to do.
    with pytest.raises(AssertionError):
        killed_after(1, in_store)


def test_one_store_has_cells_of_every_kind(
    fltheory_command, mapping: Words, power: Words, tmp_path: Path
) -> None:
    path, table = tmp_path / "store.db", tmp_path / "table.csv"
    for words in (mapping, power):
        assert fltheory_command(*words, "--store", path)[0] == 0
    status, out, _ = fltheory_command("results", path, "--where", "kind=mutant", "--out", table)
    assert status == 0
    assert out.startswith("3 rows, ")
    lines = table.read_text().splitlines()
    assert lines[0].startswith("statement,reading,change,mutant,seed,")
    status, out, _ = fltheory_command("results", path, "--where", "algorithm.q<0.1")
    assert out.splitlines()[-1].startswith("2 rows, ")
    assert "│ check" not in out
    assert fltheory_command("results", path, "--out", table)[0] == 0
    assert table.read_text().startswith("kind,statement,reading,")
    assert len(table.read_text().splitlines()) == 1 + CELLS["mapping"] + CELLS["power"]


def test_an_interrupt_says_what_is_kept(
    fltheory_command, monkeypatch: pytest.MonkeyPatch, mapping: Words, tmp_path: Path
) -> None:
    add = Store.add

    def interrupted(store: Store, rows) -> None:
        add(store, rows)
        if len(store) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "add", interrupted)
    path = tmp_path / "store.db"
    status, out, err = fltheory_command(*mapping, "--store", path)
    assert (status, out) == (130, "")
    assert (
        err == f"fltheory: interrupted, 2 cells are in {path}; rerun the same command to resume\n"
    )


def test_cells_of_other_versions_are_kept_and_told(
    fltheory_command, monkeypatch: pytest.MonkeyPatch, mapping: Words, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    assert fltheory_command(*mapping, "--store", path)[0] == 0
    monkeypatch.setattr("fltheory.sweep.cell.versions", lambda: "fltheory 9")
    status, out, _ = fltheory_command(*mapping, "--store", path)
    assert status == 0
    assert "6 of them were made with fltheory 0." in out


def test_what_is_no_store_is_a_line_before_any_work(
    fltheory_command, mapping: Words, power: Words, findings: Words, tmp_path: Path
) -> None:
    text = tmp_path / "page.txt"
    text.write_text("no store")
    for words in (mapping, power, findings):
        status, out, err = fltheory_command(*words, "--store", text)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "nothing was written" in err
    assert text.read_text() == "no store"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["page.txt"]


def test_a_cluster_that_is_not_there_is_a_line_before_any_work(
    fltheory_command, mapping: Words, power: Words, findings: Words, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    for words in (mapping, power, findings):
        for options, message in (
            (("--dask", "nonsense"), "store must be given with --dask"),
            (("--dask", "nonsense", "--store", path), "dask "),
        ):
            status, out, err = fltheory_command(*words, *options)
            assert (status, out, err.count("\n")) == (2, "", 1)
            assert message in err
            assert not path.exists()
            assert not Path(str(words[-1])).exists()
