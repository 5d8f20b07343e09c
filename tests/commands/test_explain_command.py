"""fltheory explain: statements and where they apply."""

from __future__ import annotations

import pytest


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


def test_where_it_applies_is_recorded_and_computed_on_demand(fltheory_command) -> None:
    """Both ways agree, but for the line that says which it is."""
    asked = ("explain", "ca-fed/appendix-d", "--reading", "printed")
    _, recorded, _ = fltheory_command(*asked)
    _, computed, _ = fltheory_command(*asked, "--now")
    assert "(as recorded; --now checks again, over its regimes)" in recorded
    assert recorded.replace("as recorded; --now checks again", "computed now") == computed


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_what_is_not_recorded_is_computed(fltheory_command) -> None:
    status, out, _ = fltheory_command(
        "--load", "docs/examples/fedavg_li_2020.py", "explain", "li/1"
    )
    assert status == 0, out
    assert "(computed now, over its regimes)" in out


def test_corrected_shows_what_should_stand_instead(fltheory_command) -> None:
    status, out, _ = fltheory_command("explain", "sa-fl/5", "--corrected")
    assert status == 0
    assert "+ 4*q*sigma_G**2/mu**2   [3]" in out
    assert r"\begin{corrected}[SA-FL (ICML 2024), Theorem 5. Kind: theorem]" in out


def test_corrected_is_one_statement_and_of_a_refuted_one(fltheory_command) -> None:
    status, _, err = fltheory_command("explain", "sa-fl/5", "--corrected", "--reading", "derived")
    assert status == 2
    assert "reading must be left out with --corrected, got 'derived'" in err
    status, _, err = fltheory_command("explain", "lemmas/separation", "--corrected")
    assert status == 2
    assert "theorem must have a recorded refutation to be corrected" in err


def test_only_symbols_that_a_statement_uses_are_listed(fltheory_command) -> None:
    _, out, _ = fltheory_command("explain", "sa-fl/4", "--reading", "printed")
    assert "  Delta_0: " in out
    assert "  D_0: " not in out
