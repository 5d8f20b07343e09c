"""fltheory falsify --repairs: which mends are needed."""

from __future__ import annotations


def test_repair_shows_which_mends_are_needed(fltheory_command) -> None:
    status, out, _ = fltheory_command("falsify", "sa-fl/5", "--repairs", "--budget", "1000")
    assert status == 0
    assert "sa-fl/5 (repaired) survives the search, which is not a proof" in out
    assert "eta_c <= 1/(16LK) as a further hypothesis [(75), (78)]: refuted without it" in out
    assert "[(61) with the cited lemma's factor 2]: not refuted without it" in out


def test_repair_of_a_claimed_order_is_searched_as_a_whole(fltheory_command) -> None:
    """SA-FL's second: its repair speaks of settings, where a search of random ones met none."""
    status, out, _ = fltheory_command("falsify", "sa-fl/corollary-2", "--repairs", "--budget", "3")
    assert status == 0
    assert out.startswith("sa-fl/corollary-2 (repaired): no refutation found; 3 settings tried; 3")


def test_a_reading_without_separate_mends_is_searched_as_a_whole(fltheory_command) -> None:
    status, out, _ = fltheory_command("falsify", "fedau/3-step", "--repairs", "--budget", "20")
    assert status == 0
    assert out.startswith("fedau/3-step (derived): no refutation found; 20 settings tried")


def test_a_theorem_that_is_not_refuted_says_so(fltheory_command) -> None:
    status, _, err = fltheory_command("falsify", "fedau/1", "--repairs")
    assert status == 2
    assert err.startswith(
        "fltheory: theorem must have a recorded refutation to be corrected, got fedau/1"
    )
