"""Look-up of statements."""

import pytest

from fltheory import theorems

IDS = ("sa-fl-submission/4", "sa-fl/4", "sa-fl/5", "sa-fl/corollary-1", "sa-fl/corollary-2")


def test_every_statement_has_its_readings() -> None:
    assert theorems.ids() == IDS
    for identifier in IDS:
        repaired = () if "corollary" in identifier else ("repaired",)
        assert theorems.readings(identifier) == ("printed", "derived", *repaired)
        for reading in theorems.readings(identifier):
            statement = theorems.get(identifier, reading=reading)
            assert (statement.id, statement.reading) == (identifier, reading)


def test_printed_is_the_default_reading() -> None:
    assert theorems.get("sa-fl/5").reading == "printed"


def test_unknown_id_lists_near_ones() -> None:
    with pytest.raises(ValueError, match=r"must be a registered theorem .*sa-fl/5.*, got 'sa-fl5'"):
        theorems.get("sa-fl5")


def test_unknown_reading_lists_the_known() -> None:
    with pytest.raises(
        ValueError, match="must be one of printed, derived, repaired, got 'charitable'"
    ):
        theorems.get("sa-fl/5", reading="charitable")
