"""Theorems 2 and 3, their lemmas and the example, as statements."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.evidence.evaluation import evaluate
from fltheory.evidence.verdict import Grade
from fltheory.learnability.system import ServerAssistedSystem, TailCase, UniformPair
from fltheory.theorems.sa_fl import pac
from fltheory.theorems.sa_fl.pac import (
    FOUR_DECADES,
    REMARK_2_REGIMES,
    THEOREM_2_REGIMES,
    THEOREM_3_REGIMES,
)
from fltheory.verify import Outcome, check


@pytest.mark.parametrize(
    ("beta", "beta_q", "exponent"), [(1, 1, 1), (2, 0.5, 2 / 3), (0.5, 0.5, 1 / 3), (0, 1, 0)]
)
def test_claimed_order_of_theorem_2(beta: float, beta_q: float, exponent: float) -> None:
    """min(1, beta)/(2 - beta_Q)."""
    values = {pac.beta: beta, pac.beta_Q: beta_q, pac.size: 100.0}
    assert float(evaluate(pac.THEOREM_2.order, values)) == pytest.approx(100**-exponent)


@pytest.mark.parametrize(
    ("regime", "expected"),
    [
        (THEOREM_2_REGIMES["clients miss the middle"], {pac.beta: 1, pac.beta_Q: 1, pac.alpha: 9}),
        (
            THEOREM_2_REGIMES["noise near the target"],
            {pac.beta_P: 0.5, pac.beta_Q: 0.5, pac.alpha: 0},
        ),
        (THEOREM_2_REGIMES["clients only"], {pac.beta: 0, pac.alpha_P: 1}),
        (
            REMARK_2_REGIMES["labels of P' and D noisier"],
            {pac.beta: 0.5, pac.beta_P: 1, pac.beta_Q: 0.5},
        ),
        (REMARK_2_REGIMES["server's target shifted"], {pac.beta: 0}),
    ],
)
def test_assumptions_are_computed(regime, expected: dict) -> None:
    """alpha = n_S/n_T = 9 where D misses the middle; powers r and r^2 have beta = 1/2."""
    assert {one: one.on(regime.setting) for one in expected} == pytest.approx(expected)


def test_the_servers_target_is_where_the_regime_says() -> None:
    """Points between 1/2 and 11/20 are labelled otherwise: a twentieth of a uniform law."""
    setting = REMARK_2_REGIMES["server's target shifted"].setting
    assert setting.server.best == Fraction(11, 20)
    assert setting.target.excess(setting.server.best) == Fraction(1, 20)


def test_alpha_grows_with_the_clients_samples() -> None:
    """n_T = 10 fixed: alpha = n_S/10, slope 1 in logarithms."""
    setting = THEOREM_2_REGIMES["ten server samples"].setting
    assert pac.alpha_growth.on(setting) == pytest.approx(1.0, abs=0.02)
    assert pac.alpha.on(setting) == pytest.approx((10**6 - 10) / 10)


def test_sizes_span_four_decades() -> None:
    for name, regime in THEOREM_2_REGIMES.items():
        setting = regime.setting
        assert isinstance(setting, ServerAssistedSystem)
        if name != "clients with another target":
            assert setting.sizes[-1] / setting.sizes[0] == 10**4
    assert FOUR_DECADES[-1] / FOUR_DECADES[0] == 10**4


def test_theorem_2_without_an_exact_law_is_statistical() -> None:
    statement = theorems.get("pac/2")
    verdict = check(statement, statement.regimes["constant noise"].setting)
    assert (verdict.outcome, verdict.evidence.grade) == (Outcome.HOLDS, Grade.STATISTICAL)
    assert verdict.evidence.error_probability == 1e-9
    assert verdict.truth == pytest.approx(-1, abs=0.06)


def test_conditions_of_theorem_3_are_evaluated() -> None:
    """2/n_T over A(n_T) falls as 1/log; a tenth over A(n_T) grows nearly as n_T."""
    for growth in (pac.offset_growth, pac.cited_offset_growth):
        near, far = (
            growth.on(THEOREM_3_REGIMES[name].setting)
            for name in ("clients' target within 2/n_T", "clients' target apart")
        )
        assert -0.25 < near < 0
        assert 0.75 < far < 1


def test_what_is_over_a_of_the_servers_samples() -> None:
    """Q's best threshold is the clients', who are four fifths: it errs by 2/n_T on P."""
    system = THEOREM_3_REGIMES["clients' target within 2/n_T"].setting
    asked = []

    def complexity(samples: int, delta: float) -> float:
        asked.append((samples, delta))
        return samples**-0.5

    growth = pac.growth_of_offset(complexity)(system)
    assert asked == [(value, 0.05) for value in system.sizes]
    assert growth == pytest.approx(-0.5)


def test_lemma_1_in_fractions() -> None:
    """A(100, 1e-6) as printed is below 1/20, and P[eps > 1/20] is far above 1e-6."""
    verdict = check(pac.LEMMA_1, pac.LEMMA_1.regimes["unlikely"].setting)
    assert verdict.outcome is Outcome.REFUTED
    at_least = 2 * Fraction(19, 20) ** 100 - Fraction(9, 10) ** 100
    assert verdict.truth > at_least > Fraction(1, 10**6)
    for name, regime in pac.LEMMA_1_DERIVED.regimes.items():
        assert check(pac.LEMMA_1_DERIVED, regime.setting).outcome is Outcome.HOLDS, name


def test_mended_lemma_1_asks_for_two_samples() -> None:
    """With one sample the worst minimiser is 1/2 off in the end, and A = log(1/delta) is not."""
    lemma = pac.LEMMA_1_DERIVED
    one, two = (check(lemma, TailCase(m, Fraction(9, 10))) for m in (1, 2))
    assert one.truth == pytest.approx(1.0, rel=1e-12)
    assert one.truth > one.bound
    assert one.outcome is Outcome.INAPPLICABLE
    assert two.outcome is Outcome.HOLDS


@pytest.mark.parametrize("m", [2, 3, 10, 1000])
@pytest.mark.parametrize("share", [1, 10**3, 10**9, 10**18 - 10**6])
def test_mended_lemma_1_where_delta_is_near_its_ends(m: int, share: int) -> None:
    """2 (1-A)^m <= 2 exp(-m A) = 2 delta/m, which is at most delta from m = 2 on."""
    verdict = check(pac.LEMMA_1_DERIVED, TailCase(m, Fraction(share, 10**18)))
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.truth <= 2 * verdict.bound / m * (1 + 1e-12)


def test_no_constant_mends_lemma_1_as_printed() -> None:
    """An interval of mass u on one side is empty with probability (1-u)^m: u >= 1 - exp(-1/2)."""
    claim = theorems.get("pac/lemma-1", "any constant")
    fixed, falling = (regime.setting for regime in claim.regimes.values())
    verdict = check(claim, falling)
    assert verdict.outcome is Outcome.REFUTED
    assert "at least 0.39 at every m" in verdict.detail  # 1 - exp(-1/2) = 0.3935
    assert check(claim, fixed).outcome is Outcome.HOLDS
    measured = claim.quantity.measure(falling, 10**6, 2, np.random.default_rng(0)).value
    assert 1 - math.exp(-0.5) <= measured <= 1 - math.exp(-0.5) + 1e-6  # by log(2)/m at most


def test_lemma_2_loses_a_root() -> None:
    verdict = check(pac.LEMMA_2, pac.LEMMA_2.regimes["apart"].setting)
    assert (verdict.outcome, verdict.evidence.grade) == (Outcome.REFUTED, Grade.FLOAT64)
    assert verdict.truth == pytest.approx(-0.5, abs=0.01)


def test_mended_lemma_2_is_enough_for_theorem_3() -> None:
    """(1 + b)/2 - 1/(2 - b) = b (1 - b)/(2 (2 - b)), not negative on [0, 1]."""
    b = sp.Symbol("b")
    difference = (1 + b) / 2 - 1 / (2 - b)
    assert sp.simplify(difference - b * (1 - b) / (2 * (2 - b))) == 0


def test_example_off_the_middle() -> None:
    """P on [0, 1], Q on [0, 1/2], t* = 3/8: at t = 1, |5/8 - 1/4| = 3/8 > 1/2 * 1/4."""
    pair = UniformPair(0, 1, 0, "1/2", "3/8")
    on_p, on_q = pair.populations
    assert (on_p.excess(1), on_q.excess(1)) == (Fraction(5, 8), Fraction(1, 4))
    verdict = check(pac.EXAMPLE, pair)
    assert (verdict.outcome, verdict.detail) == (Outcome.REFUTED, "3/2 against 1/2")
    assert verdict.evidence.grade is Grade.RATIONAL
    derived = check(pac.EXAMPLE_DERIVED, pair)
    assert (derived.outcome, derived.ratio) == (Outcome.HOLDS, 1.0)


def test_example_at_an_end_has_no_alpha() -> None:
    verdict = check(pac.EXAMPLE, UniformPair(0, 1, 0, "1/2", "1/2"))
    assert (verdict.outcome, verdict.truth) == (Outcome.REFUTED, float("inf"))


@pytest.mark.parametrize(
    ("regime", "constant"),
    [
        ("likely", "0.64"),
        ("unlikely", "2.9"),
        ("most unlikely", "11"),
        ("exponentially unlikely", "77"),
    ],
)
def test_the_least_constants_of_lemma_1(regime: str, constant: str) -> None:
    """The u at which ``2 (1-u)^m - (1-2u)^m``, zero from 1/2 on, is delta, over A, by halving."""
    claim = theorems.get("pac/lemma-1")
    case = claim.regimes[regime].setting
    with mpmath.workdps(400):
        m, delta = case.m, mpmath.mpf(case.delta.numerator) / case.delta.denominator
        low, high = mpmath.mpf(0), mpmath.mpf(1) / 2
        for _ in range(300):
            u = (low + high) / 2
            low, high = (u, high) if 2 * (1 - u) ** m - (1 - 2 * u) ** m > delta else (low, u)
        level = mpmath.log(m + mpmath.log(1 / delta) / m) / m
        least = mpmath.nstr(high / level, 2, strip_zeros=True)
    assert least.removesuffix(".0") == constant
    assert constant in claim.note
