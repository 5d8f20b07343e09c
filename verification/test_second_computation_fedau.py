"""FedAU: every refutation, and what decides the rest, computed a second time in another way.

Weights follow Algorithm 2's own counters over every history, in fractions; over polynomials in p,
so that one comparison settles all p at once; or over a table of histories that differ only in their
counters. Bounds are typed again from the paper. The engines and the theorems' expressions and
evaluation are used only in the last comparison.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.verify import Outcome, check

_p = sp.Symbol("p")


def interval_law(p: Fraction, cutoff: int) -> dict[int, Fraction]:
    law = {k: p * (1 - p) ** (k - 1) for k in range(1, cutoff)}
    return {**law, cutoff: (1 - p) ** (cutoff - 1)}


def counted(p: Fraction, cutoff: int, t: int) -> Fraction:
    """p^2 Var S / max(floor(t/K), 1) + (1-p)^(2K), the variance from the law itself."""
    law = interval_law(p, cutoff)
    mean = sum(k * mass for k, mass in law.items())
    variance = sum((k - mean) ** 2 * mass for k, mass in law.items())
    return p**2 * variance / max(t // cutoff, 1) + (1 - p) ** (2 * cutoff)


def weight(history: tuple[int, ...], cutoff: int) -> Fraction:
    """Return omega_t by Algorithm 2."""
    M, S_open, omega = 0, 0, Fraction(1)
    for present in history:
        S_open += 1
        if present or S_open == cutoff:
            omega = Fraction(S_open) if M == 0 else (M * omega + S_open) / (M + 1)
            M, S_open = M + 1, 0
    return omega


def error_over_histories(p: Fraction, cutoff: int, t: int) -> Fraction:
    return sum(
        (
            p ** sum(history)
            * (1 - p) ** (t - sum(history))
            * (p * weight(history, cutoff) - 1) ** 2
            for history in product((0, 1), repeat=t)
        ),
        Fraction(0),
    )


def error_by_counters(p, cutoff: int, rounds: int, zero, one, ratio) -> list:
    """E[(p omega_t - 1)^2] in any ring: chances of (ended intervals, their sum)."""
    return by_counters(p, cutoff, rounds, zero, one, lambda s, m: (p * ratio(s, m) - 1) ** 2)


def float_ratio(s: int, m: int) -> float:
    return s / m


def by_counters(p, cutoff: int, rounds: int, zero, one, value) -> list:
    chances, averages = {(0, 0): one}, []
    for t in range(rounds):
        terms = (c * value(s, m) if m else c * value(1, 1) for (m, s), c in chances.items())
        averages.append(sum(terms, zero))
        following: dict[tuple[int, int], object] = {}
        for (m, s), chance in chances.items():
            cut = t + 1 - s == cutoff
            moves = [((m + 1, t + 1), chance if cut else chance * p)]
            moves += [] if cut else [((m, s), chance * (1 - p))]
            for state, mass in moves:
                following[state] = following.get(state, zero) + mass
        chances = following
    return averages


def test_the_step_of_the_proof_fails_in_fractions() -> None:
    """With p = 1/2, K = 3, t = 1: omega_1 is 1, the error 1/4, the step's bound 3/16."""
    assert error_over_histories(Fraction(1, 2), 3, 1) == Fraction(1, 4)
    assert counted(Fraction(1, 2), 3, 1) == Fraction(3, 16)
    statement = theorems.get("fedau/3-step")
    verdict = check(statement, statement.regimes["before an interval ends"].setting)
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.truth == pytest.approx(4 / 3, rel=1e-12)


def test_the_step_fails_for_three_clients_too() -> None:
    """K = 5: the rarest client, p = 3/10, is worst, in one of the first four rounds."""
    clients = [Fraction(9, 10), Fraction(6, 10), Fraction(3, 10)]
    ratios = {
        (p, t): error_over_histories(p, 5, t) / counted(p, 5, t)
        for p in clients
        for t in range(1, 7)
    }
    (p, t), worst = max(ratios.items(), key=lambda item: item[1])
    assert (p, worst > 1) == (Fraction(3, 10), True)
    assert t < 5
    statement = theorems.get("fedau/3-step")
    verdict = check(statement, statement.regimes["K = 5"].setting)
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.truth == pytest.approx(float(worst), rel=1e-12)


def test_the_step_fails_for_rare_clients_and_a_long_cutoff() -> None:
    worst = 0.0
    for p in (0.02, 0.1, 0.5):
        errors = error_by_counters(p, 50, 60, 0.0, 1.0, float_ratio)
        steps = [float(counted(Fraction(str(p)), 50, t)) for t in range(60)]
        worst = max(worst, *(float(e) / b for e, b in zip(errors[1:], steps[1:], strict=True)))
    statement = theorems.get("fedau/3-step")
    verdict = check(statement, statement.regimes["K = 50"].setting)
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.truth == pytest.approx(worst, rel=1e-9)


def polynomial(expression) -> sp.Poly:
    return sp.Poly(expression, _p, domain="QQ")


def sign_on_the_unit_interval(of: sp.Poly) -> tuple[int, sp.Expr | None]:
    """Return the sign near zero, and the place in (0, 1) where it changes, at most once."""
    if of.is_zero:
        return 0, None
    while of.eval(0) == 0:
        of = of.quo(polynomial(_p))
    while of.eval(1) == 0:
        of = of.quo(polynomial(1 - _p))
    count = of.count_roots(0, 1)
    assert count <= 1
    roots = [root for root in of.real_roots() if 0 < root < 1] if count else [None]
    return int(sp.sign(of.eval(0))), roots[0]


@pytest.mark.parametrize("cutoff", range(1, 7))
def test_where_the_proof_fails_and_where_it_does_not_for_every_p_at_once(cutoff: int) -> None:
    """Gaps are polynomials in p with rational coefficients; roots in (0, 1) are counted exactly.

    The step fails for t < K, for all p below some p(K, t) that falls with t, and for no p from
    t = K on; the last line holds for every p in (0, 1] and t up to 3K.
    """
    p, q, K = polynomial(_p), polynomial(1 - _p), cutoff
    errors = error_by_counters(p, K, 3 * K + 1, polynomial(0), polynomial(1), sp.Rational)
    scaled_variance = q - (2 * K - 1) * p * q**K - q ** (2 * K)
    highest = sp.Integer(1)
    for t in range(1, 3 * K + 1):
        step = scaled_variance * sp.Rational(1, max(t // K, 1)) + q ** (2 * K) - errors[t]
        sign, change = sign_on_the_unit_interval(step)
        if t < K:
            assert sign == -1
            assert change < highest
            highest = change
        else:
            assert change is None
            assert sign == (0 if K == 1 or (K, t) == (2, 2) else 1)
        last = q * sp.Rational(2 * K, t) + q ** (2 * K) - errors[t]
        assert sign_on_the_unit_interval(last) == (1, None)


def test_before_two_rounds_have_passed_the_step_fails_below_two_thirds() -> None:
    """K = 2, t = 1: E(pS - 1)^2 < (1-p)^2 is 3p^2 < 2p."""
    for p in (Fraction(1, 100), Fraction(1, 3), Fraction(2, 3) - Fraction(1, 10**9)):
        assert error_over_histories(p, 2, 1) > counted(p, 2, 1)
    for p in (Fraction(2, 3), Fraction(3, 4), Fraction(1)):
        assert error_over_histories(p, 2, 1) <= counted(p, 2, 1)


@pytest.mark.parametrize("cutoff", range(1, 6))
def test_the_split_into_variance_and_bias_is_right_from_t_equal_to_k_on(cutoff: int) -> None:
    """It takes E omega_t for E S. Given that n intervals have ended, they are exchangeable.

    So E[omega_t; n > 0] = E[S_1; n > 0]; from t = K on n > 0 surely, and E omega_t = E S for every
    p. Before, it is less, and the split leaves out 2p (1-p)^K (E S - E omega_t).
    """
    p, q = polynomial(_p), polynomial(1 - _p)
    means = by_counters(
        p,
        cutoff,
        3 * cutoff,
        polynomial(0),
        polynomial(1),
        lambda s, m: polynomial(sp.Rational(s, m)),
    )
    mean_times_p = polynomial(1) - q**cutoff
    for t, mean in enumerate(means):
        short = mean_times_p - p * mean
        if t >= cutoff:
            assert short.is_zero
        elif cutoff > 1:
            assert sign_on_the_unit_interval(short) == (1, None)


@pytest.mark.parametrize(("cutoff", "t"), [(2, 1), (3, 2), (3, 4), (4, 9)])
def test_what_the_split_leaves_out(cutoff: int, t: int) -> None:
    p = Fraction(1, 3)
    mean = sum(k * mass for k, mass in interval_law(p, cutoff).items())
    histories = list(product((0, 1), repeat=t))
    chances = [p ** sum(h) * (1 - p) ** (t - sum(h)) for h in histories]
    weights = [weight(h, cutoff) for h in histories]
    average = sum(c * w for c, w in zip(chances, weights, strict=True))
    around = sum(c * (w - mean) ** 2 for c, w in zip(chances, weights, strict=True))
    left_out = error_over_histories(p, cutoff, t) - p**2 * around - (1 - p) ** (2 * cutoff)
    assert left_out == 2 * p * (1 - p) ** cutoff * (mean - average)
    assert (left_out > 0) == (t < cutoff)


def algorithm_1(history, optima, omegas, keep: Fraction, eta: Fraction) -> Fraction:
    """Return x after the rounds of a history: a client moves x to c + keep (x - c)."""
    x = Fraction(3)
    for t, present in enumerate(history):
        moves = [
            omegas(n, t, history) * (keep - 1) * (x - c) for n, c in enumerate(optima) if present[n]
        ]
        x += eta * sum(moves, Fraction(0)) / len(optima)
    return x


def test_theorem_2_on_six_rounds_over_every_history() -> None:
    """F_n = (x -+ 1)^2/2, exact gradients, I = 2, K = 3, p = (4/5, 3/10), from x_0 = 3."""
    statement = theorems.get("fedau/2-option-2", "derived")
    setting = statement.regimes["six rounds"].setting
    gamma, eta = setting.algorithm.client_lr, setting.algorithm.server_lr
    p, T, N, steps, L = (Fraction(4, 5), Fraction(3, 10)), 6, 2, 2, 1
    keep = (1 - Fraction(gamma)) ** 2
    truth = Fraction(0)
    for t in range(T):
        for history in product(product((0, 1), repeat=2), repeat=t):
            chance = math.prod(
                p[n] if here else 1 - p[n] for present in history for n, here in enumerate(present)
            )
            x = algorithm_1(
                history,
                (-1, 1),
                lambda n, s, h: weight(tuple(present[n] for present in h[:s]), 3),
                keep,
                Fraction(eta),
            )
            truth += chance * x**2 / T
    errors = [error_by_counters(float(each), 3, T, 0.0, 1.0, float_ratio) for each in p]
    W = float(np.mean([[float(e) for e in row] for row in errors]))
    Q = sum(float(each) * 9 for each in p) / N
    # x stays within 3 of x* = 0: gamma eta I Q is small
    G2, delta2, F_0 = 9.0, 1.0, 4.5
    bound = 16 * F_0 / (gamma * eta * steps * T) + 81 * (G2 + delta2) * W
    bound += gamma * eta * L * Q / N * 54 * steps * delta2
    bound += 40 * gamma**2 * L**2 * steps * 6 * steps * delta2
    verdict = check(statement, setting)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.truth == pytest.approx(float(truth), rel=1e-12)
    assert verdict.bound == pytest.approx(bound, rel=1e-12)


def test_theorem_1_in_the_limit_coordinate_by_coordinate() -> None:
    """Here x' = (1 - a s) x + a z + noise, s = eta/N sum B_n, z = eta/N sum B_n c_n."""
    statement = theorems.get("fedau/1", "derived")
    setting = statement.regimes["equal weights"].setting
    gamma, eta, N = setting.algorithm.client_lr, setting.algorithm.server_lr, 3
    p, sigma2 = (0.9, 0.6, 0.3), 0.25
    optima = ((3.0, 0.0), (0.0, 3.0), (-3.0, -3.0))
    truth = 0.0
    for j, curvature in enumerate((1.0, 0.5)):
        a = 1 - (1 - gamma * curvature) ** 2
        noise = gamma**2 * sigma2 / 2 * (1 + (1 - gamma * curvature) ** 2)
        shift = sum(q * c[j] for q, c in zip(p, optima, strict=True)) / sum(p)
        squares = cross = fresh = noisy = 0.0
        for present in product((0, 1), repeat=3):
            chance = math.prod(q if here else 1 - q for q, here in zip(p, present, strict=True))
            s = eta / N * sum(present)
            z = (
                eta
                / N
                * sum(here * (c[j] - shift) for here, c in zip(present, optima, strict=True))
            )
            squares += chance * (1 - a * s) ** 2
            cross += chance * (1 - a * s) * a * z
            fresh += chance * (a * z) ** 2
            noisy += chance * (eta / N) ** 2 * sum(present) * noise
        # E z = 0 around argmin h, so that the mean of the limit is argmin h itself
        truth += curvature**2 * (fresh + noisy) / (1 - squares)
        assert cross == pytest.approx(
            sum(
                math.prod(q if here else 1 - q for q, here in zip(p, present, strict=True))
                * -a
                * eta
                / N
                * sum(present)
                * a
                * eta
                / N
                * sum(here * (c[j] - shift) for here, c in zip(present, optima, strict=True))
                for present in product((0, 1), repeat=3)
            ),
            rel=1e-9,
        )
    P = sum(p)
    h_minimum = [sum(q * c[j] for q, c in zip(p, optima, strict=True)) / P for j in (0, 1)]
    delta2 = max(
        (1.0 * (c[0] - h_minimum[0])) ** 2 + (0.5 * (c[1] - h_minimum[1])) ** 2 for c in optima
    )
    bound = 40 * gamma**2 * 2 * (sigma2 + 12 * delta2)
    bound += gamma * eta * (P / 3) / P * (17 * sigma2 + 108 * delta2)
    verdict = check(statement, setting)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.truth == pytest.approx(truth, rel=1e-9)
    assert verdict.bound == pytest.approx(bound, rel=1e-12)


def test_option_1_is_out_of_reach_of_fedau() -> None:
    """K >= 2, three rounds, nobody always there: omega_0 = 1 and omega_2 = 2 may both happen.

    With a = mean of 1 - p: mean (1-p)^2 >= a^2 and mean (1-2p)^2 >= (1-2a)^2, and no a makes
    both at most 1/81.
    """
    a = sp.Symbol("a", real=True)
    both = sp.And(a**2 <= sp.Rational(1, 81), (1 - 2 * a) ** 2 <= sp.Rational(1, 81))
    assert both.as_set() == sp.EmptySet


def test_every_refuted_cell_is_among_these(recorded_verdicts) -> None:
    refuted = {key for key, record in recorded_verdicts.items() if record.outcome == "REFUTED"}
    assert {key for key in refuted if key[0].startswith("fedau")} == {
        ("fedau/3-step", "printed", "before an interval ends"),
        ("fedau/3-step", "printed", "K = 5"),
        ("fedau/3-step", "printed", "K = 50"),
    }
