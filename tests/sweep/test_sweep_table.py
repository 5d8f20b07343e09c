"""Rows as a table: columns, order, conditions, files."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from fltheory.sweep import Store, read_results
from fltheory.sweep.cell import Row
from fltheory.sweep.table import Condition, write_results

ROW = Row("k", "a/1", "printed", "{}", 0, 9, "HOLDS", "EXACT", 0.1, 1.0, 0.1, 0.0, "", "", "v", 2.5)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    settings = [
        {"rounds": rounds, "algorithm": {"kind": "A", "q": q}, "x0": [0.0, 1.0]}
        for rounds, q in ((10, 0.1 + 0.2), (9, "1/3"), (100, None))
    ]
    del settings[2]["algorithm"]["q"]
    with Store(path, create=True) as store:
        for number, setting in enumerate(settings):
            store.add([replace(ROW, key=f"k{number}", setting=json.dumps(setting))])
    return path


def test_what_differs_has_a_column_and_numbers_are_sorted_as_such(store: Path) -> None:
    table = read_results(store)
    assert list(table.columns[:6]) == [
        "statement",
        "reading",
        "algorithm.q",
        "rounds",
        "seed",
        "replicas",
    ]
    # Missing first, then numbers, then texts.
    assert list(table["rounds"]) == [100, 10, 9]
    assert table["algorithm.q"][1] == 0.1 + 0.2
    assert "algorithm.kind" not in table
    assert "x0" not in table
    assert "seconds" not in table
    assert list(read_results(store, clock=True)["seconds"]) == [2.5] * 3
    assert list(read_results(store, where=["rounds>=10"])["rounds"]) == [100, 10]


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("a=1", 1.0, True),
        ("a = 1", 2, False),
        ("a!=1", 2, True),
        ("a<=1", 1, True),
        ("a<1", 1, False),
        ("a>0.5", 1, True),
        ("a>=x", 1, False),
        ("a=x", "x", True),
        ("a=0.5", "0.5", True),
        ("a=1", None, False),
        ("a!=1", None, False),
    ],
)
def test_conditions(text, value, holds) -> None:
    assert Condition.read(text).holds({"a": value}) is holds


def test_files(store: Path, tmp_path: Path) -> None:
    table = read_results(store)
    write_results(tmp_path / "t.csv", table)
    assert list(pd.read_csv(tmp_path / "t.csv")["rounds"]) == [100, 10, 9]
    if find_spec("pyarrow"):
        write_results(tmp_path / "t.parquet", table)
        assert list(pd.read_parquet(tmp_path / "t.parquet")["rounds"]) == [100, 10, 9]
    else:
        with pytest.raises(ValueError, match="Parquet needs pyarrow"):
            write_results(tmp_path / "t.parquet", table)


def test_an_empty_store_is_an_empty_table(tmp_path: Path) -> None:
    Store(tmp_path / "empty.db", create=True).__exit__(None, None, None)
    assert len(read_results(tmp_path / "empty.db")) == 0
