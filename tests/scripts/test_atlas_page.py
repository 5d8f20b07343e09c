"""The page of the atlas: it is of today, and says what is recorded."""

from __future__ import annotations

from importlib import import_module

from fltheory.theorems import atlas
from fltheory.verify.baseline import read_baseline

script = import_module("docs.scripts.atlas")


def test_the_page_is_of_today() -> None:
    """All but the comparison at own steps is made again, from verdicts and searches on record."""
    page = script.PAGE.read_text(encoding="utf-8")
    baseline, searches = read_baseline(script.BASELINE), script.read_searches(script.SEARCHES)
    again = "python docs/scripts/atlas.py"
    assert script.atlas_page(baseline, searches, script.kept_part(page)) == page, again
    for paper in script.drawn_papers():
        assert script.PAGE.with_name(f"atlas-{paper}.svg").is_file(), again


def test_every_statement_has_a_row_a_paper_a_search_and_five_regimes() -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    searches = script.read_searches(script.SEARCHES)
    for one in atlas.STATEMENTS:
        assert page.count(f"| `{one.id}` | {one.reading} |") == 1
        assert one.id.partition("/")[0] in script.PAPERS
        assert (one.id, one.reading) in searches
        assert len(one.regimes) >= 5


def test_six_theorems_stand_side_by_side() -> None:
    kept = script.kept_part(script.PAGE.read_text(encoding="utf-8"))
    rows = [line for line in kept.splitlines() if line.startswith("| ") and " (" in line]
    assert len({row.split(" (")[0] for row in rows}) >= 6
