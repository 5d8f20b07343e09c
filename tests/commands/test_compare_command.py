"""``fltheory compare``: table, notes, figure and JSON of every statement on a setting."""

from __future__ import annotations

import json

import pytest

from fltheory import theorems
from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, write_setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem


@pytest.fixture
def setting(tmp_path):
    path = tmp_path / "mine.toml"
    write_setting(path, theorems.get("sa-fl/5").regimes["q = 0"].setting)
    return path


def test_everything_is_shown_and_written(fltheory_command, setting, tmp_path) -> None:
    places = tmp_path / "out.json", tmp_path / "out.svg"
    status, out, _ = fltheory_command(
        "compare", setting, "--json", places[0], "--figure", places[1]
    )
    assert status == 0
    rows = [line for line in out.splitlines() if line.startswith("│ sa-fl/5")]
    assert [row.split("│")[3].strip() for row in rows] == ["HOLDS", "HOLDS", "INAPPLICABLE"]
    assert "provable for every client loss" in out
    assert "does not apply: ca-fed/2 (printed)" in out
    document = json.loads(places[0].read_text())
    assert {cell["theorem"] for cell in document["cells"]} >= {"sa-fl/4", "sa-fl/5"}
    assert {"theorem", "reading", "reason"} == set(document["silent"][0])
    assert document["provable"] > 0
    assert places[1].read_text().startswith("<?xml")


def test_ids_choose_statements(fltheory_command, setting) -> None:
    status, out, _ = fltheory_command("compare", setting, "sa-fl/5")
    assert status == 0
    assert "sa-fl/4" not in out
    assert "silent" not in out


def test_where_no_statement_speaks_one_line_says_so(fltheory_command, setting, tmp_path) -> None:
    figure = tmp_path / "none.svg"
    status, out, _ = fltheory_command("compare", setting, "scaffold", "--figure", figure)
    assert status == 0
    assert "none of the 9 statements is about this setting; reasons:" in out.splitlines()
    assert "│" not in out
    assert f"nothing written to {figure}: setting must have a statement" in out
    assert not figure.exists()
    assert "does not apply: scaffold/strongly-convex" in out


def test_of_one_statement_nobody_counts(fltheory_command, setting) -> None:
    _, out, _ = fltheory_command("compare", setting, "fedavg-li/distance")
    assert out.startswith("the statement is not about this setting; reasons:")


def test_one_reading(fltheory_command, setting) -> None:
    _, out, _ = fltheory_command("compare", setting, "sa-fl/5", "--reading", "derived")
    assert [line.split()[3] for line in out.splitlines() if "│ sa-fl/5" in line] == ["derived"]


def test_theorems_at_their_own_steps(fltheory_command, tmp_path) -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0], [3.0]])
    setting = tmp_path / "mine.toml"
    write_setting(setting, Setting(FedAvg(0.1, 2), problem, UniformSubset(3, 2), 9, [4.0]))
    places = tmp_path / "own.json", tmp_path / "own.svg"
    asked = ("compare", setting, "scaffold/convex", "fedavg-li/1", "--own-steps")
    status, out, _ = fltheory_command(
        *asked, "--measure", "distance", "--json", places[0], "--figure", places[1]
    )
    assert status == 0
    row = next(line for line in out.splitlines() if line.startswith("│ scaffold/convex"))
    assert [cell.strip() for cell in row.split("│")[2:4]] == [
        "printed, pseudo-code, derived",
        "HOLDS",
    ]
    assert "the bound times 2/mu" in out
    assert (
        "fedavg-li/1 (printed), fedavg-li/1 (from w_1): participation must include every client"
        in out
    )
    document = json.loads(places[0].read_text())
    (one,) = [one for one in document["over_rounds"] if "printed" in one["readings"]]
    assert document["measure"] == "distance"
    assert len(one["rounds"]) == len(one["truth"]) == len(one["bound"]) > 1
    assert places[1].read_text().startswith("<?xml")


def test_bad_input_is_one_line(fltheory_command, setting, tmp_path) -> None:
    for arguments, message in (
        ((tmp_path / "none.toml",), "file of a setting must exist"),
        ((setting, "sa-f"), "id must be a registered theorem"),
        ((setting, "--figure", "x.pdf"), "figure must end in .png or .svg"),
        ((setting, "--measure", "loss"), "--measure must be left out without --own-steps"),
        (
            (setting, "--own-steps", "--measure", "x"),
            "'--measure': 'x' is not one of 'loss', 'distance'",
        ),
    ):
        status, out, errors = fltheory_command("compare", *arguments)
        assert (status, out) == (2, "")
        assert message in errors
        assert errors.count("\n") == 1
