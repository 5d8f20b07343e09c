"""Pages of papers, made from the registry."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fltheory import theorems
from fltheory.report.paper_page import paper_name, paper_page, papers
from fltheory.verify.baseline import read_baseline

pytest.importorskip("latex2mathml")

PAPERS = papers(theorems.registered())
BASELINE = Path(__file__).parents[2] / "verification" / "baseline.csv"


def test_every_registered_statement_is_on_its_paper_page() -> None:
    for statements in PAPERS.values():
        page = paper_page(statements)
        for statement in statements:
            assert f"{{#{statement.id}-{statement.reading}}}".replace("/", "-") in page
    assert sum(len(statements) for statements in PAPERS.values()) == len(theorems.registered())


def test_papers_are_told_apart_by_the_beginning_of_their_ids() -> None:
    assert {"sa-fl", "sa-fl-submission", "ca-fed"} <= set(PAPERS)
    assert paper_name(PAPERS["sa-fl"]) == "SA-FL (ICML 2024)"
    assert paper_name(PAPERS["ca-fed"]) == "CA-Fed (arXiv 2301.04632, later version)"
    assert paper_name(PAPERS["scaffold"]) == "SCAFFOLD (ICML 2020, arXiv v4)"
    names = [paper_name(statements) for statements in PAPERS.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_formulas_are_mathml(name: str) -> None:
    """Each is well-formed, holds no leftover LaTeX, and stands on one line."""
    page = paper_page(PAPERS[name])
    formulas = re.findall(r"<math.*?</math>", page)
    assert len(formulas) == page.count("<math") > 3
    for formula in formulas:
        ElementTree.fromstring(formula)
        assert "\\" not in re.sub(r"<[^>]*>", "", formula)


def test_all_hypotheses_and_the_note_are_there() -> None:
    theorem = theorems.get("sa-fl/5", reading="derived")
    page = paper_page([theorem])
    for hypothesis in theorem.hypotheses:
        assert f"- {hypothesis.name} ({hypothesis.source}):" in page
    assert r"4 q etabar^2/mu^2" in page


def test_recorded_verdicts_are_shown() -> None:
    page = paper_page([theorems.get("sa-fl/4")], read_baseline(BASELINE))
    assert "- **REFUTED** on 2 regimes: long horizon; other units" in page
    assert "REFUTED" not in paper_page([theorems.get("sa-fl/4")])
    page = paper_page([theorems.get("sa-fl/5")], read_baseline(BASELINE))
    assert "- **REFUTED** on 1 regime: other units" in page


def test_claimed_orders_name_their_theorem() -> None:
    page = paper_page([theorems.get("sa-fl/corollary-1")])
    assert "Under the hypotheses of sa-fl/4 (printed)," in page


def test_symbols_are_those_of_the_formulas() -> None:
    """Theorem 4 bounds a gradient: nothing in it is the distance at the start."""
    assert "||x_0 - x*||" not in paper_page([theorems.get("sa-fl/4")])
    assert "||x_0 - x*||" in paper_page([theorems.get("sa-fl/5")])
