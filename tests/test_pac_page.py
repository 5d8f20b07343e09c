"""What the page on PAC learnability shows is true now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fltheory.learnability import impossibility
from fltheory.learnability.impossibility import alike_clients, drawn_clients, split_clients
from fltheory.theorems.registry import ids
from fltheory.verify.baseline import read_baseline

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "pac.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the rows of the table whose heading begins with ``heading``."""
    after = PAGE[PAGE.index(f"| {heading}") :].splitlines()[2:]
    end = next(i for i, line in enumerate(after) if not line.startswith("|"))
    return [[part.strip() for part in line.strip("|").split("|")] for line in after[:end]]


def value(text: str) -> float:
    """Return a number written on the page: a fraction, a decimal, or one minus a number."""
    if text.startswith("1 - "):
        return 1 - float(text[4:])
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


@pytest.mark.parametrize("row", rows("M, n, m"), ids=lambda row: row[0])
def test_figures_of_the_construction(row: list[str]) -> None:
    system, *figures = row
    M, n, m = (int(part) for part in system.split(","))
    found = impossibility(M, n, m)
    assert found.paper_event is not None
    computed = (
        found.epsilon,
        found.paper_event,
        found.hidden_probability,
        found.minimax_probability,
    )
    for shown, number in zip(figures, computed, strict=True):
        assert value(shown) == pytest.approx(float(number), rel=1e-4)
        if shown.startswith("1 - "):
            assert 1 - value(shown) == pytest.approx(float(1 - number), rel=0.1)


def test_figures_of_clients() -> None:
    makers = (impossibility, split_clients, drawn_clients, alike_clients)
    for row, make in zip(rows("M = 10"), makers, strict=True):
        found = make(10, 20, 5)
        assert value(row[1]) == found.rare_probability
        assert value(row[2]) == pytest.approx(float(found.hidden_probability), rel=0.1)


def test_every_statement_has_a_row_with_its_verdict() -> None:
    refuted = {
        theorem
        for (theorem, _, _), record in read_baseline(ROOT / "verification" / "baseline.csv").items()
        if record.outcome == "REFUTED"
    }
    shown = {}
    for row in rows("statement"):
        (name,) = re.findall(r"`(pac/[^`]+)`", row[0])
        shown[name] = "refuted" in row[1]
    assert set(shown) == {name for name in ids() if name.startswith("pac/")}
    assert {name for name, is_refuted in shown.items() if is_refuted} == {
        name for name in refuted if name.startswith("pac/")
    }


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)#]+)\)", PAGE))
def test_figures_exist(path: str) -> None:
    assert (ROOT / "docs" / path).exists()
