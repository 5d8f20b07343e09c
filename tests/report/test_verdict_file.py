"""Verdicts as JSON, against its schema, and as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

from fltheory import theorems
from fltheory.evidence.verdict import Grade
from fltheory.grammar.assertion import Relation
from fltheory.report.verdict_file import (
    CSV_COLUMNS,
    MadeBy,
    read_verdicts,
    verdict_csv,
    write_verdicts,
)
from fltheory.verify import Outcome, check_regimes
from tests.fewer_regimes import with_regimes
from tests.verify.cells import FAILING, cell

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads((DOCS / "verdict-files.schema.json").read_text(encoding="utf-8"))
MADE_BY = MadeBy(seed=3, replicas=50)
of_theorem_5 = partial(cell, theorem="sa-fl/5")
CELLS = [
    of_theorem_5(),
    of_theorem_5(Outcome.REFUTED, truth=3.0, regime='rough, "so to speak"'),
    of_theorem_5(Outcome.INAPPLICABLE, regime="stiff", hypotheses=(FAILING,)),
    of_theorem_5(Outcome.INAPPLICABLE, bound=math.inf, regime="wild"),
    of_theorem_5(Outcome.UNDECIDED, truth=math.nan, regime="dim"),
    of_theorem_5(truth=-0.5, bound=-0.4, regime="order", relation=Relation.OF_ORDER),
]


def refuse(token: str) -> None:
    raise AssertionError(token)


def document(cells, tmp_path: Path):
    path = tmp_path / "out" / "verify.json"
    write_verdicts(path, cells, MADE_BY)
    return json.loads(path.read_text(), parse_constant=refuse)


def errors_in(read) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(read)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_cells_of_every_kind_match_the_schema(tmp_path: Path) -> None:
    assert errors_in(document(CELLS, tmp_path)) == []


def test_verdicts_of_registered_statements_match_the_schema(tmp_path: Path) -> None:
    """Exact, rounded and sampled ones, refuted, undefined, of points and of orders."""
    few = {"sa-fl/4": "nonconvex", "sa-fl/corollary-2": "i.i.d."}
    sampled_and_of_order = [
        with_regimes(theorems.get(name), {regime: theorems.get(name).regimes[regime]})
        for name, regime in few.items()
    ]
    whole = [theorems.get(f"ca-fed/{name}") for name in ("appendix-d", "appendix-e", "1")]
    statements = [*sampled_and_of_order, *whole]
    read = document(check_regimes(statements, replicas=20), tmp_path)
    assert errors_in(read) == []
    assert len(read["cells"]) == sum(len(statement.regimes) for statement in statements)
    assert {c["evidence"]["grade"] for c in read["cells"]} == {"exact", "float64", "statistical"}


def test_verdicts_are_read_as_they_were_written(tmp_path: Path) -> None:
    """NaN is no number and equals none: cells are compared as text, which shows every digit.

    How long they took is not written.
    """
    made = check_regimes([theorems.get("pac/1-sum")], processes=1)
    cells = [*CELLS, *(replace(item, seconds=0.0) for item in made)]
    assert any(item.faults for item in cells)
    document(cells, tmp_path)
    read = read_verdicts(tmp_path / "out" / "verify.json", MADE_BY)
    assert [repr(item) for item in read] == [repr(item) for item in cells]


def test_verdicts_that_were_made_otherwise_are_not_read(tmp_path: Path) -> None:
    read = document(CELLS, tmp_path)
    path = tmp_path / "out" / "verify.json"
    with pytest.raises(ValueError, match=r"verdicts must be made by .*'seed': 4.*got .*'seed': 3"):
        read_verdicts(path, replace(MADE_BY, seed=4))
    path.write_text(json.dumps({**read, "version": 1}))
    with pytest.raises(ValueError, match="verdicts must be made by"):
        read_verdicts(path, MADE_BY)
    for wrong in ("", "[]", json.dumps({**read, "cells": [{"theorem": "sa-fl/5"}]})):
        path.write_text(wrong)
        with pytest.raises(ValueError, match="verdicts must be a file that fltheory verify wrote"):
            read_verdicts(path, MADE_BY)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["cells"][0].update(outcome="PROVED"),
        lambda d: d["cells"][0].update(scope="every loss of the class"),
        lambda d: d["cells"][0].pop("scope"),
        lambda d: d["cells"][0].update(truth="infinite"),
        lambda d: d["cells"][0].update(colour="red"),
        lambda d: d["cells"][0]["evidence"].update(grade="statistical"),
        lambda d: d["cells"][0]["evidence"].update(replicas=10),
        lambda d: d["cells"][2]["hypotheses"][0].pop("margin"),
        lambda d: d["made_by"].pop("seed"),
        lambda d: d.update(version=1),
        lambda d: d["cells"][0].update(kind="claim"),
        lambda d: d["cells"][0].update(weight="gap"),
        lambda d: d["cells"][0].update(why=["(3) fails."]),
        lambda d: d["cells"][1].update(weight="grave"),
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
    assert {row["scope"] for row in rows} == {"one setting"}
    assert {row["made_by_seed"] for row in rows} == {"3"}
    assert {row["made_by_numpy"] for row in rows} == {np.__version__}
    assert list(rows[0])[: len(CSV_COLUMNS)] == list(CSV_COLUMNS)
    assert rows[2]["failed"] == "small step: margin -0.25 in round 3"
    assert (rows[3]["bound"], rows[4]["truth"], rows[5]["is_rate"]) == ("inf", "nan", "true")
    assert (rows[0]["evidence_grade"], rows[0]["evidence_replicas"]) == ("exact", "")


def test_kind_weight_and_why_of_a_refuted_statement(tmp_path: Path) -> None:
    """CA-Fed's Appendix D: a remark, with a missing hypothesis that one regime shows."""
    statement = theorems.get("ca-fed/appendix-d")
    cells = check_regimes([statement])
    by_regime = {c["regime"]: c for c in document(cells, tmp_path)["cells"]}
    refuted, holds = by_regime["noisy gradients"], by_regime["independent"]
    assert (refuted["outcome"], holds["outcome"]) == ("REFUTED", "HOLDS")
    assert refuted["kind"] == holds["kind"] == "remark"
    assert (refuted["weight"], holds["weight"]) == ("missing hypothesis", "")
    assert refuted["why"] == [statement.refutations[0].why]
    assert holds["why"] == []
    rows = list(csv.DictReader(io.StringIO(verdict_csv(cells, MADE_BY))))
    (row,) = (row for row in rows if row["regime"] == "noisy gradients")
    assert (row["kind"], row["weight"]) == ("remark", "missing hypothesis")
    assert row["why"] == statement.refutations[0].why


def test_csv_gives_the_same_numbers_as_json() -> None:
    cells = [*CELLS, cell(truth=0.1 + 0.2, regime="long", grade=Grade.EXACT)]
    table = pd.read_csv(io.StringIO(verdict_csv(cells, MADE_BY)))
    expected = [item.verdict.truth for item in cells]
    np.testing.assert_array_equal(table["truth"].to_numpy(), expected)
