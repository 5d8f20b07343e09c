"""Commands on PAC learnability, as a user calls them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fltheory import cli


@pytest.fixture
def command(monkeypatch, capsys):
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fltheory", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return run


def test_impossible_shows_fractions(command) -> None:
    status, out, _ = command("pac", "impossible", "2", "1", "1")
    assert status == 0
    assert "epsilon = 1/16" in out
    assert "15/32" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("impossible", "10", "20", "10"), "m must be below M = 10"),
        (("impossible", "10", "0", "5"), "n must be a whole number of at least 1, got 0"),
        (("figures", "--suffix", ".pdf", "--replicas", "2"), "out must end in .png or .svg"),
    ],
)
def test_bad_input_is_one_line(command, tmp_path: Path, arguments, message: str) -> None:
    extra = ("--folder", str(tmp_path)) if arguments[0] == "figures" else ()
    status, _, err = command("pac", *arguments, *extra)
    assert status == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_figures_are_written(command, tmp_path: Path) -> None:
    status, out, _ = command("pac", "figures", "--folder", str(tmp_path), "--replicas", "10")
    assert status == 0
    assert "clients' target apart" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "pac-impossibility.svg",
        "pac-no-worse.svg",
        "pac-server-data.svg",
    ]


def test_verify_shows_rational_verdicts_and_writes_them(command, tmp_path: Path) -> None:
    path = tmp_path / "verify.json"
    status, out, _ = command("verify", "pac/1", "pac/1-sum", "--json", str(path))
    assert status == 0
    assert "rational" in out
    assert "1 against 1/4" in out
    cells = json.loads(path.read_text())["cells"]
    of_theorem = [cell for cell in cells if cell["theorem"] == "pac/1"]
    assert {cell["evidence"]["grade"] for cell in of_theorem} == {"rational"}
    assert {cell["direction"] for cell in of_theorem} == {">"}
    assert {cell["outcome"] for cell in of_theorem} == {"HOLDS", "INAPPLICABLE"}


def test_explain_shows_claim_direction_and_order(command) -> None:
    status, out, _ = command("explain", "pac/1-rare")
    assert status == 0
    assert "s_hat ~ B(Mn, 4 epsilon) >" in out
    assert "tight reading" in out
    _, out, _ = command("explain", "pac/lemma-2")
    assert "= O(1/n_T)" in out
    assert "REFUTED: apart" in out


def test_derive_says_that_nothing_is_recorded(command) -> None:
    status, out, _ = command("derive", "pac/1", "--reading", "printed")
    assert status == 0
    assert "none are recorded" in out


@pytest.mark.parametrize("name", ["falsify", "repair", "map"])
def test_what_is_about_runs_declines(command, name: str) -> None:
    options = ("--regime", "half take part") if name == "map" else ()
    status, _, err = command(name, "pac/1", *options)
    assert status == 2
    assert "pac/1" in err
