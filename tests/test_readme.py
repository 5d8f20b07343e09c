"""What the README, the home page and the overview show is true now."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docs.scripts import doors
from fltheory import theorems, verify
from fltheory.logs import write_log
from fltheory.report.terminal.verdict_table import ratio_text, remark
from fltheory.verify import Outcome, check

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOME = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
OVERVIEW = (ROOT / "docs" / "overview.md").read_text(encoding="utf-8")
ROWS = [
    [part.strip().strip("*") for part in line.strip("|").split("|")]
    for line in OVERVIEW.splitlines()
    if re.match(r"\| (sa-fl|ca-fed)/", line)
]

PRINTED = {  # the README's words for a theorem, and the setting its row is about
    "SA-FL (ICML 2024), Theorem 4": ("sa-fl/4", "long horizon"),
    "SA-FL (ICML 2024), Theorem 5": ("sa-fl/5", "other units"),
    "CA-Fed (arXiv 2301.04632), Theorem 2": ("ca-fed/2", "started at the optimum"),
}


def test_the_readme_is_short_and_begins_with_what_a_stranger_needs() -> None:
    assert len(README) <= 6000
    assert all(word in README[:1500] for word in ("federated learning", "| error 0", "pip install"))


@pytest.mark.parametrize("name", PRINTED)
def test_what_the_readme_says_is_refuted_is(name: str) -> None:
    shown = re.search(rf"^\| \[{re.escape(name)}\].*\| error (.+?) \|", README, re.MULTILINE)
    identifier, regime = PRINTED[name]
    statement = theorems.get(identifier, "printed")
    verdict = check(statement, statement.regimes[regime].setting)
    assert shown is not None
    assert remark(verdict) == f"truth {shown[1]}"
    assert verdict.outcome is Outcome.REFUTED


@pytest.mark.parametrize(
    "door",
    # The log's takes a quarter of a minute.
    [*doors.DOORS[:2], pytest.param(doors.DOORS[2], marks=pytest.mark.soundness)],
    ids=lambda door: door.command.split()[1],
)
def test_a_door_prints_what_is_shown(door: doors.Door) -> None:
    """In the README and on the home page; only times are left open."""
    written = doors.doors_on("README.md")[doors.DOORS.index(door)]
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(written, door.text(door.shown()), flags)


def test_the_home_page_has_the_doors_of_the_readme() -> None:
    assert doors.doors_on("docs/index.md") == doors.doors_on("README.md")
    assert len(doors.doors_on("README.md")) == len(doors.DOORS)


def test_the_log_is_what_its_script_makes(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "docs" / "examples" / "time_zones_log.py"))
    write_log(tmp_path / "log.csv", script["time_zones_log"](clients=20, rounds=14 * 24))
    assert (tmp_path / "log.csv").read_bytes() == (
        ROOT / "docs" / "examples" / "log.csv"
    ).read_bytes()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soundness)])
def test_the_figure_shows_what_its_description_says(
    monkeypatch: pytest.MonkeyPatch, every: bool
) -> None:
    """Where refutations begin and end, and in soundness wherever it has a point."""
    (low, high) = re.findall(r"refuted where q is between ([\d.]+) and ([\d.]+)\]", HOME)[0]
    whole = verify.curve

    def at_the_ends(statement: Any, at: Any, values: Any, **options: Any) -> Any:
        near = [q for q in values if min(abs(q - float(low)), abs(q - float(high))) < 0.11]
        return whole(statement, at, np.array(near), **options)

    if not every:
        monkeypatch.setattr(verify, "curve", at_the_ends)
    curve = runpy.run_path(str(ROOT / "docs" / "examples" / "refutation_figure.py"))["curve"]
    refuted = [
        value
        for value, outcome in zip(curve.values, curve.outcomes, strict=True)
        if outcome is Outcome.REFUTED
    ]
    assert (min(refuted), max(refuted)) == pytest.approx((float(low), float(high)))
    assert (abs(curve.sampled - curve.truth) <= curve.interval).all()


def test_the_table_has_rows() -> None:
    assert len(ROWS) >= 4


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_rows_of_the_table_are_computed_now(row: list[str]) -> None:
    identifier, reading, regime, outcome, grade, ratio, failed = row
    statement = theorems.get(identifier, reading)
    verdict = check(statement, statement.regimes[regime].setting)
    assert verdict.outcome.name == outcome
    assert verdict.evidence.grade.name.lower() == grade
    assert ratio_text(verdict) == ratio
    assert remark(verdict) == failed


def _bounds_for_every_loss(text: str) -> dict[str, tuple[str, str]]:
    """Return the verdict over all rounds, and the residual over the least, by row."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return {row[0]: (row[2].lower(), row[-3 if len(row) > 3 else 1]) for row in rows if row[2:]}


def test_bounds_for_every_loss_are_those_of_their_page() -> None:
    """Rows with exclusions are all there, those that speak against the least as well."""
    text = (ROOT / "docs" / "every-loss.md").read_text(encoding="utf-8")
    page = _bounds_for_every_loss(
        text.split("<!-- table: begin -->")[1].split("<!-- table: end")[0]
    )
    shown = _bounds_for_every_loss(OVERVIEW.split("| ten clients |")[1].split("\n\n")[0])
    excluded = {
        name: row for name, row in page.items() if re.search(r"\b(one|two|six)\b.* excl", name)
    }
    assert len(excluded) == 6
    assert {name: shown[name] for name in excluded} == excluded
    others = [
        float(residual)
        for name, (verdict, residual) in page.items()
        if name not in excluded and verdict == "proved"
    ]
    assert len(others) == 8
    assert shown["none excluded, eight settings"] == (
        "proved",
        f"{min(others):g} to {max(others):,g}",
    )


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", README, flags=re.MULTILINE))
def test_named_commands_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(path: str) -> None:
    assert (ROOT / path).exists()
