"""Verdicts as JSON, against its schema, and as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

from fltheory import theorems
from fltheory.report import MadeBy, verdict_csv, verdict_document, write_verdicts
from fltheory.report.verdict_file import CSV_COLUMNS
from fltheory.verify import Grade, Outcome, check_regimes
from tests.verify.cells import FAILING, cell

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads((DOCS / "verdict-files.schema.json").read_text(encoding="utf-8"))
MADE_BY = MadeBy(seed=3, replicas=50)
CELLS = [
    cell(),
    cell(Outcome.REFUTED, truth=3.0, regime='rough, "so to speak"'),
    cell(Outcome.INAPPLICABLE, regime="stiff", hypotheses=(FAILING,)),
    cell(Outcome.INAPPLICABLE, bound=math.inf, regime="wild"),
    cell(Outcome.UNDECIDED, truth=math.nan, regime="dim"),
    cell(truth=-0.5, bound=-0.4, regime="order", is_rate=True),
]


def refuse(token: str) -> None:
    raise AssertionError(token)


def document(cells, tmp_path: Path):
    path = tmp_path / "out" / "verify.json"
    write_verdicts(path, verdict_document(cells, MADE_BY))
    return json.loads(path.read_text(), parse_constant=refuse)


def errors_in(read) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(read)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_cells_of_every_kind_match_the_schema(tmp_path: Path) -> None:
    assert errors_in(document(CELLS, tmp_path)) == []


def test_verdicts_of_registered_statements_match_the_schema(tmp_path: Path) -> None:
    """Exact and sampled ones, refuted, undefined, of points and of orders."""
    nonconvex = {"nonconvex": theorems.get("sa-fl/4").regimes["nonconvex"]}
    names = ("sa-fl/corollary-2", "ca-fed/appendix-d", "ca-fed/appendix-e")
    statements = [theorems.get(name) for name in names]
    sampled = replace(theorems.get("sa-fl/4"), regimes=nonconvex)
    read = document(check_regimes([sampled, *statements], replicas=20), tmp_path)
    assert errors_in(read) == []
    assert len(read["cells"]) == 1 + sum(len(statement.regimes) for statement in statements)
    assert {c["evidence"]["grade"] for c in read["cells"]} == {"exact", "statistical"}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["cells"][0].update(outcome="PROVED"),
        lambda d: d["cells"][0].update(truth="infinite"),
        lambda d: d["cells"][0].update(colour="red"),
        lambda d: d["cells"][0]["evidence"].update(grade="statistical"),
        lambda d: d["cells"][0]["evidence"].update(replicas=10),
        lambda d: d["cells"][2]["hypotheses"][0].pop("margin"),
        lambda d: d["made_by"].pop("seed"),
        lambda d: d.update(version=2),
    ],
)
def test_the_schema_finds_what_is_wrong(tmp_path: Path, change) -> None:
    read = document(CELLS, tmp_path)
    change(read)
    assert errors_in(read)


def test_every_field_is_documented() -> None:
    page = (DOCS / "verdict-files.md").read_text(encoding="utf-8")
    made = [f"made_by_{name}" for name in MADE_BY.as_dict()]
    fields = [*SCHEMA["definitions"]["cell"]["properties"], *CSV_COLUMNS, *made]
    fields += [f"evidence.{name}" for name in SCHEMA["definitions"]["evidence"]["properties"]]
    fields += list(SCHEMA["definitions"]["hypothesis"]["properties"])
    missing = [name for name in fields if f"`{name}`" not in page and name != "evidence"]
    assert missing == []


def test_csv_has_a_row_a_cell_and_says_in_each_what_made_it() -> None:
    rows = list(csv.DictReader(io.StringIO(verdict_csv(CELLS, MADE_BY))))
    assert [row["regime"] for row in rows] == [cell.regime for cell in CELLS]
    assert {row["made_by_seed"] for row in rows} == {"3"}
    assert {row["made_by_numpy"] for row in rows} == {np.__version__}
    assert list(rows[0])[: len(CSV_COLUMNS)] == list(CSV_COLUMNS)
    assert rows[2]["failed"] == "small step: margin -0.25 in round 3"
    assert (rows[3]["bound"], rows[4]["truth"], rows[5]["is_rate"]) == ("inf", "nan", "true")
    assert (rows[0]["evidence_grade"], rows[0]["evidence_replicas"]) == ("exact", "")


def test_csv_gives_the_same_numbers_as_json() -> None:
    cells = [*CELLS, cell(truth=0.1 + 0.2, regime="long", grade=Grade.EXACT)]
    table = pd.read_csv(io.StringIO(verdict_csv(cells, MADE_BY)))
    expected = [item.verdict.truth for item in cells]
    np.testing.assert_array_equal(table["truth"].to_numpy(), expected)
