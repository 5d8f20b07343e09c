"""fltheory explain --proof: steps and units."""

from __future__ import annotations


def test_derive_shows_steps_and_units(fltheory_command) -> None:
    status, out, err = fltheory_command("explain", "sa-fl/5", "--proof", "--reading", "derived")
    assert (status, err) == (0, "")
    assert "16 steps: 16 FOLLOWS; unit flags: 0" in out
    assert "printed reading" not in out


def test_derive_shows_all_readings_by_default(fltheory_command) -> None:
    status, out, _ = fltheory_command("explain", "sa-fl/corollary-1", "--proof")
    assert status == 0
    assert out.index("printed reading") < out.index("derived reading")


def test_derive_says_that_nothing_is_recorded(fltheory_command) -> None:
    status, out, _ = fltheory_command("explain", "pac/1", "--proof", "--reading", "printed")
    assert status == 0
    assert "none are recorded" in out


def test_a_statement_without_a_recorded_proof_says_so(fltheory_command) -> None:
    status, out, _ = fltheory_command("explain", "pac/1", "--proof")
    assert (status, out.count("\n")) == (0, 1)
    assert "no steps of a proof of pac/1 are recorded" in out
