"""``fltheory compare``: table, notes, figure and JSON of every statement on a setting."""

from __future__ import annotations

import json

import pytest

from fltheory import theorems
from fltheory.engines import write_setting


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
    assert "silent: ca-fed/2 (printed)" in out
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
    assert "no statement speaks of this setting, of 9 asked; why not:" in out.splitlines()
    assert "│" not in out
    assert f"nothing written to {figure}: setting must have a statement" in out
    assert not figure.exists()
    assert "silent: scaffold/strongly-convex" in out


def test_one_reading(fltheory_command, setting) -> None:
    _, out, _ = fltheory_command("compare", setting, "sa-fl/5", "--reading", "derived")
    assert [line.split()[3] for line in out.splitlines() if "│ sa-fl/5" in line] == ["derived"]


def test_bad_input_is_one_line(fltheory_command, setting, tmp_path) -> None:
    for arguments, message in (
        ((tmp_path / "none.toml",), "file of a setting must exist"),
        ((setting, "sa-f"), "id must be a registered theorem"),
        ((setting, "--figure", "x.pdf"), "figure must end in .png or .svg"),
    ):
        status, out, errors = fltheory_command("compare", *arguments)
        assert (status, out) == (2, "")
        assert message in errors
        assert errors.count("\n") == 1
