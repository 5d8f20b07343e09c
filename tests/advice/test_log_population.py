"""Distances between means of optima, and groups that stand for clients."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from fltheory.advice.population import ClientPopulation, Distances
from fltheory.logs import AvailabilityLog
from fltheory.weights import Training


def test_the_worst_bias_is_reached_by_some_optima_and_exceeded_by_none() -> None:
    rng = np.random.default_rng(0)
    targets, weights = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    distances = Distances(targets, np.ones(6), 2.0)
    worst = linprog(targets - weights, A_eq=targets[None], b_eq=[0.0], bounds=[(-2.0, 2.0)] * 6)
    assert distances.at_worst(weights) == pytest.approx(-worst.fun)


def test_unrelated_optima_are_at_the_root_mean_square_distance() -> None:
    rng = np.random.default_rng(1)
    targets, weights = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    directions = rng.standard_normal((40_000, 6, 3))
    optima = 1.5 * directions / np.linalg.norm(directions, axis=2, keepdims=True)
    drawn = np.sqrt((((weights - targets) @ optima) ** 2).sum(axis=-1).mean())
    assert Distances(targets, np.ones(6), 1.5).unrelated(weights) == pytest.approx(drawn, rel=0.02)


def test_groups_stand_for_many_clients() -> None:
    rng = np.random.default_rng(4)
    shares = rng.beta(2, 3, 500)
    log = AvailabilityLog.from_masks(rng.random((60, 500)) < shares)

    population = ClientPopulation(log, np.full(500, 1 / 500), np.ones(500), Training())
    # Groups of three, the last of two: algorithms that know no sizes count groups alike.
    assert population.shown.size == -(-population.ever.size // 3)
    assert {part.size for part in population.groups} <= {2, 3}
    assert sorted(np.concatenate(population.groups).tolist()) == list(range(population.ever.size))
    distances = population.group_distances
    assert distances.targets.sum() == pytest.approx(1)
    # Weights that are alike within groups are as far off as those of all clients.
    grouped = rng.dirichlet(np.ones(distances.targets.size))
    every = np.zeros(500)
    for weight, part in zip(grouped, population.groups, strict=False):
        every[population.ever[part]] = weight / part.size
    every[population.never] = (
        0 if population.never.size == 0 else grouped[-1] / population.never.size
    )
    assert population.distances.unrelated(every) == pytest.approx(distances.unrelated(grouped))
    assert population.distances.at_worst(every) == pytest.approx(distances.at_worst(grouped))
