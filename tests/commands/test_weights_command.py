"""fltheory weights: table, figure, bad files."""

from __future__ import annotations

from pathlib import Path

import pytest

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
        ("availability = [0.5, 0.5\n", "problem.toml: must be TOML, got: "),
        (
            "a = 1.0\nb = 1.0\nbias = 1.0\n",
            "the file must have availability, got a, b, bias",
        ),
        ("", "the file must have availability, a, b, bias, got nothing"),
        (WEIGHTS + "tau = 1.0\n", "the file has total, a, got 'tau'"),
        (WEIGHTS.replace("0.5", "0.0"), "is infinite, got 0 for client 1"),
        (WEIGHTS.replace("0.5", "nan"), "availability must be finite, got nan"),
        (WEIGHTS.replace("[0.9, 0.5, 0.25]", "'often'"), "availability must be a real array"),
        (WEIGHTS + "target_weights = [0.5, 0.5]\n", "target_weights must have shape (3,)"),
        (WEIGHTS + "total = 0\n", "total must be a finite number above 0, got 0"),
        (WEIGHTS.replace("b = 1.0", "b = 'one'"), "b must be a number from 0 to 1e+100"),
        (WEIGHTS.replace("bias = 1e9", "bias = -1"), "bias must be a number from 0 to 1e+100"),
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
    def stuck(problem: object, method: str) -> None:
        raise ArithmeticError("the weights have a KKT residual")

    monkeypatch.setattr("fltheory.weights.client_weights.solve", stuck)
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


LOG = "round,ann,bob,cid,dora\n0,1,0,1,0\n1,1,1,0,0\n2,1,0,0,0\n3,0,1,0,0\n"


def test_a_log_and_sizes_give_every_client_its_weight(fltheory_command, tmp_path: Path) -> None:
    """Online in 3, 2, 1 and 0 of 4 rounds; sizes 100, 50, 25, 25 of 200. T = 4, eta = 1/4."""
    log, sizes = tmp_path / "log.csv", tmp_path / "sizes.csv"
    out, figure = tmp_path / "weights.csv", tmp_path / "trade-off.svg"
    log.write_text(LOG)
    sizes.write_text("client,size\nbob,50\nann,100\ncid,25\ndora,25\n")
    status, text, _ = fltheory_command(
        *("weights", str(log), "--sizes", str(sizes), "--rounds", "4"),
        *("--out", str(out), "--figure", str(figure), "--method", "cvxpy"),
    )
    assert status == 0
    assert "targets: sizes divided by their sum, 200" in text
    assert "never online: 1 of 4 clients (dora) with 0.125 of the target" in text
    assert "so a_k = 0.25 pi_k (" in text
    assert "b = 2.4184 (" in text
    assert "bias = 0.5 (" in text
    assert ", cvxpy)" in text
    rows = [line.split(",") for line in out.read_text().splitlines()]
    assert rows[0] == ["client", "availability", "target", "weight", "importance"]
    assert [row[:3] for row in rows[1:]] == [
        ["ann", "0.75", "0.5"],
        ["bob", "0.5", "0.25"],
        ["cid", "0.25", "0.125"],
        ["dora", "0.0", "0.125"],
    ]
    assert sum(float(row[3]) for row in rows[1:]) == pytest.approx(1)
    assert rows[4][3:] == ["0.0", "0.0"]
    assert "bias error" in figure.read_text()


def test_without_sizes_targets_are_equal_and_it_is_said(fltheory_command, tmp_path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(LOG)
    status, text, _ = fltheory_command("weights", str(log))
    assert status == 0
    assert text.startswith("targets: equal, as no --sizes are given\n")
    assert "4 rounds of 1 local step" in text


@pytest.mark.parametrize(
    ("sizes", "arguments", "message"),
    [
        ("client,size\nann,1\n", (), "none for 'bob', 'cid', 'dora'"),
        ("client,size\neve,1\n", (), "none for 'ann', 'bob', 'cid' and 1 more"),
        ("client|size\nann|1\n", (), "line 1: the header must be client,size"),
        ("client,size\nann,-1\n", (), "line 2: size must be a positive number, got '-1'"),
        ("client,size\n", ("--condition", "0.5"), "condition must be"),
        ("client,size\n", ("--out", "weights.pdf"), "out must end in .csv or .png or .svg"),
    ],
)
def test_bad_sizes_are_one_line(fltheory_command, tmp_path, sizes, arguments, message) -> None:
    log, path = tmp_path / "log.csv", tmp_path / "sizes.csv"
    log.write_text(LOG)
    path.write_text(sizes)
    status, out, err = fltheory_command("weights", str(log), "--sizes", str(path), *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_sizes_belong_to_a_log(fltheory_command, tmp_path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(WEIGHTS)
    status, _, err = fltheory_command("weights", str(path), "--sizes", str(path))
    assert status == 2
    assert "sizes must be given only with a log" in err
