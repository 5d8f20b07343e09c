"""Theorem 1 and the constants of its proof, as statements."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from fltheory import theorems
from fltheory.evidence.verdict import Grade
from fltheory.learnability import FederatedSystem
from fltheory.verify import Outcome, check

PROOF = ("pac/1-chernoff", "pac/1-rare", "pac/1-conditional", "pac/1")
SMALLEST = FederatedSystem(2, 1, 1)


def verdicts(identifier: str, reading: str) -> dict:
    statement = theorems.get(identifier, reading)
    return {name: check(statement, regime.setting) for name, regime in statement.regimes.items()}


@pytest.mark.parametrize("identifier", PROOF)
@pytest.mark.parametrize("reading", ["printed", "tight"])
def test_constants_are_confirmed_in_fractions(identifier: str, reading: str) -> None:
    found = verdicts(identifier, reading)
    assert {v.evidence.grade for v in found.values()} == {Grade.RATIONAL}
    applicable = {n: v.outcome for n, v in found.items() if n != "opposite concepts"}
    assert set(applicable.values()) == {Outcome.HOLDS}


@pytest.mark.parametrize("reading", ["printed", "derived"])
def test_opposite_concepts_are_not_spoken_of(reading: str) -> None:
    verdict = verdicts("pac/1", "printed")["opposite concepts"]
    assert verdict.outcome is Outcome.INAPPLICABLE
    assert verdict.truth == 0


def test_sharp_constants_are_attained_or_approached() -> None:
    """7/16 and 9/16 at M = 2, n = m = 1; 9/20 below 3/4 exp(-1/2) = 0.4549."""
    for identifier in ("pac/1-chernoff", "pac/1-rare"):
        assert check(theorems.get(identifier, "tight"), SMALLEST).ratio == 1
    near = verdicts("pac/1", "tight")["all but one"]
    assert 0.75 * math.exp(-0.5) < near.truth < 0.456


def test_the_printed_constants_are_those_of_the_proof() -> None:
    """1 - 3/20 = 17/20; 3/20 times 1/3 is Theorem 1's 1/20."""
    printed = {"pac/1": (1, 20), "pac/1-guessing": (1, 2), "pac/1-chernoff": (17, 20)}
    printed |= {"pac/1-rare": (3, 20), "pac/1-conditional": (1, 3)}
    for identifier, (above, below) in printed.items():
        bound = theorems.get(identifier).bound
        assert (bound.p, bound.q) == (above, below)


def test_chernoffs_last_step_in_fractions() -> None:
    """exp(1/6) exceeds its series' first four terms, which exceed 20/17."""
    assert 1 + Fraction(1, 6) + Fraction(1, 72) + Fraction(1, 1296) == Fraction(1531, 1296)
    assert Fraction(1531, 1296) > Fraction(20, 17)


def test_printed_sum_is_refuted_and_the_derived_one_an_equation() -> None:
    printed, derived = verdicts("pac/1-sum", "printed"), verdicts("pac/1-sum", "derived")
    assert {v.outcome for v in printed.values()} == {Outcome.REFUTED}
    assert printed["two clients with one sample"].detail == "1 against 1/4"
    assert {(v.outcome, v.ratio) for v in derived.values()} == {(Outcome.HOLDS, 1.0)}


def test_a_learner_is_better_than_guessing() -> None:
    """M = 2, n = m = 1: x_2 has mass 1/4 and is hidden with 15/16; a coin errs with 15/128."""
    verdict = check(theorems.get("pac/1-guessing"), SMALLEST)
    assert (verdict.outcome, verdict.detail) == (Outcome.REFUTED, "15/128 against 1/2")
    assert check(theorems.get("pac/1-guessing", "derived"), SMALLEST).ratio == 1


def test_selecting_samples_is_not_selecting_clients() -> None:
    """M = n = 2, m = 1: 243/256 against 1 - (1 - 9/16)^2 = 207/256."""
    same, derived = (theorems.get("pac/1-equivalence", r) for r in ("same data", "derived"))
    small = FederatedSystem(2, 2, 1)
    verdict = check(same, small)
    assert (verdict.outcome, verdict.detail) == (Outcome.REFUTED, "243/256 against 207/256")
    assert check(derived, small).outcome is Outcome.INAPPLICABLE
    # Neither is learnable: half of the time for the clients that split x_2 among them.
    printed = check(theorems.get("pac/1-equivalence"), small)
    assert (printed.outcome, printed.bound) == (Outcome.HOLDS, 1 / 20)
    assert printed.truth == 243 / 512
    for system in (SMALLEST, FederatedSystem(9, 1, 4)):
        assert check(derived, system).ratio == 1
