"""SA-FL's repairs: nothing changed is the printed statement; all changed is the proof's."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.theorems import Theorem
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.theorems.sa_fl import statements as sa_fl_repairs
from fltheory.theorems.sa_fl.statements import FAULTS

REPAIRS = {
    "sa-fl/4": sa_fl_repairs.REPAIR_4,
    "sa-fl-submission/4": sa_fl_repairs.REPAIR_SUBMISSION_4,
    "sa-fl/5": sa_fl_repairs.REPAIR_5,
}


def stated(theorem: Theorem) -> dict[str, object]:
    """Return all fields but the numbers of symbols, which follow from them, in some order."""
    return {name: value for name, value in vars(theorem).items() if name != "constants"}


@pytest.mark.parametrize("identifier", REPAIRS)
def test_without_mends_it_is_the_printed_statement(identifier: str) -> None:
    printed = replace(theorems.get(identifier), refutations=())
    assert stated(REPAIRS[identifier].build()) == stated(printed)


@pytest.mark.parametrize("identifier", REPAIRS)
def test_every_mend_changes_the_statement(identifier: str) -> None:
    repair = REPAIRS[identifier]
    for mend in repair.mends:
        assert repair.build(**mend.changes) != repair.build()


@pytest.mark.parametrize("identifier", FAULTS)
def test_faults_are_those_of_the_printed_statement(identifier: str) -> None:
    printed = replace(theorems.get(identifier), refutations=())
    assert stated(FAULTS[identifier].build()) == stated(printed)
    for mend in FAULTS[identifier].mends:
        assert FAULTS[identifier].build(**mend.changes) != printed


@pytest.mark.parametrize("identifier", FAULTS)
def test_without_its_faults_the_condition_on_q_is_the_proofs(identifier: str) -> None:
    """With q <= 1/(1 + N/D): q (N + D) - D is what the derived condition bounds by zero."""
    mended, derived = FAULTS[identifier].theorem(), theorems.get(identifier, "derived")
    assert isinstance(derived, Theorem)
    ratio = 1 / mended.hypotheses[-1].condition.rhs - 1
    D = sp.fraction(sp.together(ratio))[1]
    proof = derived.hypotheses[-1].condition
    residual = (sa_fl.q * (ratio + 1) - 1) * D
    quotient = sp.simplify(residual / (proof.lhs - proof.rhs))
    assert not quotient.has(sa_fl.q, sa_fl.G_1, sa_fl.G_2, sa_fl.G_3, sa_fl.G_4)
    # Theorem 5's proof loses a factor 2 of the noise, which no quadratic client shows.
    lost = 2 * sa_fl.q * sa_fl.eta_c * sa_fl.sigma**2 / (sa_fl.mu * sa_fl.m)
    assert derived.bound - mended.bound == (lost if identifier == "sa-fl/5" else 0)
    assert mended.quantity == derived.quantity
    conditions = [
        {h.condition for h in theorem.hypotheses[:-1] if not h.is_sign}
        for theorem in (mended, derived)
    ]
    assert conditions[0] == conditions[1]


@pytest.mark.parametrize("identifier", REPAIRS)
def test_repairs_have_no_condition_on_q_and_apply_wherever_clients_differ_boundedly(
    identifier: str,
) -> None:
    repaired = theorems.get(identifier, "repaired")
    assert isinstance(repaired, Theorem)
    assert not any(h.condition.has(sa_fl.q) for h in repaired.hypotheses)
    left_out = {
        name
        for name, regime in repaired.regimes.items()
        if regime.setting.problem.sigma_G == float("inf")
    }
    assert left_out == {"different Hessians"}


def test_the_price_of_theorem_4_is_what_the_condition_was_to_pay_for() -> None:
    """(52) has 4 R_c/R sigma_G^2, with R_c = qR."""
    for identifier in ("sa-fl/4", "sa-fl-submission/4"):
        repaired, printed = (theorems.get(identifier, r) for r in ("repaired", "printed"))
        assert repaired.bound - printed.bound == 4 * sa_fl.q * sa_fl.sigma_G**2


def test_the_price_of_theorem_5_is_young_s_inequality_over_the_contraction() -> None:
    """-2 a G_4 with G_4 >= f - sigma_G e, f >= mu e^2/2, half of f kept: min over e, a = eta_c K.

    -a mu e^2/2 + 2 a sigma_G e is largest at e = 2 sigma_G/mu, where it is 2 a sigma_G^2/mu, a
    round; over etabar = a mu/2 that is 4 sigma_G^2/mu^2.
    """
    a, e = sp.symbols("a e", positive=True)
    mu, sigma_G, q = sa_fl.mu, sa_fl.sigma_G, sa_fl.q
    loss = -a * mu * e**2 / 2 + 2 * a * sigma_G * e
    largest = loss.subs(e, sp.solve(sp.diff(loss, e), e)[0])
    price = q * largest / (a * mu / 2)
    repaired, printed = (theorems.get("sa-fl/5", r) for r in ("repaired", "printed"))
    noise = 2 * q * sa_fl.eta_c * sa_fl.sigma**2 / (mu * sa_fl.m)
    assert sp.simplify(repaired.bound - printed.bound - price - noise) == 0


def test_the_limit_of_theorem_5_leaves_half_of_the_loss() -> None:
    """8 k (1 + 15 k (1 + k)) at k = 1/16 is 511/512, and above 1 from 0.0627 on."""
    k = sp.Rational(1, 16)
    assert 8 * k * (1 + 15 * k * (1 + k)) == sp.Rational(511, 512)
