"""Which statements a command is about."""

from __future__ import annotations

import pytest

from fltheory.commands.shared.preparation import in_readings, registered_in, the_id
from fltheory.theorems import registered


def test_one_reading_or_all() -> None:
    assert [(s.id, s.reading) for s in in_readings("sa-fl/5", "derived")] == [
        ("sa-fl/5", "derived")
    ]
    assert in_readings("sa-fl/5", None) == list(registered("sa-fl/5"))
    with pytest.raises(ValueError, match="must be one of printed, derived"):
        in_readings("sa-fl/5", "mine")


def test_a_beginning_that_only_one_id_has_is_that_id() -> None:
    assert the_id("sa-fl/5") == "sa-fl/5"
    assert the_id("fedprox") == "fedprox/4"
    with pytest.raises(ValueError, match=r"one of scaffold/strongly-convex, .*, got 'scaffold'"):
        the_id("scaffold")
    with pytest.raises(ValueError, match=r"\(sa-fl/5, .*got 'sa-fl/55'"):
        the_id("sa-fl/55")
    with pytest.raises(ValueError, match=r"\(fltheory theorems lists them\), got '12'"):
        the_id("12")


def test_statements_in_one_reading() -> None:
    assert registered_in(None, None) == registered()
    derived = registered_in("derived", ["sa-fl", "fedau"])
    assert {one.reading for one in derived} == {"derived"}
    assert {one.id.partition("/")[0] for one in derived} == {"sa-fl", "fedau"}
    with pytest.raises(ValueError, match=r"reading must be one of printed, .*, got 'mine'"):
        registered_in("mine", ["sa-fl"])
