"""The table and the explanation."""

from __future__ import annotations

import io
import math

import pytest
import sympy as sp
from rich.console import Console

from fltheory import theorems
from fltheory.claims.statement import Statement
from fltheory.evidence.verdict import Grade
from fltheory.grammar.assertion import Relation
from fltheory.report import summary
from fltheory.report.terminal.explanation import explanation, where_it_applies
from fltheory.report.terminal.verdict_table import verdict_table
from fltheory.verify import Outcome
from tests.verify.cells import FAILING, cell

CELLS = [
    cell(),
    cell(Outcome.REFUTED, truth=3.0, regime="rough"),
    cell(Outcome.INAPPLICABLE, regime="stiff", hypotheses=(FAILING,)),
    cell(Outcome.INAPPLICABLE, bound=math.inf, regime="wild"),
    cell(Outcome.UNDECIDED, truth=math.nan, regime="dim", grade=Grade.STATISTICAL),
    cell(truth=-0.5, bound=-0.4, regime="order", relation=Relation.OF_ORDER),
    cell(
        Outcome.INAPPLICABLE,
        truth=math.nan,
        bound=-0.4,
        regime="no slope",
        hypotheses=(FAILING,),
        relation=Relation.OF_ORDER,
    ),
]


def printed(renderable) -> str:
    stream = io.StringIO()
    Console(file=stream, width=200).print(renderable)
    return stream.getvalue()


def row(table: str, regime: str) -> str:
    return next(line for line in table.splitlines() if f" {regime} " in line)


@pytest.mark.parametrize(
    ("regime", "parts"),
    [
        ("calm", ["HOLDS", "exact", "0.5"]),
        ("rough", ["REFUTED", "1.5", "truth 3 > bound 2"]),
        ("stiff", ["INAPPLICABLE", "0.5", "small step: margin -0.25 in round 3"]),
        ("wild", ["INAPPLICABLE", "no bound"]),
        ("dim", ["UNDECIDED", "statistical", "no bound"]),
        ("order", ["HOLDS", "slope -0.50/-0.40"]),
        ("no slope", ["INAPPLICABLE", "slope none/-0.40"]),
    ],
)
def test_rows_of_the_table(regime: str, parts: list[str]) -> None:
    line = row(printed(verdict_table(CELLS)), regime)
    assert all(part in line for part in parts)
    assert "nan" not in line


def test_the_table_says_the_scope_of_its_verdicts_once() -> None:
    text = printed(verdict_table(CELLS))
    assert text.count("one setting") == 1
    assert text.strip().startswith("Verdicts, scope: one setting")


def test_summary_counts_every_cell() -> None:
    assert summary(CELLS) == "7 cells: 2 HOLDS, 1 REFUTED, 3 INAPPLICABLE, 1 UNDECIDED"


@pytest.mark.parametrize(
    "statement", theorems.registered(), ids=lambda item: f"{item.id}-{item.reading}"
)
def test_explanation_holds_everything(statement: Statement) -> None:
    text = explanation(statement)
    theorem = getattr(statement, "theorem", statement)
    expected = [statement.id, statement.reading, statement.title, statement.source, statement.note]
    rights = [assertion.right for assertion in (*statement.assertions, *theorem.assertions)]
    conditions = [hypothesis.condition for hypothesis in theorem.hypotheses]
    used = sp.Tuple(*rights, *conditions, *theorem.definitions.values()).free_symbols
    expected += [theorem.quantity.text]
    expected += [theorem.meanings[s] for s in used & theorem.meanings.keys() - theorem.definitions]
    for hypothesis in theorem.hypotheses:
        expected += [hypothesis.name, hypothesis.source]
    expected += [item.meaning for item in getattr(theorem, "round_symbols", ())]
    assert [part for part in expected if part not in text] == []


def test_where_it_applies_sorts_regimes_by_verdict() -> None:
    text = where_it_applies({cell.regime: cell.verdict.outcome.name for cell in CELLS})
    assert "HOLDS: calm; order" in text
    assert "REFUTED: rough" in text
    assert "INAPPLICABLE: stiff; wild" in text
