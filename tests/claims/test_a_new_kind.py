"""A kind of claim that nothing here was written for is verified, explained, drawn and refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fltheory import verify
from fltheory.claims.statement import unit_flags
from fltheory.report.html.html_report import html_report
from fltheory.report.paper_page import paper_page
from fltheory.report.verdict_file import MadeBy
from fltheory.verify import (
    certificate,
    check_regimes,
    falsify,
    map_region,
)
from tests.claims import never_rises

FILE = str(Path(never_rises.__file__))
CLAIM = never_rises.STATEMENTS[0]
SETTING = CLAIM.regimes["large"].setting
Run = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.usefixtures("own_theorems_forgotten")


def test_the_table_has_its_verdicts(fltheory_command: Run, tmp_path: Path) -> None:
    files = {kind: tmp_path / f"table.{kind}" for kind in ("json", "csv", "html")}
    written = [part for kind, path in files.items() for part in (f"--{kind}", str(path))]
    status, out, _ = fltheory_command("--load", FILE, "verify", "own/never-rises", *written)
    assert status == 0
    assert "3 cells: 1 HOLDS, 1 REFUTED, 1 INAPPLICABLE" in out
    cells = {cell["regime"]: cell for cell in json.loads(files["json"].read_text())["cells"]}
    # (1 - eta)^2 of gradient descent on x^2 / 2.
    assert {name: cell["truth"] for name, cell in cells.items()} == {
        "small": 0.25,
        "large": 4.0,
        "too large": 16.0,
    }
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    assert [row["outcome"] for row in rows] == ["HOLDS", "REFUTED", "INAPPLICABLE"]
    assert "largest factor of a round" in files["html"].read_text()


def test_it_is_explained(fltheory_command: Run) -> None:
    status, out, _ = fltheory_command("--load", FILE, "explain", "own/never-rises")
    assert status == 0
    assert "largest factor of a round <=" in out
    assert "own/never-rises" in fltheory_command("--load", FILE, "theorems")[1]


def test_page_and_report_show_it() -> None:
    cells = check_regimes([CLAIM], processes=1)
    assert "largest&#x000A0;factor&#x000A0;of&#x000A0;a&#x000A0;round" in paper_page([CLAIM])
    assert "own/never-rises" in html_report([CLAIM], cells, (), MadeBy(0, 2000))


def test_what_makes_no_sense_for_it_is_refused_in_a_line() -> None:
    refusals: dict[str, Callable[[], object]] = {
        "a course is not one number": lambda: certificate(CLAIM, SETTING),
        "nothing says when a setting refutes": lambda: falsify(CLAIM),
        "must be an inequality over rounds, an order": lambda: verify.curve(CLAIM, SETTING),
        "must be an inequality over rounds, got": lambda: verify.curve(CLAIM, SETTING, bound=False),
        "must be an inequality about an algorithm": lambda: verify.curve(
            CLAIM, never_rises.descent, [0.1], variable="eta"
        ),
    }
    for message, asked in refusals.items():
        with pytest.raises(ValueError, match=message):
            asked()


def test_its_units_are_not_checked_and_its_map_is_drawn() -> None:
    from fltheory.verify import MapAxis

    assert unit_flags(CLAIM) == ()
    axes = MapAxis("rounds", (1, 2)), MapAxis("algorithm.client_lr", (0.5, 3.0))
    region = map_region(CLAIM, SETTING, *axes)
    assert [[verdict.outcome.name for verdict in row] for row in region.verdicts] == [
        ["HOLDS", "HOLDS"],
        ["REFUTED", "REFUTED"],
    ]
