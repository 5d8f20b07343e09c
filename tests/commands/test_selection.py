"""Which statements a command is about."""

from __future__ import annotations

import pytest

from fltheory.commands.selection import in_readings
from fltheory.theorems import registered


def test_one_reading_or_all() -> None:
    assert [(s.id, s.reading) for s in in_readings("sa-fl/5", "derived")] == [
        ("sa-fl/5", "derived")
    ]
    assert in_readings("sa-fl/5", None) == list(registered("sa-fl/5"))
    with pytest.raises(ValueError, match="must be one of printed, derived"):
        in_readings("sa-fl/5", "mine")
