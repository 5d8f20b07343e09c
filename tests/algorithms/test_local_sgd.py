"""Local SGD step by step, against FedAvg and against a plain loop."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from fltheory.algorithms import Constant, Harmonic, LocalSgd, WeightedFedAvg
from fltheory.algorithms.local_sgd import _mixing
from fltheory.engines import Setting, exact, monte_carlo, paths
from fltheory.engines.trajectory import Trajectory
from fltheory.participation import Trace, UniformSubset
from fltheory.problems import QuadraticProblem

P = (0.5, 0.25, 0.25)
EVERYBODY = UniformSubset(3, 3)


def test_constant_steps_make_fedavg_after_every_average(mixed_hessians: QuadraticProblem) -> None:
    steps = exact(
        Setting(LocalSgd(Constant(0.1), 4, P), mixed_hessians, EVERYBODY, 12, [2.0, -1.0])
    )
    rounds = exact(Setting(WeightedFedAvg(P, 0.1, 4), mixed_hessians, EVERYBODY, 3, [2.0, -1.0]))
    for name in ("squared_distance", "squared_gradient", "excess_loss"):
        np.testing.assert_allclose(steps[name][::4], rounds[name], rtol=1e-12)


def test_decaying_steps_inside_a_round_are_those_of_a_plain_loop(
    mixed_hessians: QuadraticProblem,
) -> None:
    noiseless = QuadraticProblem(
        mixed_hessians.hessians, mixed_hessians.optima, target_weights=mixed_hessians.alpha
    )
    schedule = Harmonic(0.8, offset=1.0)
    run = exact(Setting(LocalSgd(schedule, 3, P), noiseless, EVERYBODY, 7, [2.0, -1.0]))
    models = np.tile([2.0, -1.0], (3, 1))
    expected = []
    for t in range(1, 8):
        pulls = np.einsum("kab,kb->ka", noiseless.hessians, models - noiseless.optima)
        models = models - 0.8 / (t + 1.0) * pulls
        mean = np.array(P) @ models
        expected.append(float(np.sum((mean - noiseless.x_star) ** 2)))
        if t % 3 == 0:
            models = np.tile(mean, (3, 1))
    np.testing.assert_allclose(run.squared_distance[1:], expected, rtol=1e-12)


@pytest.mark.parametrize("engine", [exact, paths])
@pytest.mark.parametrize("weight", [1.0, 1 - 2**-53])
def test_a_single_client_makes_plain_sgd(engine: Callable[..., Trajectory], weight: float) -> None:
    """With curvature 1 and noise of 1/2 the error follows e <- (1 - eta)^2 e + eta^2 / 4."""
    alone = QuadraticProblem([[1.0]], [[3.0]], sigma=0.5)
    method = LocalSgd(Harmonic(0.5), 2, (weight,))
    run = engine(Setting(method, alone, UniformSubset(1, 1), 5, [1.0]))
    expected = [4.0]
    for t in range(1, 6):
        expected.append((1 - 0.5 / t) ** 2 * expected[-1] + (0.5 / t) ** 2 / 4)
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-12)


def test_exact_moments_agree_with_sampled_ones_where_some_are_absent(
    mixed_hessians: QuadraticProblem,
) -> None:
    """Each of 21 comparisons misses with probability 3e-12 or less (seven standard errors)."""
    who = UniformSubset(3, 2)
    arguments = (LocalSgd(Harmonic(0.5), 2, P), mixed_hessians, who, 6, [2.0, -1.0])
    truth = exact(Setting(*arguments))
    sample = monte_carlo(Setting(*arguments), replicas=4000, seed=5)
    assert sample.standard_error is not None
    for name in ("squared_distance", "squared_gradient", "excess_loss"):
        gap = np.abs(sample[name] - truth[name])[1:]
        assert (gap <= 7 * sample.standard_error[name][1:]).all()


def test_the_bound_on_rounding_does_not_grow_with_the_steps(
    mixed_hessians: QuadraticProblem,
) -> None:
    run = exact(Setting(LocalSgd(Constant(0.1), 5, P), mixed_hessians, EVERYBODY, 400, [2.0, -1.0]))
    assert run.rounding_error is not None
    assert run.rounding_error.squared_distance[-1] < 1e-10


@pytest.mark.parametrize("weights", [(1.0,), (0.5, 0.5), P, (1.0 - 2e-9, 1e-9, 1e-9)])
def test_mixing_keeps_the_weighted_mean_and_the_sum_of_squares(weights: tuple[float, ...]) -> None:
    mixing, p = _mixing(weights), np.array(weights)
    kept = np.random.default_rng(1).standard_normal((len(weights), 2))
    models = mixing @ kept
    np.testing.assert_allclose(p @ models, kept[0], atol=1e-8)
    np.testing.assert_allclose(p @ (models**2), (kept**2).sum(axis=0), rtol=1e-7)
    np.testing.assert_allclose(mixing.T @ (p[:, None] * models), kept, atol=1e-7)


@pytest.mark.parametrize(
    "weights", [(1 - 2**-53,), (1.0, 1e-17), (1.0 - 1e-12, 1e-12), (1.0 - 2e-9, 1e-9, 1e-9), P]
)
def test_clients_with_one_model_start_from_it_however_little_they_weigh(
    weights: tuple[float, ...],
) -> None:
    together = np.eye(len(weights))[0]
    np.testing.assert_allclose(_mixing(weights) @ together, 1, rtol=1e-15)


@pytest.mark.parametrize("weights", [(0.5, 0.6), (1.5, -0.5), (1.0, 0.0)])
def test_weights_are_positive_and_sum_to_one(weights: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"aggregation_weights must be positive and sum to one"):
        LocalSgd(Constant(0.1), 1, weights)


def test_other_bad_arguments_are_named(two_points: QuadraticProblem) -> None:
    with pytest.raises(ValueError, match=r"local_steps must be a whole number of at least 1"):
        LocalSgd(Constant(0.1), 0, (1.0,))
    with pytest.raises(ValueError, match=r"aggregation_weights must have shape"):
        LocalSgd(Constant(0.1), 1, ())
    with pytest.raises(ValueError, match=r"one entry for each of 2 clients, got 3"):
        exact(Setting(LocalSgd(Constant(0.1), 1, P), two_points, UniformSubset(2, 2), 1, [0.0]))


def test_a_drawn_average_is_the_mean_of_those_drawn() -> None:
    """Scheme II of Li et al.: every client steps, two of three are averaged after every third."""
    hessians = np.array([np.diag([1.0, 0.5]), np.diag([0.3, 1.0]), np.diag([0.7, 0.6])])
    optima = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]])
    problem = QuadraticProblem(hessians, optima)
    method = LocalSgd(Harmonic(0.5, offset=2.0), 3, (1 / 3,) * 3, sampled="average")
    run = exact(Setting(method, problem, UniformSubset(3, 2), 9, [2.0, -1.0]))
    pairs = [[0, 1], [0, 2], [1, 2]]
    total = 0.0
    for path in product(pairs, repeat=3):
        models = np.tile([2.0, -1.0], (3, 1))
        for t in range(1, 10):
            pulls = np.einsum("kab,kb->ka", hessians, models - optima)
            models = models - 0.5 / (t + 2) * pulls
            if t % 3 == 0:
                models = np.tile(models[path[t // 3 - 1]].mean(axis=0), (3, 1))
        total += float(((models[0] - problem.x_star) ** 2).sum()) / 27
    assert run.squared_distance[-1] == pytest.approx(total, rel=1e-12)


def test_nobody_drawn_is_the_mean_of_all(mixed_hessians: QuadraticProblem) -> None:
    drawn = LocalSgd(Constant(0.1), 2, P, sampled="average")
    always = LocalSgd(Constant(0.1), 2, P)
    nobody = Trace([[False] * 3] * 3 + [[True] * 3], start=0)
    settings = (
        Setting(drawn, mixed_hessians, nobody, 3, [2.0, -1.0]),
        Setting(always, mixed_hessians, EVERYBODY, 3, [2.0, -1.0]),
    )
    found, expected = (exact(setting).squared_distance for setting in settings)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
