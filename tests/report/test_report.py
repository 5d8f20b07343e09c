"""The table, the file and the explanation."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest
from rich.console import Console

from fltheory import theorems
from fltheory.report import (
    explanation,
    summary,
    verdict_document,
    verdict_table,
    where_it_applies,
    write_verdicts,
)
from fltheory.verify import Grade, Outcome
from tests.verify.cells import FAILING, cell

CELLS = [
    cell(),
    cell(Outcome.REFUTED, truth=3.0, regime="rough"),
    cell(Outcome.INAPPLICABLE, regime="stiff", hypotheses=(FAILING,)),
    cell(Outcome.INAPPLICABLE, bound=math.inf, regime="wild"),
    cell(Outcome.UNDECIDED, truth=math.nan, regime="dim", grade=Grade.STATISTICAL),
    cell(truth=-0.5, bound=-0.4, regime="order", is_rate=True),
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
    ],
)
def test_rows_of_the_table(regime: str, parts: list[str]) -> None:
    line = row(printed(verdict_table(CELLS)), regime)
    assert all(part in line for part in parts)
    assert "nan" not in line


def test_summary_counts_every_cell() -> None:
    assert summary(CELLS) == "6 cells: 2 HOLDS, 1 REFUTED, 2 INAPPLICABLE, 1 UNDECIDED"


def document() -> dict:
    return dict(verdict_document(CELLS, seed=3, replicas=50, family_error_probability=1e-7))


def test_the_file_is_strict_json_and_says_what_made_it(tmp_path: Path) -> None:
    path = tmp_path / "out" / "verify.json"
    write_verdicts(path, document())

    def refuse(token: str) -> None:
        raise AssertionError(token)

    read = json.loads(path.read_text(), parse_constant=refuse)
    assert read["made_by"]["seed"] == 3
    assert {"fltheory", "python", "numpy", "family_error_probability"} <= set(read["made_by"])
    by_regime = {item["regime"]: item for item in read["cells"]}
    assert by_regime["rough"]["outcome"] == "REFUTED"
    assert by_regime["rough"]["ratio"] == 1.5
    assert by_regime["wild"]["bound"] == "inf"
    assert by_regime["dim"]["truth"] == "nan"
    assert by_regime["stiff"]["hypotheses"][0]["margin"] == -0.25
    assert by_regime["stiff"]["failed"] == ["small step: margin -0.25 in round 3"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_older_file_survives_a_failed_write(tmp_path: Path, monkeypatch, error) -> None:
    path = tmp_path / "verify.json"
    path.write_text("older")
    monkeypatch.setattr(Path, "replace", lambda self, target: (_ for _ in ()).throw(error()))
    with pytest.raises(error):
        write_verdicts(path, document())
    assert path.read_text() == "older"
    assert [item.name for item in tmp_path.iterdir()] == ["verify.json"]


@pytest.mark.parametrize(
    "statement", theorems.registered(), ids=lambda item: f"{item.id}-{item.reading}"
)
def test_explanation_holds_everything(statement: theorems.Statement) -> None:
    text = explanation(statement)
    theorem = getattr(statement, "theorem", statement)
    expected = [statement.id, statement.reading, statement.title, statement.source, statement.note]
    expected += [theorem.quantity.text, *theorem.meanings.values()]
    for hypothesis in theorem.hypotheses:
        expected += [hypothesis.name, hypothesis.source]
    expected += [item.meaning for item in getattr(theorem, "round_symbols", ())]
    assert [part for part in expected if part not in text] == []


def test_where_it_applies_sorts_regimes_by_verdict() -> None:
    text = where_it_applies(CELLS)
    assert "HOLDS: calm, order" in text
    assert "REFUTED: rough" in text
    assert "INAPPLICABLE: stiff, wild" in text
