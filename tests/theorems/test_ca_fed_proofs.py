"""Which steps of CA-Fed's proofs follow, and where printed and derived part."""

from __future__ import annotations

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.theorems.ca_fed import proof
from fltheory.theorems.ca_fed import statements as ca_fed
from tests.theorems.not_following import NOT_FOLLOWING

KEYS = [key for key in NOT_FOLLOWING if key[0].startswith("ca-fed")]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_the_last_step_ends_at_the_registered_bound(key) -> None:
    statement = theorems.get(*key)
    claim = statement.derivation.steps[-1].claim
    if key == ("ca-fed/2", "printed"):
        phi = ca_fed.phi / sp.log(1 / ca_fed.lambda_P) / ca_fed.S_1
        rest = statement.bound - phi
        stated = rest.xreplace(dict(statement.definitions)) * ca_fed.S_1
        assert sp.expand(stated - claim.right) == 0
    else:
        assert sp.expand(claim.claimed.rhs - statement.bound) == 0


def test_steps_that_fail_claim_what_is_printed() -> None:
    """A wrong sign would fail as well: the claimed sides are held against the appendix."""
    steps = theorems.get("ca-fed/2", "printed").derivation.steps
    claims = {step.label: step.claim.claimed for step in steps if hasattr(step.claim, "claimed")}
    eta, x, t = proof._eta, proof._X, proof._time
    half = claims["Lemma 2, the factor eta_t/2"]
    assert sp.expand(half.rhs).coeff(x) == -eta * ca_fed.E / 2
    assert sp.expand(half.rhs).coeff(proof._d) == 1
    cut = claims["(23) where J_t is cut to t"]
    assert cut.rhs * 2 * ca_fed.H * t == 1
    assert cut.lhs == ca_fed.C_P * ca_fed.lambda_P**t
    needed = claims["Lemma 3 to (12), J_t"]
    assert (needed.lhs, needed.rhs) == (proof._delay, proof._wanted)
    start = claims["Lemma 2 to (12), the start"]
    w_0 = proof._start
    assert start.lhs == (w_0 - proof._p_2) ** 2
    assert start.rhs == (w_0 - proof._alpha_2) ** 2
