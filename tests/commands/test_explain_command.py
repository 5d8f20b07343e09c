"""fltheory explain: statements and where they apply."""

from __future__ import annotations


def test_explain_shows_statement_and_where_it_applies(fltheory_command) -> None:
    status, out, _ = fltheory_command("explain", "sa-fl/corollary-2", "--reading", "derived")
    assert status == 0
    assert "large enough step" in out
    assert "HOLDS: i.i.d.; unbiased sampling" in out


def test_explain_shows_claim_direction_and_order(fltheory_command) -> None:
    status, out, _ = fltheory_command("explain", "pac/1-rare")
    assert status == 0
    assert "s_hat ~ B(Mn, 4 epsilon) >" in out
    assert "tight reading" in out
    _, out, _ = fltheory_command("explain", "pac/lemma-2")
    assert "= O(1/n_T)" in out
    assert "REFUTED: apart" in out
