"""SA-FL's repairs: nothing changed is the printed statement; all changed is the proof's."""

from __future__ import annotations

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.theorems import Theorem, sa_fl, sa_fl_repairs

REPAIRS = {
    "sa-fl/4": sa_fl_repairs.REPAIR_4,
    "sa-fl-submission/4": sa_fl_repairs.REPAIR_SUBMISSION_4,
    "sa-fl/5": sa_fl_repairs.REPAIR_5,
}


@pytest.mark.parametrize("identifier", REPAIRS)
def test_without_mends_it_is_the_printed_statement(identifier: str) -> None:
    assert REPAIRS[identifier].build() == theorems.get(identifier)


@pytest.mark.parametrize("identifier", REPAIRS)
def test_every_mend_changes_the_statement(identifier: str) -> None:
    repair = REPAIRS[identifier]
    for mend in repair.mends:
        assert repair.build(**mend.changes) != repair.build()


@pytest.mark.parametrize("identifier", REPAIRS)
def test_the_condition_on_q_is_the_proofs_with_the_fraction_cleared(identifier: str) -> None:
    """With q <= 1/(1 + N/D): q (N + D) - D is what the derived condition bounds by zero."""
    repaired, derived = (theorems.get(identifier, r) for r in ("repaired", "derived"))
    assert isinstance(repaired, Theorem)
    assert isinstance(derived, Theorem)
    ratio = 1 / repaired.hypotheses[-1].condition.rhs - 1
    D = sp.fraction(sp.together(ratio))[1]
    proof = derived.hypotheses[-1].condition
    residual = (sa_fl.q * (ratio + 1) - 1) * D
    quotient = sp.simplify(residual / (proof.lhs - proof.rhs))
    assert not quotient.has(sa_fl.q, sa_fl.G_1, sa_fl.G_2, sa_fl.G_3, sa_fl.G_4)


@pytest.mark.parametrize("identifier", REPAIRS)
def test_the_rest_is_the_proofs_but_for_the_minima(identifier: str) -> None:
    repaired, derived = (theorems.get(identifier, r) for r in ("repaired", "derived"))
    assert isinstance(repaired, Theorem)
    assert isinstance(derived, Theorem)
    assert repaired.bound == derived.bound
    assert repaired.quantity == derived.quantity
    conditions = [{h.condition for h in theorem.hypotheses[:-1]} for theorem in (repaired, derived)]
    assert conditions[0] == conditions[1]
    stricter = {"mean": "min", "every": "every"}
    assert [item.reduction for item in repaired.round_symbols] == [
        stricter[item.reduction] for item in derived.round_symbols
    ]
