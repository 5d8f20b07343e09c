"""Curvature on a ball: above every Hessian there, and not above by much on a small one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.problems import MultinomialProblem
from fltheory.problems.regression.multinomial_problem import curvature_at, curvature_bound
from tests.problems.regression.multinomial_cases import hessian, points, problem


def largest(it, x):
    return max(np.linalg.norm(hessian(it, client, x), 2) for client in range(it.n_clients))


@given(st.integers(0, 200), st.floats(0.0, 3.0), st.floats(0.0, 2.0), st.integers(2, 4))
def test_no_hessian_on_the_ball_exceeds_the_bound(seed, scale, radius, n_classes):
    it = problem(n_classes, seed=seed)
    (centre,) = points(it, k=1, seed=seed, scale=scale)
    bound = curvature_bound(it, centre, radius)
    assert bound <= it.L
    for away in points(it, k=5, seed=seed + 1):
        x = centre + radius * away / np.linalg.norm(away)
        assert largest(it, x) <= bound * (1 + 1e-12)
        assert curvature_at(it, x) == pytest.approx(largest(it, x), rel=1e-6)


def test_growth_is_nearly_that_of_the_exponent():
    """Two classes far from even: p (1 - p) grows as exp(-|z|), along the steepest direction."""
    it = MultinomialProblem([[[3.0]]], [[0]], n_classes=2, ridge=1e-14)
    steepest = np.array([-3.0, 3.0, -1.0, 1.0]) / np.sqrt(20)
    centre = -3.0 * steepest
    for radius in (0.01, 0.1):
        exact = curvature_at(it, centre + radius * steepest)
        growth = exact / curvature_at(it, centre)
        assert growth == pytest.approx(np.exp(np.sqrt(20) * radius), rel=1e-5)
        assert exact <= curvature_bound(it, centre, radius) <= exact * (1 + 1e-5)


def test_a_large_ball_is_everywhere():
    it = problem()
    assert curvature_bound(it, np.zeros(it.dim), 1e6) == pytest.approx(it.L, rel=1e-12)


def test_a_client_alone():
    it = problem()
    (x,) = points(it, k=1)
    for client in range(3):
        alone = it.of_client(client)
        np.testing.assert_allclose(alone.client_losses(x)[0], it.client_losses(x)[client])
        assert pytest.approx(it.smoothness[client]) == alone.L
