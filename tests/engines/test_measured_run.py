"""Quantities and constants measured on visited models, against enumeration."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.engines.measured_run import (
    BatchSampling,
    MeasuredProblem,
    Server,
    dissimilarity_bound,
    measure_run,
)
from fltheory.problems import MultinomialProblem

SIZES = (3, 5, 2)
INCLUSION = np.array([0.5, 1.0, 0.0])


def problem(seed=0, sizes=SIZES, scale=1.0, ridge=0.2):
    rng = np.random.default_rng(seed)
    return MultinomialProblem(
        [scale * rng.normal(size=(size, 4)) for size in sizes],
        [rng.integers(3, size=size) for size in sizes],
        n_classes=3,
        ridge=ridge,
        target_weights=rng.dirichlet(np.full(len(sizes), 5.0)),
    )


def models(it, rounds=3, replicas=4, seed=1, scale=1.0):
    rng = np.random.default_rng(seed)
    return list(scale * rng.normal(size=(rounds, replicas, it.dim)))


def measured(it, visited, server=None, sampling=None):
    return measure_run(
        it, visited, inclusion=INCLUSION, sampling=sampling or BatchSampling(2, True), server=server
    )


def test_quantities_of_every_round():
    it = problem()
    visited = models(it)
    found = measured(it, visited).trajectory
    assert (found.rounds, found.replicas) == (2, 4)
    best = it.client_losses(it.x_star)
    for r, x in enumerate(visited):
        excess = it.client_losses(x) - best
        expected = {
            "squared_distance": np.square(x - it.x_star).sum(axis=1),
            "squared_gradient": np.square(it.gradient(x)).sum(axis=1),
            "excess_loss": excess @ it.alpha,
            "participant_excess_loss": (0.5 * excess[:, 0] + excess[:, 1]) / 1.5,
        }
        for name, values in expected.items():
            assert found[name][r] == pytest.approx(values.mean(), rel=1e-9)
            error = np.sqrt(np.square(values - values.mean()).sum() / 3 / 4)
            assert found.standard_error[name][r] == pytest.approx(error, rel=1e-9)


def test_constants_are_the_largest_seen():
    it = problem()
    visited = models(it)
    found = measured(it, visited)
    points = np.concatenate(visited)
    sums = it.client_sums(points)
    assert found.sigma.low == pytest.approx(np.sqrt(sums.variances.max() / 2))
    apart = np.linalg.norm(sums.gradients - it.gradient(points)[:, None], axis=2)
    assert found.dissimilarity.low == pytest.approx(apart.max())
    assert found.radius == pytest.approx(np.linalg.norm(points - it.x_star, axis=1).max())
    assert (found.server_sigma.low, found.server_sigma.high, found.server_bias) == (0, 0, 0)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_variance_of_a_batch_by_enumeration(batch, replacement):
    values = np.array([0.0, 1.0, 5.0, 6.0])
    draws = product(values, repeat=batch) if replacement else combinations(values, batch)
    means = np.array([np.mean(draw) for draw in draws])
    found = BatchSampling(batch, replacement).variance(np.array([values.var()]), np.array([4]))
    assert found[0] == pytest.approx(np.square(means - values.mean()).mean())


def test_the_smallest_batch_is_what_a_pass_leaves():
    """Five samples in batches of 2 leave one alone; of 5 or more, nothing is random."""
    one, sizes = np.array([3.0]), np.array([5])
    assert BatchSampling(2, False).largest_variance(one, sizes)[0] == pytest.approx(3.0)
    assert BatchSampling(2, False).variance(one, sizes)[0] == pytest.approx(3.0 / 2 * 3 / 4)
    assert BatchSampling(5, False).largest_variance(one, sizes)[0] == 0
    assert BatchSampling(9, False).variance(one, sizes)[0] == 0
    assert BatchSampling(2, True).largest_variance(one, sizes)[0] == pytest.approx(1.5)


@given(
    st.integers(0, 500), st.floats(0.05, 5.0), st.floats(0.0, 20.0), st.sampled_from([1e-3, 1.0])
)
def test_nothing_on_the_ball_exceeds_the_bounds(seed, scale, radius, ridge):
    it = problem(seed, scale=scale, ridge=ridge)
    rng = np.random.default_rng(seed)
    away = rng.normal(size=(20, it.dim))
    away *= radius / np.linalg.norm(away, axis=1, keepdims=True)
    points = it.x_star + away
    sums, at_optimum = it.client_sums(points), it.client_sums(it.x_star[None])
    apart = np.linalg.norm(sums.gradients - it.gradient(points)[:, None], axis=2)
    bound = dissimilarity_bound(it, at_optimum, radius)
    assert apart.max() <= bound * (1 + 1e-9)
    found = measured(it, [points])
    longest = [np.square(it.samples[it.rows_of(i)]).sum(axis=1).mean() + 1 for i in range(3)]
    assert found.sigma.low <= found.sigma.high <= math.sqrt(max(longest)) * (1 + 1e-9)
    assert found.dissimilarity.low <= found.dissimilarity.high <= bound * (1 + 1e-9)


def test_the_noise_bound_is_attained_up_to_the_mean():
    """Samples surely mistaken for the other class: ||r|| = sqrt(2), and ||(a, 1)||^2 = 10."""
    features = [[[3.0, 0.0], [0.0, 3.0]]]
    it = MultinomialProblem(features, [[0, 1]], n_classes=2, ridge=1e-3)
    mistaken = np.array([-40.0, 40.0, 40.0, -40.0, 0.0, 0.0])
    gradients = [[-3.0, 0.0, 3.0, 0.0, -1.0, 1.0], [0.0, 3.0, 0.0, -3.0, 1.0, -1.0]]
    noise = np.square(np.array(gradients) - np.mean(gradients, axis=0)).sum(axis=1).mean()
    found = measure_run(
        it, [np.stack([mistaken, mistaken])], inclusion=[1.0], sampling=BatchSampling(1, True)
    )
    assert found.sigma.low**2 == pytest.approx(noise, rel=1e-9)
    assert found.sigma.high**2 == pytest.approx(20.0, rel=1e-12)
    assert 20.0 - noise == pytest.approx(np.square(np.mean(gradients, axis=0)).sum())


def test_the_dissimilarity_bound_is_nearly_attained_on_a_small_ball():
    """Client 0, of little weight, has curvature 5 at x* = 0 along (-a, -1, a, 1), F hardly any."""
    it = MultinomialProblem(
        [[[3.0, 0.0], [3.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]],
        [[0, 1], [0, 1]],
        n_classes=2,
        ridge=0.1,
        target_weights=[0.02, 0.98],
    )
    radius, direction = 1e-3, np.array([-3.0, 0.0, 3.0, 0.0, -1.0, 1.0])
    x = radius * direction / np.sqrt(20)
    apart = it.client_sums(x[None]).gradients[0, 0] - it.gradient(x[None])[0]
    bound = dissimilarity_bound(it, it.client_sums(it.x_star[None]), radius)
    assert bound == pytest.approx(5 * radius, rel=1e-6)
    assert 0.95 * bound <= np.linalg.norm(apart) <= bound


def test_server_noise_and_bias():
    it = problem()
    own = problem(seed=7, sizes=(4,))
    visited = models(it)
    points = np.concatenate(visited)
    sums = own.client_sums(points)
    bias = np.linalg.norm(sums.gradients[:, 0] - it.gradient(points), axis=1)
    found = measured(it, visited, Server(own, BatchSampling(3, True), is_unbiased=False))
    assert found.server_bias == pytest.approx(bias.max())
    expected = np.sqrt((sums.variances[:, 0] / 3 + bias**2).max())
    assert found.server_sigma.low == pytest.approx(expected)
    assert found.server_sigma.high > expected


def test_a_server_with_everybodys_samples_is_unbiased():
    """Its own noise, by a pass over its own samples."""
    its = problem()
    own = MultinomialProblem([its.samples], [its.labels], n_classes=3, ridge=its.ridge)
    parts = np.split(its.samples, its.starts[1:-1]), np.split(its.labels, its.starts[1:-1])
    it = MultinomialProblem(
        *parts, n_classes=3, ridge=its.ridge, target_weights=its.sizes / its.sizes.sum()
    )
    visited = models(it)
    found = measured(it, visited, Server(own, BatchSampling(3, True), is_unbiased=True))
    assert found.server_bias == 0
    expected = np.sqrt(own.client_sums(np.concatenate(visited)).variances.max() / 3)
    assert found.server_sigma.low == pytest.approx(expected)
    biased = measured(it, visited, Server(own, BatchSampling(3, True), is_unbiased=False))
    assert biased.server_bias < 1e-12
    assert biased.server_sigma.low == pytest.approx(expected)
    assert expected <= found.server_sigma.high < biased.server_sigma.high


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": []}, "models must hold at least one round, got none"),
        ({"models": [np.zeros((1, 15))]}, "with at least 2 replicas, got"),
        ({"models": [np.zeros((2, 3))]}, r"models must have shape \(replicas, 15\)"),
        ({"models": [np.full((2, 15), np.nan)]}, "models must be finite, got nan"),
        ({"inclusion": [1.0]}, "inclusion must be 3 probabilities, not all 0"),
        ({"inclusion": np.zeros(3)}, "inclusion must be 3 probabilities, not all 0"),
    ],
)
def test_bad_input(change, message):
    arguments = {"models": models(problem()), "inclusion": INCLUSION} | change
    with pytest.raises(ValueError, match=message):
        measure_run(problem(), sampling=BatchSampling(2, True), **arguments)


def test_measured_problem_is_its_data_with_other_constants():
    it = problem()
    found = MeasuredProblem(it, 50.0, 1.0, 2.0, 3.0)
    assert (found.L, found.sigma, found.server_sigma, found.sigma_G) == (50.0, 1.0, 2.0, 3.0)
    assert (found.mu, found.dim, found.n_clients, found.F_star) == (0.2, 15, 3, it.F_star)
    (x,) = models(it, rounds=1)
    np.testing.assert_array_equal(found.loss(x), it.loss(x))
    np.testing.assert_array_equal(found.excess_loss(x), it.loss(x) - it.F_star)
    np.testing.assert_array_equal(found.gradient(x), it.gradient(x))
    np.testing.assert_array_equal(found.client_losses(x), it.client_losses(x))
    np.testing.assert_array_equal(found.alpha, it.alpha)
    np.testing.assert_array_equal(found.x_star, it.x_star)
    clients = np.array([2, 0, 1, 1])
    each = it.client_sums(x).gradients
    for row, client in enumerate(clients):
        np.testing.assert_array_equal(found.client_gradients(x, clients)[row], each[row, client])
