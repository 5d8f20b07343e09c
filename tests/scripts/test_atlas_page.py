"""The page of the atlas: it is of today, and says what is recorded."""

from __future__ import annotations

from importlib import import_module

from fltheory import __version__, theorems
from fltheory.report.html.html_report import HOW_TO_CITE, HOW_TO_CORRECT
from fltheory.theorems import atlas
from fltheory.verify.baseline import read_baseline
from fltheory.worst_case.audits.run_audit import RUN_AUDITS

script = import_module("docs.scripts.atlas")


def test_the_page_is_of_today() -> None:
    """All but the comparison at own steps is made again, from verdicts and searches on record."""
    page = script.PAGE.read_text(encoding="utf-8")
    baseline, searches = read_baseline(script.BASELINE), script.read_searches(script.SEARCHES)
    again = "python docs/scripts/atlas.py"
    assert script.atlas_page(baseline, searches, script.kept_part(page)) == page, again
    for paper in script.PAPERS:
        assert script.PAGE.with_name(f"atlas-{paper}.svg").is_file(), again


def test_every_statement_has_a_row_a_paper_a_search_and_five_regimes() -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    searches = script.read_searches(script.SEARCHES)
    for one in atlas.STATEMENTS:
        assert page.count(f"| `{one.id}` | {one.reading} |") == 1
        assert one.id.partition("/")[0] in script.PAPERS
        assert (one.id, one.reading) in searches
        assert len(one.regimes) >= 5


def test_bounds_that_are_audited_have_their_factor() -> None:
    """As on the page of bounds for every loss, which has them to three digits."""
    page = script.PAGE.read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if "times |" in line]
    found = {row[0].strip("`"): row[-1] for row in rows}
    every_loss = (script.PAGE.parent / "every-loss.md").read_text(encoding="utf-8")
    for name in RUN_AUDITS:
        if theorems.registered(name)[0] not in atlas.STATEMENTS:
            continue
        (line,) = (line for line in every_loss.splitlines() if line.startswith(f"| `{name}` |"))
        assert found.pop(name) == f"{float(line.strip('| ').split(' | ')[-1]):.2g} times"
    assert not found


def test_the_page_says_how_to_cite_and_to_correct() -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    assert f"{HOW_TO_CITE}\n" in page
    assert HOW_TO_CORRECT in page
    assert f"version: {__version__}\n" in (script.ROOT / "CITATION.cff").read_text("utf-8")


def test_six_theorems_stand_side_by_side() -> None:
    kept = script.kept_part(script.PAGE.read_text(encoding="utf-8"))
    rows = [line for line in kept.splitlines() if line.startswith("| ") and " (" in line]
    assert len({row.split(" (")[0] for row in rows}) >= 6
