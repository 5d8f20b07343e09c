"""fltheory cutoff: the best and the paper's."""

from __future__ import annotations

from pathlib import Path


def test_cutoff_shows_the_best_and_the_papers(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "cutoff.svg"
    status, out, _ = fltheory_command("cutoff", "0.1", "0.5", "--rounds", "100", "--out", str(path))
    assert status == 0
    assert "log_c T (Corollary 4)" in out
    assert path.is_file()
    status, _, err = fltheory_command("cutoff", "1.5")
    assert (status, err) == (2, "fltheory: p must be in (0, 1], got 1.5 for client 0\n")


def test_a_negative_number_is_no_option(fltheory_command) -> None:
    status, _, err = fltheory_command("cutoff", "-0.1")
    assert (status, err) == (2, "fltheory: p must be in (0, 1], got -0.1 for client 0\n")


def test_a_client_that_is_always_there_has_no_error_to_compare(fltheory_command) -> None:
    status, out, _ = fltheory_command("cutoff", "1")
    assert status == 0
    assert "nan" not in out
