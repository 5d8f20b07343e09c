"""The claims about weights: the criterion of convexity, and the order of the optimal weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fltheory import theorems
from fltheory.theorems.ca_fed_setting import CaFedSetting
from fltheory.theorems.ca_fed_weights import convexity_ratio
from fltheory.validation import FloatArray
from fltheory.verify import Outcome, check
from fltheory.weights import optimal_for_convergence


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


def test_unbiased_weights_are_always_convex() -> None:
    pi, alpha = np.array([0.9, 0.2, 0.01]), np.array([0.1, 0.2, 0.7])
    assert convexity_ratio(pi, alpha, alpha / pi) == pytest.approx(0, abs=1e-12)


def test_a_segment_on_which_the_claim_fails() -> None:
    """From three clients on; the middle is worse than both ends together."""
    setting = theorems.get("ca-fed/appendix-e").regimes["rare majority"].setting
    s = CaFedSetting(setting)
    c = s.problem.alpha**2 / s.pi

    def chi2(q: FloatArray) -> float:
        return float((s.pi @ q) * (c / q).sum() - 1)

    side = np.array([0.2, 0.1, -0.3])
    assert chi2(s.q) > 1.01 * (chi2(s.q - side) + chi2(s.q + side)) / 2


def test_order_of_optimal_weights_turns_with_theta() -> None:
    pi = np.array([0.9, 0.5, 0.3])
    calm = optimal_for_convergence(pi, a=pi, b=0.5)
    noisy = optimal_for_convergence(pi, a=pi, b=0.0)
    assert calm.total_multiplier > 0
    assert (np.diff(calm.q) <= 0).all()
    assert noisy.total_multiplier < 0
    assert (np.diff(noisy.q) > 0).all()


def test_weights_of_27_are_not_affine_in_availability() -> None:
    """q_k = (lambda - theta/pi_k)/(sigma^2 sum eta^2): affine in 1/pi_k."""
    pi = np.array([0.9, 0.7, 0.5])
    found = optimal_for_convergence(pi, a=pi, b=0.35)
    assert (found.q > 0).all()
    slopes = np.diff(found.q) / np.diff(pi)
    inverse = np.diff(found.q) / np.diff(1 / pi)
    assert inverse[0] == pytest.approx(inverse[1], rel=1e-9)
    assert abs(slopes[0] / slopes[1] - 1) > 0.1


@pytest.mark.parametrize(
    ("identifier", "regime"),
    [("ca-fed/appendix-d", "noisy gradients"), ("ca-fed/appendix-e", "rare majority")],
)
def test_printed_is_refuted_where_derived_does_not_apply(identifier: str, regime: str) -> None:
    setting = theorems.get(identifier).regimes[regime].setting
    assert check(theorems.get(identifier), setting).outcome is Outcome.REFUTED
    derived = check(theorems.get(identifier, "derived"), setting)
    assert derived.outcome is Outcome.INAPPLICABLE
