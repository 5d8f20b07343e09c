"""docs/scripts/impossibility.py: fractions."""

from __future__ import annotations


def test_impossible_shows_fractions(fltheory_command) -> None:
    status, out, _ = fltheory_command("impossibility.py", "2", "1", "1")
    assert status == 0
    assert "epsilon = 1/16" in out
    assert "15/32" in out
