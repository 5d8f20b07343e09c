"""Whoever reads or writes a file may say where as text, or as a path; nothing else is one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from fltheory import engines, logs, participation, report, sweep, theorems, verify, worst_case

ROOT = Path(__file__).resolve().parents[1]
WITNESS = ROOT / "verification" / "witnesses" / "sa-fl-4.json"
OWN = """\
from dataclasses import replace

from fltheory.theorems import get

STATEMENTS = (replace(get("fedar/weight"), id="own/1"),)
"""


def _files_in(folder: Path) -> None:
    """Write a file of each kind."""
    setting = theorems.get("sa-fl/5").regimes["i.i.d."].setting
    engines.write_setting(folder / "setting.toml", setting)
    (folder / "sweep.toml").write_text(
        'statements = ["sa-fl/5"]\n'
        + (folder / "setting.toml").read_text()
        + "\n[grid]\nrounds = [1, 2]\n"
    )
    (folder / "masks.csv").write_text("1,0\n0,1\n")
    np.savez(folder / "masks.npz", masks=np.eye(2, dtype=bool))
    (folder / "log.csv").write_text("client,from,to\nann,0,90\nbob,60,180\n")
    (folder / "own.py").write_text(OWN)
    (folder / "proof.json").write_text(json.dumps({"kind": "something else"}))
    (folder / "kept.json").write_text(WITNESS.read_text())
    sweep.Store(folder / "store.db", create=True).__exit__(None, None, None)


READERS: dict[str, tuple[Callable[[Any], object], str]] = {
    "read_setting": (engines.read_setting, "setting.toml"),
    "read_sweep": (sweep.read_sweep, "sweep.toml"),
    "Store": (sweep.Store, "store.db"),
    "read_results": (sweep.read_results, "store.db"),
    "Trace.from_csv": (participation.Trace.from_csv, "masks.csv"),
    "Trace.from_npz": (participation.Trace.from_npz, "masks.npz"),
    "read_log": (lambda path: logs.read_log(path, round_length=60), "log.csv"),
    "load": (theorems.load, "own.py"),
    "read_proof": (worst_case.read_proof, "proof.json"),
    "read_certificate": (verify.read_certificate, "kept.json"),
}
WRITERS: dict[str, tuple[Callable[[Any], object], str]] = {
    "write_setting": (
        lambda path: engines.write_setting(path, theorems.get("sa-fl/5").regimes["i.i.d."].setting),
        "written.toml",
    ),
    "write_figure": (lambda path: report.write_figure(Figure(), path), "written.svg"),
    "write_log": (
        lambda path: logs.write_log(path, logs.read_log("log.csv", round_length=60)),
        "written.csv",
    ),
}


@pytest.mark.usefixtures("own_theorems_forgotten")
@pytest.mark.parametrize("name", READERS)
def test_a_file_is_read_by_text_and_by_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _files_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    read, file = READERS[name]
    assert type(read(file)) is type(read(Path(file)))
    with pytest.raises(ValueError, match="must be a path, as a string or a Path, got 3"):
        read(3)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_written_by_text_and_by_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _files_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    write, file = WRITERS[name]
    write(file)
    first = Path(file).read_bytes()
    Path(file).unlink()
    write(Path(file))
    assert Path(file).read_bytes() == first
    with pytest.raises(ValueError, match="must be a path, as a string or a Path, got b'out'"):
        write(b"out")
