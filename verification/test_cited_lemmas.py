"""The lemmas that SA-FL cites: recorded verdicts, and tightness shown by other means.

Suprema over functions are attained by instances computed step by step; those over noises, by coins,
all of whose outcomes are enumerated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.claims.statement import Statement
from fltheory.testing import each_cell
from fltheory.testing.cells import rows_of
from fltheory.testing.pytest_plugin import Recorder
from fltheory.theorems import cited_lemmas
from fltheory.theorems.cited_lemmas import (
    excess_for_all_smooth,
    gradient_constant,
    noise_constant,
)
from fltheory.verify import Outcome, check
from fltheory.verify.baseline import Baseline

PAPER = "lemmas"


@each_cell(PAPER)
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    as_recorded(statement, regime)


def test_no_lemma_is_refuted(recorded_verdicts: Baseline) -> None:
    outcomes = {row.outcome for row in rows_of(PAPER, recorded_verdicts).values()}
    assert outcomes == {"HOLDS", "INAPPLICABLE"}


def worst_function(mu: float, smoothness: float) -> float:
    """Return the supremum over all functions of the gap in Lemma 5, from an SDP.

    Three points, their gradients and values are those of a mu-strongly convex, L-smooth function
    exactly if Taylor, Hendrickx and Glineur's interpolation conditions hold (2017, Theorem 4). The
    unknowns are the Gram matrix of x, y and the gradients (z = 0), and the values.
    """
    gram, values = cp.Variable((5, 5), PSD=True), cp.Variable(3)
    unit = np.eye(5)
    points, gradients = [unit[0], unit[1], 0 * unit[0]], [unit[2], unit[3], unit[4]]

    def dot(u: np.ndarray, v: np.ndarray) -> cp.Expression:
        return cp.sum(cp.multiply(gram, (np.outer(u, v) + np.outer(v, u)) / 2))

    conditions = [dot(points[0], points[0]) <= 1, values[2] == 0]
    for i, j in product(range(3), repeat=2):
        if i == j:
            continue
        step, change = points[i] - points[j], gradients[i] - gradients[j]
        curved = (
            dot(change, change) / smoothness
            + mu * dot(step, step)
            - 2 * mu / smoothness * dot(change, step)
        )
        conditions.append(
            values[i] >= values[j] + dot(gradients[j], step) + curved / (2 * (1 - mu / smoothness))
        )
    x, y, z = 0, 1, 2
    lost = (
        values[z]
        - values[y]
        + mu / 4 * dot(points[y], points[y])
        - dot(gradients[x], points[z] - points[y])
    )
    problem = cp.Problem(cp.Maximize(lost), conditions)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@pytest.mark.parametrize("mu", [0.1, 0.5, 0.9])
def test_perturbed_strong_convexity_needs_the_tight_constant(mu: float) -> None:
    """Over all functions the least c is (L + mu)/2; quadratics need less."""
    assert worst_function(mu, 1.0) == pytest.approx((1 + mu) / 2, abs=1e-6)
    assert 1 / (2 - mu) < (1 + mu) / 2


def test_perturbed_strong_convexity_is_an_equality_at_kappa_one() -> None:
    """F = ||x||^2/2, z = 0, y = -2x: both sides of (63) are equal, in fractions."""
    x, z = Fraction(3), Fraction(0)
    y = z - 2 * (z - x) * -1 * -1
    left = x * (z - y)
    right = z * z / 2 - y * y / 2 + Fraction(1, 4) * (y - z) ** 2 - (z - x) ** 2
    assert left == right
    assert y != z


def coin_sums(steps: int, slope: Fraction) -> tuple[Fraction, Fraction]:
    """Return E(sum Xi)^2 and E(sum xi)^2 for coins Xi_j, and Xi_K = coin + slope sum of others."""
    both = [Fraction(0), Fraction(0)]
    for coins in product((-1, 1), repeat=steps):
        mean = slope * sum(coins[:-1])
        both[0] += (sum(coins) + mean) ** 2
        both[1] += mean**2
    return both[0] / 2**steps, both[1] / 2**steps


@pytest.mark.parametrize("steps", [2, 3, 6])
def test_the_worst_martingale_is_reached_by_coins(steps: int) -> None:
    """The supremum A^2 + 2 A sqrt(K-1) sigma + K sigma^2, and the least factor at its best."""
    slope = Fraction(7, 5)
    noisy, known = coin_sums(steps, slope)
    size = math.sqrt(known)
    supremum = size**2 + 2 * size * math.sqrt(steps - 1) + steps
    assert float(noisy) == pytest.approx(supremum, rel=1e-14)
    best = Fraction(math.sqrt(steps / (steps - 1))).limit_denominator(10**8)
    noisy, known = coin_sums(steps, best)
    factor = 1 + math.sqrt((steps - 1) / steps)
    assert float(noisy / (known + steps)) == pytest.approx(factor, rel=1e-12)


def test_sgd_without_factor_2_at_negative_curvature() -> None:
    """F = -x^2/2, eta = 1/8, K = 3, coins: the separation of (61) fails; with factor 2 it holds."""
    noisy = exact = Fraction(0)
    for coins in product((-1, 1), repeat=3):
        y, with_noise, without = Fraction(0), Fraction(0), Fraction(0)
        for coin in coins:
            without += -y
            with_noise += -y + coin
            y -= Fraction(1, 8) * (-y + coin)
        noisy += with_noise**2 / 8
        exact += without**2 / 8
    assert noisy > exact + 3
    assert noisy < 2 * exact + 2 * 3


def rippled(point: np.ndarray) -> np.ndarray:
    """Return the gradient of a convex function of two variables whose Hessians do not commute."""
    a, b = np.array([1.0, 0.3]), np.array([-0.4, 1.0])
    return 0.5 * np.tanh(3 * point @ a) * a + 0.5 * np.tanh(2 * point @ b - 0.7) * b


def test_sgd_without_factor_2_on_a_convex_function() -> None:
    """All outcomes of four steps' coins in the plane: (61) as printed holds off quadratics too."""
    noisy = exact = 0.0
    outcomes = list(product(product((-1.0, 1.0), repeat=2), repeat=4))
    for coins in outcomes:
        y, with_noise, without = np.array([0.2, -0.1]), np.zeros(2), np.zeros(2)
        for coin in np.array(coins):
            gradient = rippled(y)
            without += gradient
            with_noise += gradient + coin
            y = y - 0.4 * (gradient + coin)
        noisy += with_noise @ with_noise / len(outcomes)
        exact += without @ without / len(outcomes)
    assert noisy < exact + 4 * 2


def drift_by_steps(
    gradient_of: Callable[[float], float], steps: int, lr: float, noise: float
) -> float:
    """Return E(y_K - x)^2 from x = 0 on a line, coins of size ``noise``, all outcomes."""
    total = 0.0
    for coins in product((-noise, noise), repeat=steps):
        y = 0.0
        for coin in coins:
            y -= lr * (gradient_of(y) + coin)
        total += y * y
    return total / 2**steps


@pytest.mark.parametrize(("steps", "size"), [(2, 1 / 8), (6, 1 / 8), (6, 1.0)])
def test_the_least_drift_constants_are_reached(steps: int, size: float) -> None:
    """Curvature -L = -1: noise alone needs c_1, gradients of one length alone need c_2."""
    lr = size / steps
    of_noise = drift_by_steps(lambda y: -y, steps, lr, 1.0)
    assert of_noise == pytest.approx(noise_constant(steps, size) * steps * lr**2, rel=1e-12)
    # grad F = sigma_G = 1 and grad F_i = 2.
    of_gradient = drift_by_steps(lambda y: 2 - y, steps, lr, 0.0)
    least = gradient_constant(steps, size) * (steps * lr) ** 2 * 2
    assert of_gradient == pytest.approx(least, rel=1e-12)


def test_no_quadratic_drifts_more() -> None:
    """A search over curvatures in [-L, L], gradients and noises: none beyond the supremum."""
    rng = np.random.default_rng(4)
    steps, largest = 5, 0.0
    for _ in range(300):
        curvature, size = rng.uniform(-1, 1), 10 ** rng.uniform(-2, 0.5)
        gradient, noise = 10 ** rng.uniform(-2, 2, size=2)
        drift = drift_by_steps(
            lambda y, a=curvature, g=gradient: a * y + g, steps, size / steps, noise
        )
        least = noise_constant(steps, size) * steps * noise**2
        least += gradient_constant(steps, size) / 2 * (steps * gradient) ** 2
        largest = max(largest, drift / (least * (size / steps) ** 2))
    assert 0.9 < largest <= 1 + 1e-12


def test_other_smooth_functions_stay_within_the_bound_for_all() -> None:
    """Rippled gradients with |F''| <= 1, coins: above the quadratics' constants at most so far."""
    rng = np.random.default_rng(5)
    steps, size, largest = 6, 1.0, 0.0
    for _ in range(150):
        gradient, noise, frequency = 10 ** rng.uniform(-1, 1, size=3)
        phase = rng.uniform(0, 6)

        def of(y: float, g: float = gradient, w: float = frequency, p: float = phase) -> float:
            return g + (math.sin(w * y + p) - math.sin(p)) / w

        drift = drift_by_steps(of, steps, size / steps, noise)
        least = noise_constant(steps, size) * steps * noise**2
        least += gradient_constant(steps, size) / 2 * (steps * gradient) ** 2
        largest = max(largest, drift / (least * (size / steps) ** 2))
    assert 0.8 < largest <= excess_for_all_smooth(steps, size)


@pytest.mark.parametrize(
    ("regime", "wrong"),
    [
        ("almost noise only", {sp.Integer(5): sp.Integer(1)}),
        (
            "gradients of one length",
            {sp.Integer(30): sp.Integer(2), sp.Integer(6): sp.Rational(2, 5)},
        ),
    ],
)
def test_smaller_drift_constants_are_refuted(regime: str, wrong: dict) -> None:
    """5 and 30 (also as 5 times 6) are not needed, 1 and 2 are too few."""
    changed = cited_lemmas.DRIFT.bound.xreplace(wrong)
    assert changed != cited_lemmas.DRIFT.bound
    faulty = replace(cited_lemmas.DRIFT, bound=changed)
    assert check(faulty, faulty.regimes[regime].setting).outcome is Outcome.REFUTED


@pytest.mark.parametrize(
    ("statement", "regime"),
    [
        (cited_lemmas.PERTURBED_CONVEXITY, "kappa = 2"),
        (cited_lemmas.SEPARATION, "little noise"),
        (cited_lemmas.MARTINGALE, "long steps"),
        (cited_lemmas.SEPARATION_61, "ten steps"),
    ],
    ids=lambda item: getattr(item, "id", item),
)
def test_half_of_each_bound_is_refuted(statement: theorems.PointClaim, regime: str) -> None:
    faulty = replace(statement, bound=statement.bound / 2)
    assert check(faulty, faulty.regimes[regime].setting).outcome is Outcome.REFUTED
