"""The certified minimiser of multinomial logistic regression."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import root

from fltheory.problems.regression import multinomial_problem
from fltheory.problems.regression.multinomial_problem import certify, minimise
from tests.problems.regression.multinomial_cases import hessian, points, problem


@settings(max_examples=20)
@given(st.integers(2, 5), st.sampled_from([1e-3, 0.1, 10.0]), st.integers(0, 1000))
def test_is_where_another_method_ends(n_classes, ridge, seed):
    it = problem(n_classes, ridge, seed)
    found = minimise(it)
    other = root(
        lambda x: it.gradient(x[None])[0],
        np.zeros(it.dim),
        jac=lambda x: sum(a * hessian(it, i, x) for i, a in enumerate(it.alpha)),
        tol=1e-14,
    )
    assert found.distance <= 1e-8
    np.testing.assert_allclose(found.x, other.x, rtol=0, atol=2e-8)
    assert it.loss(found.x) == pytest.approx(it.loss(other.x), rel=1e-13)


@given(st.floats(-9, 1), st.integers(0, 1000))
def test_the_certificate_is_never_too_small(exponent, seed):
    """Moved away from the minimiser by a known distance, at least that distance is certified."""
    it = problem(ridge=0.3)
    (away,) = points(it, k=1, seed=seed)
    away *= 10**exponent / np.linalg.norm(away)
    moved = certify(it, it.x_star + away)
    assert moved.distance >= 10**exponent - it.optimum.distance
    assert moved.excess_loss >= float(it.loss(it.x_star + away)) - it.F_star - 1e-15
    assert moved.distance <= it.L / it.mu * (10**exponent + it.optimum.distance) * (1 + 1e-9)


def exact_gradient_norm(it, x):
    """The same gradient in fifty digits."""
    with mpmath.workdps(50):
        total = [mpmath.mpf(it.ridge) * value for value in x]
        for row, label in enumerate(it.labels):
            sample = [mpmath.mpf(float(a)) for a in it.samples[row]]
            client = int(np.searchsorted(it.starts, row, side="right")) - 1
            share = mpmath.mpf(it.alpha[client]) / int(it.sizes[client])
            logits = [
                mpmath.fdot(x[4 * c : 4 * c + 4].tolist(), sample) + mpmath.mpf(x[12 + c])
                for c in range(3)
            ]
            scale = sum(mpmath.exp(z) for z in logits)
            for c in range(3):
                pull = share * (mpmath.exp(logits[c]) / scale - (c == label))
                for place, a in enumerate(sample):
                    total[4 * c + place] += pull * a
                total[12 + c] += pull
        return mpmath.sqrt(sum(value**2 for value in total))


def test_the_gradient_is_bounded_to_a_dozen_digits():
    it = problem(ridge=0.3)
    for x in points(it, scale=5.0):
        norm, found = exact_gradient_norm(it, x), certify(it, x).gradient_norm
        assert norm <= found <= norm * (1 + mpmath.mpf(10) ** -12)


def test_rounding_is_bounded_where_the_gradient_vanishes(monkeypatch):
    """Computed in float64 alone it is mostly rounding there, and mostly comes out too small."""
    monkeypatch.setattr(multinomial_problem, "_EXTENDED", np.float64)
    it = problem(ridge=0.3, sizes=(40, 60, 30))
    nearest = multinomial_problem._newton(it, goal=1e-17)
    for x in nearest * (1 + 1e-16 * points(it, k=4)):
        norm = exact_gradient_norm(it, x)
        assert norm < 1e-15
        assert norm <= certify(it, x).gradient_norm < 1e-12


def test_products_with_the_hessian():
    it = problem()
    (x, v) = points(it)
    expected = sum(a * hessian(it, i, x) for i, a in enumerate(it.alpha)) @ v
    np.testing.assert_allclose(multinomial_problem.Hessian(it, x)(v), expected, rtol=1e-12)


def test_says_so_where_the_ridge_is_too_small():
    with pytest.raises(ArithmeticError, match="the optimum must be known to within 1e-08"):
        minimise(problem(ridge=1e-14))
