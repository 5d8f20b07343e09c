"""Lemma B.3.3 in fractions: one round of two clients, every mask, and its right side typed."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from fltheory import theorems
from fltheory.algorithms import WeightedFedAvg
from fltheory.engines import Setting
from fltheory.participation import Bernoulli
from fltheory.problems import QuadraticProblem
from fltheory.verify import Outcome, check

P = (Fraction(4, 5), Fraction(3, 10))
OMEGA = (Fraction(3, 2), Fraction(2))
OPTIMA = (Fraction(-1), Fraction(1))
STEPS, GAMMA, ETA, SIGMA, START = 2, Fraction(1, 32), Fraction(3), Fraction(1, 2), Fraction(1, 4)


def truth() -> Fraction:
    """F_n = (x -+ 1)^2/2: f - f* = x^2/2; the noise of local steps is added by its variance."""
    keep = 1 - GAMMA
    total = Fraction(0)
    for mask in product((0, 1), repeat=2):
        chance, x, variance = Fraction(1), START, Fraction(0)
        for here, p, omega, optimum in zip(mask, P, OMEGA, OPTIMA, strict=True):
            chance *= p if here else 1 - p
            share = ETA * omega / 2 * here
            x += share * (keep**STEPS - 1) * (START - optimum)
            variance += share**2 * GAMMA**2 * SIGMA**2 * (1 + keep**2)
        total += chance * (x**2 + variance) / 2
    return total


def bound() -> Fraction:
    """The lemma's right side with L = delta = 1, N = 2 and K = I = 2, phi = 1/2, term by term."""
    K, N, gamma, eta, s2 = STEPS, 2, GAMMA, ETA, SIGMA**2
    error = sum((p * w / N - Fraction(1, 2)) ** 2 for p, w in zip(P, OMEGA, strict=True))
    square = sum(p * w**2 for p, w in zip(P, OMEGA, strict=True))
    value = START**2 / 2
    value += 3 * gamma * eta * K * N / 2 * (15 * K * gamma**2 * s2 + Fraction(27, 8)) * error
    value += 5 * gamma**3 * eta * K**2 / 2 * (s2 + 6 * K)
    value += gamma**2 * eta**2 * K / N**2 * (17 * s2 / 16 + 27 * K / Fraction(8)) * square
    slope = 81 * N / Fraction(16) * error + 15 * K**2 * gamma**2 - Fraction(1, 4)
    slope += 27 * gamma * eta * K / (8 * Fraction(N**2)) * square
    return value + gamma * eta * K * slope * START**2


def test_both_sides_of_the_descent_lemma() -> None:
    problem = QuadraticProblem([[1]], [[c] for c in OPTIMA], sigma=SIGMA)
    fedavg = WeightedFedAvg(tuple(w / 2 for w in OMEGA), GAMMA, STEPS, server_lr=ETA)
    setting = Setting(fedavg, problem, Bernoulli(P), 1, [START])
    verdict = check(theorems.get("fedau/lemma-b-3-3"), setting)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.truth == pytest.approx(float(truth()), rel=1e-12)
    assert verdict.bound == pytest.approx(float(bound()), rel=1e-12)


def test_the_lemma_is_about_one_round_and_independent_rounds() -> None:
    claim = theorems.get("fedau/lemma-b-3-3")
    setting = claim.regimes["equal weights"].setting
    longer = Setting(setting.algorithm, setting.problem, setting.participation, 2, setting.x0)
    verdict = check(claim, longer)
    assert verdict.outcome is Outcome.INAPPLICABLE
    assert [h.name for h in verdict.hypotheses if not h.holds] == ["one round"]
