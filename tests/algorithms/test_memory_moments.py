"""Exact moments of algorithms with memory: every path, sampled runs, and what is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import ClusterFedVarp, FedAR, FedVarp, Mifa, Scaffold
from fltheory.algorithms.contract import CLIENTS, Algorithm
from fltheory.engines import Setting, exact, monte_carlo, stationary
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.participation import Bernoulli, UniformSubset

ALGORITHMS = {
    "MIFA from zero": Mifa(0.3, 2, start="zero"),
    "FedVARP": FedVarp(0.3, 2, server_lr=0.8),
    "ClusterFedVARP": ClusterFedVarp((0, 1, 0), 0.3, 2),
    "SCAFFOLD I": Scaffold(0.2, 2, option=1),
    "SCAFFOLD II": Scaffold(0.2, 2, server_lr=1.2),
}
PARTICIPATIONS = {
    "uniform": UniformSubset(3, 2),
    "Bernoulli": Bernoulli([0.3, 0.6, 0.9]),
}
FIELDS = ("squared_distance", "squared_gradient", "excess_loss")
X0 = np.array([1.5, -1.0])
REPLICAS, ROUNDS, SIGMAS = 20_000, 6, 8.0


@pytest.mark.parametrize("who", PARTICIPATIONS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_noise_free_moments_are_sums_over_every_path(name: str, who: str) -> None:
    """Four rounds along every sequence of participant sets, run step by step."""
    algorithm, participation = ALGORITHMS[name], PARTICIPATIONS[who]
    problem = random_problem(6, 3, 2, sigma=0.0)
    clients = SteppedClients(problem, Silence())
    paths = list(product(list(participation.outcomes()), repeat=4))
    weights = np.array([np.prod([p for p, _ in path]) for path in paths])
    masks = np.array([[mask for _, mask in path] for path in paths])
    state = algorithm.init(np.tile(X0, (len(paths), 1)), 3)
    truth = exact(Setting(algorithm, problem, participation, 4, X0))
    for index in range(5):
        squares = ((state["x"] - problem.x_star) ** 2).sum(axis=1)
        assert truth.squared_distance[index] == pytest.approx(weights @ squares, rel=1e-11)
        if index < 4:
            state = algorithm.round(state, clients, masks[:, index], CLIENTS)


@pytest.mark.parametrize("who", PARTICIPATIONS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_sampled_runs_agree_with_the_exact_moments(name: str, who: str) -> None:
    """No mean of 20 000 noisy runs is 8 standard errors from its expectation.

    Two-sided normal tail beyond 8: 1.3e-15. The samples are squares of mixtures of Gaussians;
    their skewness, in 200 000 other runs, is at most 5.7, so that Cramer's correction
    exp(skewness 8^3 / (6 sqrt(20 000))) inflates the upper tail by at most 40. With 10 runs,
    6 rounds and 3 quantities (180 comparisons) the false-alarm probability is below 1e-11.
    Detects differences of 6% of a standard deviation.
    """
    algorithm, participation = ALGORITHMS[name], PARTICIPATIONS[who]
    problem = random_problem(6, 3, 2, sigma=0.7)
    truth = exact(Setting(algorithm, problem, participation, ROUNDS, X0))
    run = monte_carlo(
        Setting(algorithm, problem, participation, ROUNDS, X0), replicas=REPLICAS, seed=3
    )
    assert run.standard_error is not None
    for field in FIELDS:
        slack = SIGMAS * run.standard_error[field] + 1e-12 * (1 + truth[field])
        assert (np.abs(run[field] - truth[field]) <= slack).all(), field


@pytest.mark.parametrize("algorithm", [Mifa(0.3, 2), FedAR(0.3, 2)], ids=["waiting", "FedAR"])
@pytest.mark.parametrize("who", PARTICIPATIONS)
def test_rounds_that_are_not_affine_are_refused(algorithm: Algorithm, who: str) -> None:
    with pytest.raises(NotAffineError, match=r"engines\.monte_carlo"):
        exact(Setting(algorithm, random_problem(6, 3, 2), PARTICIPATIONS[who], 3, X0))


@pytest.mark.parametrize("who", PARTICIPATIONS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_moments_approach_the_stationary_ones(name: str, who: str) -> None:
    arguments = (ALGORITHMS[name], random_problem(6, 3, 2, sigma=0.7), PARTICIPATIONS[who])
    late = exact(Setting(*arguments, 600, X0)).squared_distance
    limit = stationary(Setting(*arguments, 1, X0)).squared_distance
    assert late[-1] == pytest.approx(limit, rel=1e-8)
    assert abs(late[0] - limit) > 0.5
