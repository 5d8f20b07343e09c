"""fltheory weights: table, figure, bad files."""

from __future__ import annotations

from pathlib import Path

import pytest

import fltheory.weights

WEIGHTS = """
availability = [0.9, 0.5, 0.25]
a = 2.0
b = 1.0
bias = 1e9
"""


def test_weights_shows_them_and_writes_a_figure(fltheory_command, tmp_path: Path) -> None:
    """So heavy a bias gives q in proportion to 1 / pi: (1 / 0.9, 2, 4) / 7.11 and p = 1/3."""
    path, figure = tmp_path / "problem.toml", tmp_path / "weights.svg"
    path.write_text(WEIGHTS)
    status, out, _ = fltheory_command("weights", str(path), "--out", str(figure))
    assert status == 0
    assert [part.strip() for part in out.splitlines()[3].strip("│").split("│")] == [
        "0",
        "0.333333",
        "0.9",
        "0.15625",
        "0.333333",
    ]
    assert "relative KKT residual" in out
    assert figure.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("availability = [0.5, 0.5\n", "file must be TOML, got "),
        (
            "a = 1.0\nb = 1.0\nbias = 1.0\n",
            "availability must be given in the file, got a, b, bias",
        ),
        ("", "availability must be given in the file, got none"),
        (WEIGHTS + "tau = 1.0\n", "tau must be one of availability, a, b, bias, target_weights"),
        (WEIGHTS.replace("0.5", "0.0"), "is infinite, got 0 for client 1"),
        (WEIGHTS.replace("0.5", "nan"), "availability must be finite, got nan"),
        (WEIGHTS.replace("[0.9, 0.5, 0.25]", "'often'"), "availability must be a real array"),
        (WEIGHTS + "target_weights = [0.5, 0.5]\n", "target_weights must have shape (3,)"),
        (WEIGHTS + "total = 0\n", "total must be a finite number above 0, got 0"),
        (WEIGHTS.replace("b = 1.0", "b = 'one'"), "b must be a finite number of at least 0"),
        (WEIGHTS.replace("bias = 1e9", "bias = -1"), "bias must be a finite number of at least 0"),
    ],
)
def test_bad_weights_files_are_one_line(fltheory_command, tmp_path: Path, text, message) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(text)
    status, out, err = fltheory_command("weights", str(path))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_weights_that_are_not_found_are_one_line(fltheory_command, monkeypatch, tmp_path) -> None:
    def stuck(problem: object) -> None:
        raise ArithmeticError("the weights have a KKT residual")

    monkeypatch.setattr(fltheory.weights, "solve", stuck)
    path = tmp_path / "problem.toml"
    path.write_text(WEIGHTS)
    status, _, err = fltheory_command("weights", str(path))
    assert (status, err) == (2, "fltheory: the weights have a KKT residual\n")


def test_a_missing_weights_file_is_one_line(fltheory_command) -> None:
    status, _, err = fltheory_command("weights", "nowhere.toml")
    assert status == 2
    assert err == "fltheory: file must be an existing file, got 'nowhere.toml'\n"


def test_a_folder_is_no_problem_file(fltheory_command, tmp_path) -> None:
    status, _, err = fltheory_command("weights", str(tmp_path))
    assert (status, err) == (
        2,
        f"fltheory: file must be an existing file, got {str(tmp_path)!r}, a folder\n",
    )
