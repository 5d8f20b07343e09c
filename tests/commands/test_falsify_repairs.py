"""fltheory falsify --repairs: which mends are needed."""

from __future__ import annotations


def test_repair_shows_which_mends_are_needed(fltheory_command) -> None:
    status, out, _ = fltheory_command(
        "falsify", "sa-fl-submission/4", "--repairs", "--budget", "1000"
    )
    assert status == 0
    assert "sa-fl-submission/4 (repaired) survives the search, which is not a proof" in out
    assert (
        "eta_c <= 1/(2 sqrt(30) LK) in place of 1/(4 sqrt(30LK)) [(45)]: refuted without it" in out
    )
    assert "the sum over r = 0 .. R-1 in place of 1 .. R [(51)]: not refuted without it" in out


def test_repair_of_a_claimed_order_is_refused(fltheory_command) -> None:
    status, _, err = fltheory_command("falsify", "sa-fl/corollary-2", "--repairs")
    assert status == 2
    assert "theorem must have a repair (sa-fl-submission/4, sa-fl/4," in err


def test_a_theorem_without_a_repair_says_which_have_one(fltheory_command) -> None:
    status, _, err = fltheory_command("falsify", "fedau/1", "--repairs")
    assert status == 2
    assert err.startswith("fltheory: theorem must have a repair (")
    assert "sa-fl/5" in err
