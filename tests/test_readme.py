"""What the README shows is true now."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fltheory import theorems, verify
from fltheory.report.terminal.verdict_table import ratio_text, remark
from fltheory.verify import Outcome, check

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = [
    [part.strip().strip("*") for part in line.strip("|").split("|")]
    for line in README.splitlines()
    if re.match(r"\| (sa-fl|ca-fed)/", line)
]


REFUTED, HOLDS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("code", "outcome", "lines"), [(REFUTED, "REFUTED", 5), (HOLDS, "HOLDS", 10)]
)
def test_an_example_runs_and_is_short(capsys, code: str, outcome: str, lines: int) -> None:
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.startswith(f"{outcome} ")
    assert len([line for line in code.splitlines() if line.strip()]) <= lines


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soundness)])
def test_the_figure_shows_what_its_description_says(
    monkeypatch: pytest.MonkeyPatch, every: bool
) -> None:
    """Where refutations begin and end, and in soundness wherever it has a point."""
    (low, high) = re.findall(r"refuted where q is between ([\d.]+) and ([\d.]+)\]", README)[0]
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
    shown = _bounds_for_every_loss(README.split("| ten clients |")[1].split("\n\n")[0])
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
