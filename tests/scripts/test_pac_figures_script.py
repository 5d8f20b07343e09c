"""docs/scripts/pac_figures.py: figures and table."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from docs.scripts import pac_figures


def test_figures_are_written(fltheory_command, monkeypatch, tmp_path: Path) -> None:
    """From few samples: what figures of many show is compared elsewhere."""
    for name in ("impossibility_figure", "server_data_figure", "no_worse_figure"):
        drawn = partial(getattr(pac_figures, name), replicas=20)
        monkeypatch.setattr(pac_figures, name, drawn)
    status, out, _ = fltheory_command("pac_figures.py", "--out", str(tmp_path), "--replicas", "2")
    assert status == 0
    assert "clients' target apart" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "pac-impossibility.svg",
        "pac-no-worse.svg",
        "pac-server-data.svg",
    ]


def test_a_wrong_ending_is_one_line_and_nothing_is_written(
    fltheory_command, tmp_path: Path
) -> None:
    options = ("--out", tmp_path, "--suffix", ".pdf", "--replicas", "2")
    status, out, err = fltheory_command("pac_figures.py", *options)
    assert (status, out) == (2, "")
    assert "suffix must be one of" in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_a_file_is_one_line_before_the_work(
    fltheory_command, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    status, out, err = fltheory_command("pac_figures.py", "--out", tmp_path / "taken")
    assert (status, out) == (2, "")
    assert "out must be a path that can be written to" in err
