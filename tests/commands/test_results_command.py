"""``fltheory results``: rows shown, filtered, and written as a table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fltheory.sweep import Store, sweep
from fltheory.sweep.design import design_of
from tests.sweep.designs import small


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results") / "store.db"
    with Store(path, create=True) as store:
        sweep(design_of(small()), store, processes=1)
    return path


def test_rows_are_shown(fltheory_command, store) -> None:
    status, said, _ = fltheory_command("results", store)
    assert status == 0
    assert sum(line.startswith("│ sa-fl/5") for line in said.splitlines()) == 8
    assert "algorithm.client_lr" in said
    assert said.splitlines()[-1].startswith("8 rows, ")


def test_rows_are_chosen_and_written(fltheory_command, store, tmp_path) -> None:
    out = tmp_path / "table.csv"
    chosen = ("--where", "algorithm.client_lr<0.1", "--where", "reading=printed")
    status, said, _ = fltheory_command("results", store, *chosen, "--out", out)
    assert status == 0
    assert said.splitlines()[-1] == f"written to {out}"
    table = pd.read_csv(out)
    assert set(table["reading"]) == {"printed"}
    assert sorted(table["rounds"]) == [1, 2]
    assert "seconds" not in table
    _, said, _ = fltheory_command("results", store, "--where", "outcome=NEVER")
    assert said.splitlines()[-1] == "0 rows"


def test_bad_input_is_one_line(fltheory_command, store, tmp_path) -> None:
    for arguments, message in (
        ((tmp_path / "none.db",), "store must be a file of fltheory sweep"),
        ((store, "--where", "outcom=HOLDS"), "a store has outcome"),
        ((store, "--where", "HOLDS"), "condition must be a column"),
        ((store, "--where", "rounds<1o"), "condition on rounds must have a number, e.g."),
        ((store, "--where", "rounds=nan"), "condition on rounds must have a number, e.g."),
        ((store, "--where", "outcome=1"), "condition on outcome must have a text, e.g."),
        ((store, "--out", "table.txt"), "out must end in .csv or .parquet"),
    ):
        status, said, errors = fltheory_command("results", *arguments)
        assert (status, said) == (2, "")
        assert message in errors
        assert errors.count("\n") == 1
