"""Which steps of CA-Fed's proofs follow, and where printed and derived part."""

from __future__ import annotations

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.theorems import StepOutcome, ca_fed, check_derivation

FOLLOWS, DIFFERS, FAILS = StepOutcome.FOLLOWS, StepOutcome.DIFFERS, StepOutcome.FAILS
NOT_FOLLOWING = {
    ("ca-fed/1", "printed"): {},
    ("ca-fed/2", "printed"): {
        "Lemma 2, the factor eta_t/2": FAILS,
        "Lemma 2 to (12), noise": DIFFERS,
        "Lemma 2, Gamma": DIFFERS,
        "Lemma 2, Gamma for losses at w_B*": FAILS,
        "Lemma 2 to (12), the start": FAILS,
        "(23) where J_t is cut to t": FAILS,
        "Lemma 3 to (12), J_t": FAILS,
        "Steps 1 and 2 to (12)": DIFFERS,
    },
    ("ca-fed/2", "derived"): {},
    ("ca-fed/3", "printed"): {},
}


@pytest.mark.parametrize(("key", "expected"), NOT_FOLLOWING.items(), ids=str)
def test_which_steps_do_not_follow(key, expected) -> None:
    results = check_derivation(theorems.get(*key).derivation)
    outcomes = {result.step.label: result.outcome for result in results}
    assert len(outcomes) == len(results)
    assert {label: item for label, item in outcomes.items() if item is not FOLLOWS} == expected


@pytest.mark.parametrize("key", NOT_FOLLOWING, ids=str)
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
