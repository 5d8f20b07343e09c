"""Cells as tests: which there are, what a report keeps of them, when they fail."""

from __future__ import annotations

import math

import pytest

from fltheory import theorems
from fltheory.testing import each_cell
from fltheory.testing.cells import failure, lines, properties, records, reported, rows_of
from fltheory.verify import Outcome
from tests.verify.cells import cell


def test_each_cell_is_every_regime_of_every_reading() -> None:
    mark = each_cell("sa-fl/5", "ca-fed/1").mark
    names, cells = mark.args
    assert names == ("statement", "regime")
    found = {(statement.id, statement.reading, regime) for statement, regime in cells}
    assert found == {
        (statement.id, statement.reading, regime)
        for statement in theorems.registered()
        if statement.id in ("sa-fl/5", "ca-fed/1")
        for regime in statement.regimes
    }
    assert len(found) == len(cells) == len(set(mark.kwargs["ids"]))
    with pytest.raises(ValueError, match="id must be a registered theorem"):
        each_cell("sa-f")


@pytest.mark.parametrize(
    "one",
    [
        cell(),
        cell(Outcome.REFUTED, truth=3.0, regime="rough: with, a comma"),
        cell(Outcome.INAPPLICABLE, truth=math.inf, bound=math.inf),
    ],
)
def test_a_report_keeps_what_a_record_does(one) -> None:
    """Also beside other properties, and after another cell's."""
    kept = [("else", 1), *properties(cell(regime="before")), *properties(one), ("verdict", "no")]
    (_, before), (key, record) = records(kept)
    assert (before.outcome, before.evidence) == ("HOLDS", cell().record.evidence)
    assert key == one.key
    expected = one.record
    assert (record.outcome, record.evidence) == (expected.outcome, expected.evidence)
    assert record.ratio == pytest.approx(expected.ratio, nan_ok=True)


def test_without_a_record_only_what_is_refuted_or_undecided_fails() -> None:
    fails = {outcome for outcome in Outcome if failure(cell(outcome), None) is not None}
    assert fails == {Outcome.REFUTED, Outcome.UNDECIDED}


def test_with_a_record_only_what_departs_fails() -> None:
    refuted = cell(Outcome.REFUTED, truth=3.0)
    record = {refuted.key: refuted.record}
    assert failure(refuted, record) is None
    assert "the verdict changed" in str(failure(cell(), record))
    assert "not recorded" in str(failure(refuted, {}))


def test_lines_stand_in_columns() -> None:
    rows = list(reported([*properties(cell()), *properties(cell(regime="a long name"))]))
    first, second = lines(rows)
    assert first.index("HOLDS") == second.index("HOLDS")
    assert first.startswith("t/1 (printed): calm")


def test_rows_of_a_paper_end_before_a_slash() -> None:
    recorded = {(name, "printed", "usual"): cell().record for name in ("a/1", "ab/1", "a/2")}
    assert {key[0] for key in rows_of("a", recorded)} == {"a/1", "a/2"}
    assert {key[0] for key in rows_of("a/1", recorded)} == {"a/1"}
