"""The variant of Theorem 3: two clients by brute force, its certificate, guideline C."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory import weights
from fltheory.validation import FloatArray


def values(
    q: FloatArray, pi: FloatArray, alpha: FloatArray, a: FloatArray, b: float, bias: float
) -> FloatArray:
    """Return the objective at each row of q (m, N)."""
    shown = q @ pi
    distance = 0.5 * np.abs(alpha - pi * q / shown[:, None]).sum(axis=1)
    return (0.5 * q**2 @ a + b) / shown + bias * distance**2


@pytest.mark.parametrize("bias", [0.0, 0.3, 5.0, 100.0])
@pytest.mark.parametrize("b", [0.0, 2.0])
def test_two_clients_against_brute_force(bias: float, b: float) -> None:
    """A grid of 400 001 points of [0, 1]: within 1e-11 of the minimum, as its slope is zero."""
    pi, alpha, a = np.array([0.9, 0.3]), np.array([0.3, 0.7]), np.array([1.0, 2.0])
    first = np.linspace(0, 1, 400_001)
    grid = values(np.stack([first, 1 - first], axis=1), pi, alpha, a, b, bias)
    found = weights.optimal(pi, alpha, a=a, b=b, bias=bias, objective="total variation")
    assert found.error == pytest.approx(grid.min(), rel=1e-8)
    assert found.q[0] == pytest.approx(first[grid.argmin()], abs=1e-3)
    assert found.kkt_residual <= 1e-4


def test_the_gap_bounds_the_excess() -> None:
    """At any point, the bound is at least the true relative excess over the minimum."""
    from fltheory.weights.trade_off import TradeOff

    rng = np.random.default_rng(4)
    pi, alpha, a = rng.uniform(0.1, 1, 6), rng.dirichlet(np.ones(6)), rng.uniform(1, 3, 6)
    problem = TradeOff(pi, alpha, a=a, b=1.0, bias=4.0)
    least = weights.optimal(pi, alpha, a=a, b=1.0, bias=4.0, objective="total variation").error
    for _ in range(200):
        p = rng.dirichlet(np.full(6, 0.7))
        at_p = float(values(problem.weights(p)[None], pi, alpha, a, 1.0, 4.0)[0])
        assert problem.total_variation_gap(p) >= (1 - 1e-12) * (1 - least / at_p) - 1e-9


def test_a_heavy_bias_gives_the_unbiased_weights() -> None:
    """Guideline C: q tends to alpha / pi."""
    pi, alpha = np.array([0.9, 0.5, 0.2]), np.array([0.2, 0.3, 0.5])
    unbiased = alpha / pi / (alpha / pi).sum()
    found = weights.optimal(pi, alpha, a=1.0, b=1.0, bias=1e4, objective="total variation")
    np.testing.assert_allclose(found.q, unbiased, rtol=1e-2)


def test_rare_clients_are_left_out() -> None:
    """Unlike chi2, the total variation stays finite where a client has no weight."""
    pi, alpha = np.array([0.9, 0.9, 0.01]), np.full(3, 1 / 3)
    found = weights.optimal(pi, alpha, a=1.0, b=5.0, bias=1.0, objective="total variation")
    assert found.q[2] == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(found.q[:2], 0.5, atol=1e-6)


def test_noise_is_needed() -> None:
    with pytest.raises(ValueError, match=r"a must be positive .* got 0 for client 0"):
        weights.optimal([0.5, 0.5], [0.5, 0.5], a=0.0, b=1.0, bias=1.0, objective="total variation")
