"""The store: what is kept, what is refused, and several writers at once."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from fltheory.sweep import Store, read_results
from fltheory.sweep.cell import Row
from fltheory.sweep.store import StoreError

ROW = Row(
    "k", "a/1", "printed", "{}", 0, 2000, "HOLDS", "EXACT", 0.1, 1.0, 0.1, 0.0, "", "", "v", 1.0
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "store.db"


def test_rows_are_kept_bit_for_bit_and_once(path: Path) -> None:
    odd = replace(ROW, key="j", truth=0.1 + 0.2, bound=float("inf"), ratio=None, why="π; 'x'")
    with Store(path, create=True) as store:
        store.add([ROW, odd])
        store.add([replace(ROW, outcome="REFUTED")])
        assert len(store) == 2
        assert "k" in store
        assert "l" not in store
    with Store(path) as store:
        assert [row for row, _ in store.rows()] == [odd, ROW]
        assert store["j"] == odd
        assert store.outcomes({"k"}) == {"HOLDS": 1}
        assert store.versions({"k", "j", "l"}) == {"v": 2}


def test_rows_are_added_all_or_none(path: Path) -> None:
    with Store(path, create=True) as store:
        with pytest.raises(StoreError, match="binding"):
            store.add([ROW, replace(ROW, key=Path("x"))])
        assert len(store) == 0
        store.add([ROW])
        assert len(store) == 1


def test_two_write_at_once(path: Path) -> None:
    with Store(path, create=True) as one, Store(path, create=True) as other:
        for number in range(10):
            one.add([replace(ROW, key=f"a{number}")])
            other.add([replace(ROW, key=f"b{number}"), replace(ROW, key=f"a{number}")])
        assert len(one) == len(other) == 20


def test_a_store_that_was_not_finished_is_begun_again(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    with Store(path, create=True) as store:
        assert len(store) == 0


def sqlite_of(path: Path, *commands: str) -> None:
    connection = sqlite3.connect(path)
    for command in commands:
        connection.execute(command)
    connection.commit()
    connection.close()


def test_what_is_refused_is_left_as_it_was(tmp_path: Path) -> None:
    text, foreign, older, newer, damaged, cut = (tmp_path / n for n in "tfondc")
    text.write_text("a page of text, longer than the header of a file of SQLite " * 20)
    sqlite_of(foreign, "CREATE TABLE cells (a)")
    for path in (older, newer, damaged, cut):
        with Store(path, create=True) as store:
            store.add([replace(ROW, key=str(number), why="x" * 500) for number in range(100)])
    sqlite_of(older, "PRAGMA user_version = 1")
    sqlite_of(newer, "PRAGMA user_version = 3")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:5000] + b"\xff" * 9000 + whole[14000:])
    cut.write_bytes(whole[: len(whole) // 2])
    for path, message in (
        (text, "not a file of fltheory sweep; nothing was written"),
        (foreign, "store must be a file of fltheory sweep"),
        (older, "must be of version 2, got version 1 .* another fltheory wrote it"),
        (newer, "must be of version 2, got version 3 .* another fltheory wrote it"),
        (damaged, "damaged"),
        (cut, "damaged"),
    ):
        before = path.read_bytes()
        for create in (False, True):
            with pytest.raises(StoreError, match=message) as refused:
                Store(path, create=create)
            assert "\n" not in str(refused.value)
        assert path.read_bytes() == before


def test_no_store_and_no_place(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="which does not exist"):
        Store(tmp_path / "none.db")
    with pytest.raises(StoreError, match="name too long"):
        Store(tmp_path / ("x" * 300))
    with pytest.raises(StoreError, match="a folder"):
        Store(tmp_path, create=True)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file"):
        Store(tmp_path / "file" / "store.db", create=True)
    assert not (tmp_path / "none.db").exists()


def test_a_locked_store_is_said_to_be(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fltheory.sweep.store._OPENING_SECONDS", 0.01)
    Store(path, create=True).__exit__(None, None, None)
    sqlite_of(path, "PRAGMA journal_mode = DELETE")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="locked by another program"):
        Store(path, create=True)
    other.close()
    with Store(path, create=True) as store:
        assert len(store) == 0


def test_a_full_disk_keeps_what_was_written(path: Path) -> None:
    with Store(path, create=True) as store:
        store.add([ROW])
        store._connection.execute("PRAGMA max_page_count = 5")
        with pytest.raises(StoreError, match="disk is full; what was written before is kept"):
            store.add([replace(ROW, key=str(n), why="x" * 1000) for n in range(100)])
        assert len(store) == 1


DEEP = "[" * 3000 + "]" * 3000


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("setting", "[]", "setting must be a table"),
        ("setting", "null", "setting must be a table"),
        ("setting", "", "setting: must be JSON"),
        ("setting", '{"a": ' + DEEP + "}", "setting: must be nested at most 100 levels"),
        ("setting", b"{}", "setting of row 'k'"),
        ("result", "{", "result: must be JSON"),
        ("result", DEEP, "result: must be nested at most 100 levels"),
        ("outcome", b"\xff", "outcome of row 'k'"),
        ("truth", "much", "truth of row 'k'"),
        ("seed", 1.5, "seed of row 'k'"),
    ],
)
def test_a_row_that_somebody_else_wrote_is_refused(
    path: Path, column: str, value: object, says: str
) -> None:
    with Store(path, create=True) as store:
        store.add([ROW])
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE cells SET {column} = ?", (value,))
    connection.commit()
    connection.close()
    with Store(path) as store:
        for read in (lambda: list(store.rows()), lambda: store["k"], lambda: read_results(path)):
            with pytest.raises(StoreError, match=f"{path}: .*{says}") as refused:
                read()
            assert "\n" not in str(refused.value)
