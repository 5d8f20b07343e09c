"""Which statements a command is about."""

from __future__ import annotations

import pytest

from fltheory.commands.selection import in_readings, selected
from fltheory.theorems import registered


def names(statements) -> list[tuple[str, str]]:
    return [(statement.id, statement.reading) for statement in statements]


def test_no_name_is_every_statement() -> None:
    assert selected([]) == list(registered())


def test_a_name_is_an_id_or_the_beginning_of_ids() -> None:
    assert names(selected(["sa-fl/5"])) == [
        ("sa-fl/5", reading) for reading in ("printed", "derived", "repaired")
    ]
    of_paper = {statement.id for statement in selected(["sa-fl"])}
    assert {"sa-fl/4", "sa-fl/5", "sa-fl/corollary-1"} <= of_paper
    assert not {identifier for identifier in of_paper if not identifier.startswith("sa-fl/")}


def test_a_beginning_ends_where_a_slash_is() -> None:
    with pytest.raises(ValueError, match="id must be a registered theorem"):
        selected(["sa-f"])


def test_statements_come_once_in_the_order_of_the_names() -> None:
    twice = selected(["sa-fl/5", "sa-fl/4", "sa-fl"])
    assert twice[0].id == "sa-fl/5"
    assert sorted(names(twice)) == sorted(names(selected(["sa-fl"])))


def test_one_reading_or_all() -> None:
    assert names(in_readings("sa-fl/5", "derived")) == [("sa-fl/5", "derived")]
    assert in_readings("sa-fl/5", None) == selected(["sa-fl/5"])
    with pytest.raises(ValueError, match="must be one of printed, derived"):
        in_readings("sa-fl/5", "mine")
