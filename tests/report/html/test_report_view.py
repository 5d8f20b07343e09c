"""What the report shows of statements, cells and certificates."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import cache

import pytest

from fltheory import theorems
from fltheory.grammar.assertion import Relation
from fltheory.report.html.report_view import MARKS, RegimeView, anchor, refuted, theorems_of
from fltheory.verify import Outcome
from tests.report.report_cases import case
from tests.verify.cells import cell


@cache
def views():
    """Return what the report shows of `report_cases`, made when a test first asks."""
    statements, cells, certificates, _ = case()
    return theorems_of(statements, cells, certificates)


def reading(identifier: str, name: str = "printed"):
    theorem = next(view for view in views() if view.id == identifier)
    return next(item for item in theorem.readings if item.name == name)


def test_every_cell_is_shown_once_under_its_statement() -> None:
    shown = [row.cell for view in views() for item in view.readings for row in item.rows]
    assert sorted(c.name for c in shown) == sorted(c.name for c in case()[1])
    assert all(
        row.cell.key[:2] == (item.statement.id, item.name)
        for view in views()
        for item in view.readings
        for row in item.rows
    )
    assert [item.name for item in views()[0].readings] == ["printed", "derived"]


def test_refuted_by_a_certificate_or_by_a_regime() -> None:
    names = [item.statement.id for item in refuted(views())]
    assert names[:2] == ["sa-fl/5", "ca-fed/appendix-d"]
    assert names[2].startswith("attack/")
    first, second = reading("sa-fl/5"), reading("ca-fed/appendix-d")
    sides = first.certificates[0].truth, first.certificates[0].bound
    assert sides == ("9/5 = 1.8", "3/2 = 1.5")
    assert first.witnesses == ()
    regimes = [row.cell.regime for row, _ in second.witnesses]
    assert regimes == ["noisy gradients", "unequal noise"]
    assert second.witnesses[0][1]["rounds"] == str(
        second.statement.regimes["noisy gradients"].setting.rounds
    )


def test_printed_statements_come_before_other_readings() -> None:
    statement = theorems.get("sa-fl/5", "derived")
    printed = theorems.get("ca-fed/1")
    cells = [
        cell(Outcome.REFUTED, theorem=s.id, reading=s.reading, regime=next(iter(s.regimes)))
        for s in (statement, printed)
    ]
    found = refuted(theorems_of([statement, printed], cells, ()))
    assert [item.name for item in found] == ["printed", "derived"]


def test_counts_and_the_tightest_regime_among_those_that_apply() -> None:
    derived = reading("sa-fl/5", "derived")
    assert {c.verdict: c.number for c in derived.counts} == {
        "REFUTED": 0,
        "UNDECIDED": 0,
        "HOLDS": 2,
        "INAPPLICABLE": 1,
    }
    assert derived.tightest is not None
    assert derived.tightest.cell.regime == "q = 0"
    assert reading("sa-fl/5").tightest is None


def test_a_claimed_order_shows_its_orders_and_the_bound_behind_them() -> None:
    order = reading("sa-fl/corollary-2")
    assert [line.name for line in order.claims] == ["in R"]
    assert order.from_bound
    assert order.is_order
    own = len(theorems.get("sa-fl/corollary-2").theorem.hypotheses)  # type: ignore[union-attr]
    assert len(order.hypotheses) >= own


def test_a_statement_of_a_new_kind_shows_what_it_has() -> None:
    new = reading("pac/1")
    (claim,) = new.claims
    assert "".join(claim.pieces).startswith('<span class="quantity">number of clients</span>')
    assert "≥" in claim.pieces[1]
    assert (new.hypotheses, new.definitions, new.symbols) == ((), (), ())
    assert (new.from_bound, new.is_order, new.left_in_words) == ((), False, "")
    assert [row.verdict for row in new.rows] == ["UNDECIDED"]


@pytest.mark.parametrize(
    ("truth", "bound", "is_rate", "value"),
    [
        (1.0, 2.0, False, "0.5"),
        (1.0, float("inf"), False, ""),
        (1.0, float("nan"), False, ""),
        (1.0, 0.0, False, "inf"),
        (-0.25, -0.5, True, "0.25"),
    ],
)
def test_what_ratios_are_sorted_by(truth, bound, is_rate, value) -> None:
    assert (
        RegimeView(
            cell(
                truth=truth,
                bound=bound,
                relation=Relation.OF_ORDER if is_rate else Relation.AT_MOST,
            ),
            "",
        ).ratio_value
        == value
    )


def test_a_left_side_without_a_run_is_told_in_words_as_well() -> None:
    claim = theorems.get("ca-fed/1")
    point, run = theorems_of([claim, theorems.get("sa-fl/5")], [], ())
    assert point.readings[0].left_in_words == claim.quantity.text  # type: ignore[union-attr]
    assert run.readings[0].left_in_words == ""
    assert not point.readings[0].has_curves
    assert reading("sa-fl/5").has_curves


def test_evidence_says_how_sure_it_is() -> None:
    evidence = reading("pac/1").rows[0].evidence
    assert "truth within ±0.1" in evidence
    assert "2000 replicas" in evidence
    assert "misses with probability 1.0e-09 at most" in evidence


def test_every_verdict_has_a_mark_of_its_own() -> None:
    assert set(MARKS) == set(Outcome)
    assert len(set(MARKS.values())) == len(MARKS)


def test_hypotheses_at_a_witness_have_both_sides() -> None:
    """At the certified witness of Theorem 5, whose setting is in fractions."""
    view = reading("sa-fl/5").certificates[0]
    algorithm = json.loads(view.text)["setting"]["algorithm"]
    few = next(check for check in view.checks if check.name == "few client rounds")
    assert (few.mark, few.state) == ("✓", "met")
    assert few.sides.startswith(f"{float(Fraction(algorithm['q'])):.4g} ≤ ")
    assert " in round " in few.sides
    regime = reading("ca-fed/appendix-d").refuted[0]
    assert regime.checks
    assert all(re.search(r"\d|∞", check.sides) for check in regime.checks)


def test_anchors_are_plain() -> None:
    assert anchor('sa-fl/5"><b') == "sa-fl-5---b"
