"""fltheory cutoff: the best and the paper's."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_cutoff_shows_the_best_and_the_papers(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "cutoff.svg"
    status, out, _ = fltheory_command(
        "cutoff", "0.1", "0.5", "--rounds", "100", "--figure", str(path)
    )
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


def test_a_log_gives_each_client_a_cutoff(fltheory_command, tmp_path: Path) -> None:
    """In 3, 1 and 0 of 4 rounds; FedAU's weights along them by hand.

    Ann's omega is 1 throughout without a cut-off above 1 being reached but in the last round, after
    whose beginning no weight is used: (3/4 - 1)^2. Bob's is 1, 1, then 2 if K is 2 or more, for two
    rounds: (2 (3/4)^2 + 2 (1/2)^2) / 4; if K = 1, 1 throughout: (3/4)^2.
    """
    log, figure = tmp_path / "log.csv", tmp_path / "cutoff.svg"
    log.write_text("round,ann,bob,cid\n0,1,0,0\n1,1,1,0\n2,1,0,0\n3,0,0,0\n")
    status, out, _ = fltheory_command("cutoff", str(log), "--figure", str(figure))
    assert status == 0
    assert "in FedAU: along 4 of the log's 4 rounds" in out
    rows = {
        cells[0]: cells[1:]
        for line in out.splitlines()
        if len(cells := [cell.strip() for cell in line.strip("│").split("│")]) == 5
    }
    assert rows["ann"][:3] == ["0.75", "1", "0.0625"]
    assert rows["bob"][:3] == ["0.25", "2", f"{(2 * 0.75**2 + 2 * 0.5**2) / 4:.6g}"]
    assert rows["cid"] == ["0", "-", "-", "-"]
    assert "never online: 1 of 3 clients" in out
    assert "<svg" in figure.read_text()
    status, _, err = fltheory_command("cutoff", str(log), "--rounds", "5")
    assert status == 2
    assert "rounds must be a whole number of at most 4" in err


def test_what_is_no_number_and_no_log_is_one_line(fltheory_command, tmp_path: Path) -> None:
    status, _, err = fltheory_command("cutoff", "0.5", "log.csv")
    assert (status, err) == (
        2,
        "fltheory: p must be numbers, or one log of who was online, got 'log.csv'\n",
    )
    status, _, err = fltheory_command("cutoff", str(tmp_path / "none.csv"))
    assert status == 2
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["cutoff", "weights"])
def test_rounds_of_a_log_may_be_longer(fltheory_command, tmp_path, command: str) -> None:
    """In rounds of 10 ann is there in 2 of 4, bob in all."""
    log = tmp_path / "log.csv"
    log.write_text("client,from,to\nann,0,20\nbob,0,40\n")
    status, out, err = fltheory_command(command, log, "--round-length", "10", "--rounds", "4")
    assert (status, err) == (0, "")
    (ann,) = [line for line in out.splitlines() if " ann " in line]
    assert " 0.5 " in ann
    for wrong in ("0.5", "problem.toml"):
        status, _, err = fltheory_command(command, wrong, "--round-length", "10")
        assert status == 2
        assert err.count("\n") == 1
