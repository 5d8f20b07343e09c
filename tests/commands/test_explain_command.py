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


def test_corrected_shows_what_should_stand_instead(fltheory_command) -> None:
    status, out, _ = fltheory_command("explain", "sa-fl/5", "--corrected")
    assert status == 0
    assert "+ 4*q*sigma_G**2/mu**2   [3]" in out
    assert r"\begin{corrected}[SA-FL (ICML 2024), Theorem 5; theorem]" in out


def test_corrected_is_one_statement_and_of_a_refuted_one(fltheory_command) -> None:
    status, _, err = fltheory_command("explain", "sa-fl/5", "--corrected", "--reading", "derived")
    assert status == 2
    assert "reading must be left out beside --corrected, got 'derived'" in err
    status, _, err = fltheory_command("explain", "lemmas/separation", "--corrected")
    assert status == 2
    assert "theorem must be refuted to be corrected" in err
