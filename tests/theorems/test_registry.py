"""Look-up of statements."""

import pytest

from fltheory import theorems

WHOLE = ("printed", "derived", "repaired")
READINGS = {
    "sa-fl-submission/4": WHOLE,
    "sa-fl/4": WHOLE,
    "sa-fl/5": WHOLE,
    "sa-fl/corollary-1": ("printed", "derived"),
    "sa-fl/corollary-2": ("printed", "derived"),
    "ca-fed/1": ("printed",),
    "ca-fed/2": ("printed", "derived"),
    "ca-fed/3": ("printed",),
    "ca-fed/appendix-d": ("printed", "derived"),
    "ca-fed/appendix-e": ("printed", "derived"),
    "fedau/1": ("printed", "derived"),
    "fedau/2-option-1": ("printed", "derived"),
    "fedau/2-option-2": ("printed", "derived"),
    "fedau/corollary-4": ("printed", "derived"),
    "fedau/3": ("printed", "derived"),
    "fedau/3-rounds": ("printed",),
    "fedau/3-step": ("printed", "derived"),
}


def test_every_statement_has_its_readings() -> None:
    assert theorems.ids() == tuple(READINGS)
    for identifier, readings in READINGS.items():
        assert theorems.readings(identifier) == readings
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
