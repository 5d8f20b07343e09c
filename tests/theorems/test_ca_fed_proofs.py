"""Which steps of CA-Fed's proofs follow, and where printed and derived part."""

from __future__ import annotations

import pytest
import sympy as sp

from fltheory import theorems
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
