"""Proofs whose steps are worked out when they are asked for, worked out again: each as a whole.

The other tests of steps find them worked out, whichever asked first.
"""

from __future__ import annotations

import pytest

from fltheory import theorems
from fltheory.derivations.derivation import Implied, StepOutcome
from fltheory.derivations.derivation_check import check_derivation
from tests.theorems.not_following import NOT_FOLLOWING
from tests.theorems.test_certificates import (
    check_domain,
    check_substitutions,
    check_what_is_left,
)

LATER = [s for s in theorems.registered() if hasattr(s.derivation, "_written")]


@pytest.mark.parametrize("statement", LATER, ids=lambda s: f"{s.id} {s.reading}")
def test_the_steps_of_a_proof(statement) -> None:
    again = statement.derivation._written()
    found = {result.step.label: result.outcome for result in check_derivation(again)}
    expected = NOT_FOLLOWING[statement.id, statement.reading]
    assert len(found) == len(again.steps)
    assert {key: one for key, one in found.items() if one is not StepOutcome.FOLLOWS} == expected
    for step in again.steps:
        claim = step.claim
        if isinstance(claim, Implied) and len(claim.multipliers) == len(claim.given):
            check_what_is_left(statement, step)
        check_domain(statement, step)
        check_substitutions(statement, step)
