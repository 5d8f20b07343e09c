"""Multinomial logistic regression against its definition, and its constants against Hessians."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from fltheory.problems import LogisticProblem, MultinomialProblem
from fltheory.problems.regression import multinomial_losses as module
from tests.problems.regression.multinomial_cases import hessian, of_client, points, problem


def sample_losses(it, x):
    """f_ij(x), without the penalty, one sample after another, from the definition."""
    weights, intercepts = x[: it.n_classes * 4].reshape(it.n_classes, 4), x[it.n_classes * 4 :]
    return np.array(
        [
            logsumexp(weights @ a + intercepts) - (weights @ a + intercepts)[y]
            for a, y in zip(it.samples, it.labels, strict=True)
        ]
    )


def numeric_gradient(function, x, step=1e-6):
    return np.array(
        [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(x.size)]
    )


def test_losses_are_the_definition():
    it = problem()
    x = points(it)
    for k, point in enumerate(x):
        each, penalty = sample_losses(it, point), 0.1 * point @ point
        expected = [each[of_client(it, client)].mean() + penalty for client in range(3)]
        np.testing.assert_allclose(it.client_losses(x)[k], expected, rtol=1e-13)
        np.testing.assert_allclose(it.client_losses(point), expected, rtol=1e-13)
        np.testing.assert_allclose(it.client_sums(x).losses[k], expected, rtol=1e-13)
        assert it.loss(point) == pytest.approx(it.alpha @ expected, rel=1e-13)


def test_gradients_are_slopes():
    it = problem()
    x = points(it)
    gradients = it.client_sums(x).gradients
    for k, client in np.ndindex(2, 3):
        expected = numeric_gradient(lambda p, c=client: it.client_losses(p)[c], x[k])
        np.testing.assert_allclose(gradients[k, client], expected, atol=1e-8)
    np.testing.assert_allclose(it.gradient(x), np.einsum("i,kia->ka", it.alpha, gradients))


def test_variances_are_those_of_single_samples():
    """Each sample's gradient as that of a client with this sample alone."""
    it = problem()
    x = points(it)
    alone = MultinomialProblem(
        [a[None] for a in it.samples], [[y] for y in it.labels], n_classes=3, ridge=it.ridge
    )
    singles = alone.client_sums(x).gradients
    for client in range(3):
        expected = np.square(singles[:, of_client(it, client)]).sum(axis=2).mean(axis=1)
        mean = singles[:, of_client(it, client)].mean(axis=1)
        expected -= np.square(mean).sum(axis=1)
        np.testing.assert_allclose(it.client_sums(x).variances[:, client], expected, rtol=1e-10)
    assert alone.client_sums(x).variances.max() < 1e-12


def test_smoothness_is_approached_by_intercepts_and_by_nothing_exceeded():
    it = problem()
    for client in range(3):
        far = np.zeros(it.dim)
        far[-3:] = 40.0, 40.0, -40.0
        assert np.linalg.norm(hessian(it, client, far), 2) == pytest.approx(
            it.smoothness[client], rel=1e-12
        )
        for x in points(it, k=20):
            assert np.linalg.norm(hessian(it, client, x), 2) < it.smoothness[client]
    assert it.smoothness.max() == it.L


@given(st.integers(2, 5), st.floats(0.0, 30.0), st.integers(0, 1000))
def test_the_ridge_is_the_smallest_curvature_everywhere(n_classes, scale, seed):
    it = problem(n_classes)
    (x,) = points(it, k=1, seed=seed, scale=scale)
    for client in range(3):
        smallest = np.linalg.eigvalsh(hessian(it, client, x))[0]
        assert smallest == pytest.approx(it.mu, abs=1e-12)


def test_two_classes_are_the_binary_problem():
    """At the minimum w_1 = -w_0 = v/2, whose penalty is that of v with half the ridge."""
    it = problem(2, ridge=0.2, sizes=(30, 40))
    features = [module.with_intercept(it.samples[of_client(it, c)]) for c in range(2)]
    labels = [it.labels[of_client(it, c)] for c in range(2)]
    binary = LogisticProblem(features, labels, ridge=0.1, target_weights=it.alpha)
    weights, intercepts = it.split(it.x_star[None])
    found = np.append(weights[0, 1] - weights[0, 0], intercepts[0, 1] - intercepts[0, 0])
    np.testing.assert_allclose(found, binary.x_star, atol=1e-9)
    assert pytest.approx(binary.F_star, rel=1e-12) == it.F_star
    assert it.accuracy(it.x_star) == pytest.approx(float(binary.accuracy(binary.x_star)))


def test_blocks_do_not_matter(monkeypatch):
    it = problem()
    x = points(it)
    whole, losses, share = it.client_sums(x), it.client_losses(x), it.accuracy(x)
    gram = it.gram(1)
    monkeypatch.setattr(module, "_ROWS", 2)
    small = it.client_sums(x)
    for name in ("losses", "gradients", "variances"):
        np.testing.assert_allclose(getattr(small, name), getattr(whole, name), rtol=1e-12)
    np.testing.assert_allclose(it.client_losses(x), losses, rtol=1e-13)
    np.testing.assert_array_equal(it.accuracy(x), share)
    np.testing.assert_allclose(it.gram(1), gram, rtol=1e-13)


def test_accuracy_counts_the_largest_logits():
    it = problem()
    for x, found in zip(points(it), it.accuracy(points(it)), strict=True):
        weights, intercepts = it.split(x[None])
        chosen = (it.samples @ weights[0].T + intercepts[0]).argmax(axis=1) == it.labels
        shares = [chosen[of_client(it, client)].mean() for client in range(3)]
        assert found == pytest.approx(it.alpha @ shares)


def test_single_precision_is_kept_and_computed_with_in_double():
    it = problem(dtype=np.float32)
    assert it.samples.dtype == np.float32
    double = MultinomialProblem(
        [it.samples[of_client(it, c)].astype(float) for c in range(3)],
        [it.labels[of_client(it, c)] for c in range(3)],
        n_classes=3,
        ridge=it.ridge,
        target_weights=it.alpha,
    )
    x = points(it)
    np.testing.assert_array_equal(it.client_sums(x).gradients, double.client_sums(x).gradients)


@pytest.mark.parametrize("changes", [{}, {"ridge": 0.3}, {"seed": 1}, {"sizes": (3, 2, 6)}])
def test_same_problems(changes):
    assert problem().is_same_as(problem(**changes)) == (not changes)


GOOD = {"features": [[[1.0, 2.0]]], "labels": [[1]], "n_classes": 2, "ridge": 0.1}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"features": [], "labels": []}, "data of at least one client, got none"),
        ({"features": [[1.0, 2.0]]}, r"must be \(n_i, d\) .*got \(2,\) for client 0"),
        ({"features": [[[np.nan, 2.0]]]}, "must be finite numbers, got others for client 0"),
        ({"labels": [[1, 0]]}, r"one per sample, of shapes \[\(1,\)\], got \[\(2,\)\]"),
        ({"labels": [[2]]}, r"labels must be whole numbers 0 \.\. 1, got others for client 0"),
        ({"labels": [[-1]]}, r"labels must be whole numbers 0 \.\. 1"),
        ({"labels": [[0.5]]}, "labels must be whole numbers"),
        ({"n_classes": 1}, "n_classes must be a whole number of at least 2, got 1"),
        ({"ridge": 0.0}, "ridge must be a finite number above 0, got 0.0"),
    ],
)
def test_bad_input(wrong, message):
    arguments = GOOD | wrong
    with pytest.raises(ValueError, match=message):
        MultinomialProblem(arguments.pop("features"), arguments.pop("labels"), **arguments)
