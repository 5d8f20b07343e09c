"""The claims about weights: the criterion of convexity, and the order of the optimal weights."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from fltheory import theorems
from fltheory.engines.affine.numbers import Balls
from fltheory.engines.enclosure.exact_setting import WIDENING
from fltheory.numbers.projected_averaging import ProjectedAveraging
from fltheory.participation import MarkovOnOff
from fltheory.theorems.ca_fed.weights import convexity_ratio, summand_curvature_ratio
from fltheory.validation import FloatArray
from fltheory.verify import Outcome, check
from fltheory.weights import optimal
from fltheory.weights.convergence import fastest


def least_curvature(pi: FloatArray, alpha: FloatArray, q: FloatArray) -> tuple[float, float]:
    """Smallest and largest eigenvalue of the Hessian of chi^2 on sum v = 0, v_k = q_k z_k.

    Typed from chi^2 + 1 = (pi'q) sum c_k/q_k; scaling by q keeps the sign of the smallest.
    """
    c = alpha**2 / pi
    slope = -c / q**2
    hessian = np.outer(pi, slope) + np.outer(slope, pi) + np.diag(2 * (pi @ q) * c / q**3)
    scaled = hessian * np.outer(q, q)
    basis = np.linalg.svd(q[None])[2][1:]
    values = np.linalg.eigvalsh(basis @ scaled @ basis.T)
    return float(values[0]), float(values[-1])


shares = st.floats(0.05, 1.0)


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 5).flatmap(lambda n: st.lists(st.tuples(*[shares] * 3), min_size=n)))
def test_criterion_has_the_sign_of_the_least_curvature(rows) -> None:
    pi, alpha, q = np.array(rows[:6]).T
    alpha = alpha / alpha.sum()
    smallest, largest = least_curvature(pi, alpha, q)
    if abs(smallest) > 1e-9 * largest:
        assert (convexity_ratio(pi, alpha, q) <= 2) == (smallest >= 0)


@settings(max_examples=100, deadline=None)
@given(*[st.tuples(shares, shares)] * 3)
def test_two_clients_are_always_convex(pi, alpha, q) -> None:
    target = np.array(alpha) / sum(alpha)
    assert convexity_ratio(np.array(pi), target, np.array(q)) <= 2 + 1e-9


def _most_bent(pi: FloatArray, alpha: FloatArray, q: FloatArray) -> float:
    """Least eigenvalue over all summands of the Hessian on sum v = 0, by second differences."""
    basis = np.linalg.svd(q[None] * 0 + 1)[2][1:]
    size = 1e-3 * q.min()

    def summand(k: int, at: FloatArray) -> float:
        p = pi[k] * at[k] / (pi @ at)
        return float((p - alpha[k]) ** 2 / p)

    def second(k: int, v: FloatArray) -> float:
        around = summand(k, q + size * v) + summand(k, q - size * v)
        return (around - 2 * summand(k, q)) / size**2

    least = np.inf
    for k in range(q.size):
        hessian = np.array(
            [[(second(k, a + b) - second(k, a - b)) / 4 for a in basis] for b in basis]
        )
        least = min(least, np.linalg.eigvalsh(hessian)[0])
    return float(least)


@pytest.mark.parametrize("n_clients", [2, 3, 4])
def test_criterion_of_summands_has_the_sign_of_the_least_curvature(n_clients: int) -> None:
    rng = np.random.default_rng(n_clients)
    signs = set()
    for _ in range(40):
        pi, q = rng.uniform(0.05, 1.0, n_clients), rng.uniform(0.1, 1.0, n_clients)
        alpha = rng.dirichlet(np.ones(n_clients))
        bent = summand_curvature_ratio(pi, alpha, q) > 1
        assert bent == (_most_bent(pi, alpha, q) < 0)
        signs.add(bent)
    assert signs == ({True, False} if n_clients == 2 else {True})


def test_summands_of_two_clients_are_not_all_convex() -> None:
    """pi = (1, 1/10), alpha = (1/100, 99/100), equal weights: p_1 = 10/11, y = (9/11) z."""
    pi, alpha, q = np.array([1.0, 0.1]), np.array([0.01, 0.99]), np.array([0.5, 0.5])
    p, b = 10 / 11, 0.01**2 * 11 / 10
    expected = (b + p) * (9 / 11) / (b + p * (9 / 11) ** 2)
    assert summand_curvature_ratio(pi, alpha, q) == pytest.approx(expected, rel=1e-12)
    assert convexity_ratio(pi, alpha, q) <= 2
    equal = np.array([0.5, 0.5])
    assert summand_curvature_ratio(equal, alpha, q) == 0.0


def test_unbiased_weights_are_always_convex() -> None:
    pi, alpha = np.array([0.9, 0.2, 0.01]), np.array([0.1, 0.2, 0.7])
    assert convexity_ratio(pi, alpha, alpha / pi) == pytest.approx(0, abs=1e-12)


def test_a_segment_on_which_the_claim_fails() -> None:
    """From three clients on; the middle is worse than both ends together."""
    setting = theorems.get("ca-fed/appendix-e").regimes["rare majority"].setting
    s = ProjectedAveraging(setting)
    c = s.problem.alpha**2 / s.pi

    def chi2(q: FloatArray) -> float:
        return float((s.pi @ q) * (c / q).sum() - 1)

    side = np.array([0.2, 0.1, -0.3])
    assert chi2(s.q) > 1.01 * (chi2(s.q - side) + chi2(s.q + side)) / 2


def test_order_of_optimal_weights_turns_with_theta() -> None:
    pi = np.array([0.9, 0.5, 0.3])
    calm = optimal(pi, a=pi, b=0.5, objective="convergence")
    noisy = optimal(pi, a=pi, b=0.0, objective="convergence")
    assert calm.total_multiplier > 0
    assert (np.diff(calm.q) <= 0).all()
    assert noisy.total_multiplier < 0
    assert (np.diff(noisy.q) > 0).all()


def test_where_all_are_as_often_there_no_order_is_turned_round() -> None:
    """Without clients that come less often than others the largest of their ratios is zero."""
    claim = theorems.get("ca-fed/appendix-d")
    setting = claim.regimes["independent"].setting
    n_clients = setting.problem.n_clients
    alike = replace(setting, participation=MarkovOnOff(np.full(n_clients, 0.5), 0.0))
    assert check(claim, alike).truth == 0.0


def test_weights_of_27_are_not_affine_in_availability() -> None:
    """q_k = (lambda - theta/pi_k)/(sigma^2 sum eta^2): affine in 1/pi_k."""
    pi = np.array([0.9, 0.7, 0.5])
    found = optimal(pi, a=pi, b=0.35, objective="convergence")
    assert (found.q > 0).all()
    slopes = np.diff(found.q) / np.diff(pi)
    inverse = np.diff(found.q) / np.diff(1 / pi)
    assert inverse[0] == pytest.approx(inverse[1], rel=1e-9)
    assert abs(slopes[0] / slopes[1] - 1) > 0.1


@pytest.mark.parametrize(
    ("identifier", "regime", "reading"),
    [
        ("ca-fed/appendix-d", "noisy gradients", "derived"),
        ("ca-fed/appendix-e", "rare majority", "two clients"),
    ],
)
def test_printed_is_refuted_where_another_reading_does_not_apply(
    identifier: str, regime: str, reading: str
) -> None:
    setting = theorems.get(identifier).regimes[regime].setting
    assert check(theorems.get(identifier), setting).outcome is Outcome.REFUTED
    assert check(theorems.get(identifier, reading), setting).outcome is Outcome.INAPPLICABLE


def test_unequal_noise_turns_the_order_of_weights_round() -> None:
    """pi = (1/5, 4/5), sigma^2 = (1/10, 10), upsilon = 1/2: theta* > 0, the rarer has 5.39 times.

    For q = (x, 1 - x) the quotient of (12) is least where its derivative vanishes, by halving.
    """
    pi, squares = np.array([0.2, 0.8]), np.array([0.1, 10.0])
    q = fastest(pi, squares * pi, 0.5, 1.0)

    def slope(x: float) -> float:
        noise = (squares * pi * np.array([x, 1 - x]) ** 2).sum() / 2 + 0.5
        change = (squares * pi * np.array([x, x - 1])).sum()
        return float(change * (pi @ [x, 1 - x]) - noise * (pi[0] - pi[1]))

    low, high = 0.0, 1.0
    for _ in range(60):
        low, high = (
            ((low + high) / 2, high) if slope((low + high) / 2) < 0 else (low, (low + high) / 2)
        )
    assert q[0] == pytest.approx(low)
    assert 0.5 - (squares * pi * q**2).sum() / 2 == pytest.approx(0.39, abs=0.01)
    assert q[0] / q[1] == pytest.approx(5.39, abs=0.01)
    needed = [h.name for h in theorems.get("ca-fed/appendix-d", "derived").hypotheses]
    assert "equal noise of all clients" in needed


def test_the_fastest_weights_in_exact_numbers_are_stationary() -> None:
    """Two clients, b = 1/2: the derivative of ``(1/2 q'Aq + b)/(pi'q)`` on ``q_1 + q_2 = 2``.

    ``a = (1, 2)``, ``pi = (9/10, 3/10)``: with x for q_1 the numerator of the derivative is
    ``(3x - 4)(3/5 + 3x/5) - 3/5 (x^2/2 + (2 - x)^2 + 1/2)``, whose root is found with 40 digits.
    """
    pi, a = (np.array([WIDENING.parameter(x) for x in each]) for each in ((0.9, 0.3), (1.0, 2.0)))
    with Balls(128).in_use(), mpmath.workdps(40):
        q = fastest(pi, a, WIDENING.parameter(0.5), WIDENING.parameter(2.0))
        root = mpmath.findroot(
            lambda x: (3 * x - 4) * (1 + x) - (x**2 / 2 + (2 - x) ** 2 + mpmath.mpf(1) / 2), 1.9
        )
        for found, truth in zip(q, (root, 2 - root), strict=True):
            assert found.value.overlaps(arb(mpmath.nstr(truth, 38)) + arb(0, 1e-35))
            assert float(found.value.rad()) < 1e-35


def test_the_convexity_ratio_in_exact_numbers() -> None:
    """``<d, e> + |d| |e|`` by SymPy, for three clients with fractions."""
    pi, alpha, q = (
        [sp.Rational(n, 10) for n in each] for each in ((9, 5, 2), (2, 3, 5), (4, 4, 2))
    )
    p = [a * b / sum(x * y for x, y in zip(pi, q, strict=True)) for a, b in zip(pi, q, strict=True)]
    nu = [a**2 / b for a, b in zip(alpha, p, strict=True)]
    nu = [each / sum(nu) for each in nu]
    d = [a - b for a, b in zip(p, nu, strict=True)]
    e = [b - c for b, c in zip(nu, q, strict=True)]

    def product(left: list[sp.Expr], right: list[sp.Expr]) -> sp.Expr:
        return sum(x * y / n for x, y, n in zip(left, right, nu, strict=True))

    expected = product(d, e) + sp.sqrt(product(d, d) * product(e, e))
    exact = [np.array([WIDENING.parameter(float(x)) for x in each]) for each in (pi, alpha, q)]
    with Balls(128).in_use():
        found = convexity_ratio(*exact).value
        assert found.overlaps(arb(str(sp.N(expected, 45))) + arb(0, 1e-40))
        assert float(found.rad()) < 1e-33


def test_every_summand_is_convex_in_its_share() -> None:
    """The derived reading's quantity, from second differences of (p - alpha)^2/p."""
    derived = theorems.get("ca-fed/appendix-e-summands", "derived")
    for regime in derived.regimes.values():
        s = ProjectedAveraging(regime.setting)
        p, step = s.pi * s.q / (s.pi @ s.q), 1e-4

        def summands(share: FloatArray, alpha: FloatArray = s.problem.alpha) -> FloatArray:
            return (share - alpha) ** 2 / share

        moves = (summands(p * (1 + step)), summands(p), summands(p * (1 - step)))
        bends = (moves[0] - 2 * moves[1] + moves[2]) / (p * step**2)
        verdict = check(derived, regime.setting)
        assert verdict.truth == pytest.approx(np.max(1 - bends), abs=1e-4)
        assert verdict.outcome is Outcome.HOLDS


def test_summands_are_undefined_where_a_client_has_no_weight_or_never_comes() -> None:
    regime = theorems.get("ca-fed/appendix-e").regimes["two clients"].setting
    averaged = regime.algorithm
    fedavg = averaged.algorithm.algorithm.algorithm
    unweighed = replace(fedavg, aggregation_weights=(0.0, 1.0))
    scheduled = replace(averaged.algorithm.algorithm, algorithm=unweighed)
    projected = replace(averaged.algorithm, algorithm=scheduled)
    no_weight = replace(regime, algorithm=replace(averaged, algorithm=projected))
    never_there = replace(regime, participation=MarkovOnOff((0.9, 0.0), 0.0))
    readings = [s for s in theorems.registered() if s.id.startswith("ca-fed/appendix-e")]
    assert len(readings) == 5
    for statement in readings:
        assert not np.isnan(statement.quantity.value(regime)[0])
        for setting in (no_weight, never_there):
            assert np.isnan(statement.quantity.value(setting)[0])
