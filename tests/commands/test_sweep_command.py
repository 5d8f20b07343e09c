"""``fltheory sweep``: a store from a file, gone on with; bad input is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fltheory.sweep import Store
from fltheory.sweep.cell import rows_of
from tests.sweep.designs import as_toml


@pytest.fixture
def design(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(as_toml())
    return path


def test_a_sweep_is_run_once_and_grows_with_its_file(fltheory_command, design, tmp_path) -> None:
    out = tmp_path / "store.db"
    status, said, _ = fltheory_command("sweep", design, "--out", out, "--processes", 1)
    assert status == 0
    lines = said.splitlines()
    assert lines[0] == "8 cells, 8 of them new"
    assert sum(int(line.split()[-1]) for line in lines[1:-2]) == 8
    assert lines[-2:] == [f"written to {out}", f"fltheory results {out} shows them"]
    design.write_text(as_toml(x0=0.5, grid={"rounds": [1]}))
    _, said, _ = fltheory_command("sweep", design, "--out", out, "--processes", 1)
    assert said.startswith("2 cells, 2 of them new")
    design.write_text(as_toml())
    _, said, _ = fltheory_command("sweep", design, "--out", out, "--processes", 1)
    assert said.startswith("8 cells, 0 of them new")
    with Store(out) as store:
        assert len(store) == 10


def test_what_failed_and_other_versions_are_told(
    fltheory_command, design, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "store.db"

    def faulty(task):
        if task.cells[0].setting["rounds"] == 2:
            raise KeyError("a fault")
        return rows_of(task)

    monkeypatch.setattr("fltheory.sweep.running.rows_of", faulty)
    status, said, _ = fltheory_command("sweep", design, "--out", out, "--processes", 1)
    assert status == 1
    assert "4 cells, 4 of them new" in said
    assert "4 more could not be checked" in said
    assert "KeyError: 'a fault'" in said
    monkeypatch.setattr("fltheory.sweep.running.rows_of", rows_of)
    monkeypatch.setattr("fltheory.sweep.cell.versions", lambda: "fltheory 9")
    status, said, _ = fltheory_command("sweep", design, "--out", out, "--processes", 1)
    assert status == 0
    assert "4 of them were made with fltheory 0." in said


def test_an_interrupt_says_what_is_kept(
    fltheory_command, design, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "store.db"

    def interrupted(task):
        with Store(out) as store:
            if len(store):
                raise KeyboardInterrupt
        return rows_of(task)

    monkeypatch.setattr("fltheory.sweep.running.rows_of", interrupted)
    status, said, errors = fltheory_command("sweep", design, "--out", out, "--processes", 1)
    assert (status, said) == (130, "")
    assert (
        errors == f"fltheory: interrupted, 2 cells are in {out}; rerun the same command to resume\n"
    )


def test_bad_input_is_one_line_and_writes_nothing(fltheory_command, design, tmp_path) -> None:
    foreign = tmp_path / "foreign.db"
    foreign.write_text("no store")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(as_toml(grid={"algorithm": {"clint_lr": [0.1]}}))
    before = sorted(tmp_path.iterdir())
    for arguments, message in (
        ((tmp_path / "none.toml",), "file of a sweep must exist"),
        ((wrong, "--out", tmp_path / "x.db"), "algorithm has client_lr"),
        ((design, "--out", foreign), "not a file of fltheory sweep; nothing was written"),
        ((design, "--out", tmp_path), "out must be a file"),
        ((design, "--dask", "tcp://x:1", "--processes", "2"), "processes must be left out"),
        ((design, "--dask", "nonsense", "--out", tmp_path / "x.db"), "dask "),
        ((design, "--processes", "0"), "processes"),
    ):
        status, said, errors = fltheory_command("sweep", *arguments)
        assert (status, said) == (2, "")
        assert message in errors
        assert errors.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
    assert foreign.read_text() == "no store"
