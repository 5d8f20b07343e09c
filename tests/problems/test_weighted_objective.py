"""The objective of other weights: minimiser and excess against the clients' own losses."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.problems import QuadraticProblem
from fltheory.problems.weighted_objective import WeightedObjective

HESSIANS = np.array([np.diag([2.0, 1.0]), [[1.0, 0.4], [0.4, 0.8]], np.diag([0.5, 3.0])])
OPTIMA = np.array([[1.0, -1.0], [0.0, 2.0], [-3.0, 0.5]])


@pytest.mark.parametrize("hessians", [HESSIANS, HESSIANS[1]], ids=["own", "shared"])
@pytest.mark.parametrize("weights", [(0.2, 0.5, 0.3), (0.0, 1.0, 0.0)])
def test_excess_is_that_of_the_weighted_losses(hessians, weights) -> None:
    problem = QuadraticProblem(hessians, OPTIMA)
    objective = WeightedObjective(problem, weights)
    points = np.random.default_rng(0).normal(size=(5, 2))
    losses = problem.client_losses(points) @ np.array(weights)
    least = problem.client_losses(objective.minimiser) @ np.array(weights)
    np.testing.assert_allclose(objective.excess_loss(points), losses - least, rtol=1e-9)
    assert (losses > least).all()


def test_target_weights_give_the_problem_itself() -> None:
    problem = QuadraticProblem(HESSIANS, OPTIMA, target_weights=[0.2, 0.5, 0.3])
    objective = WeightedObjective(problem, [0.2, 0.5, 0.3])
    np.testing.assert_allclose(objective.minimiser, problem.x_star, rtol=1e-12)
    np.testing.assert_allclose(objective.hessian, problem.mean_hessian)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.5], r"weights must have shape \(3,\), got \(2,\)"),
        ([0.6, 0.6, -0.2], r"must be nonnegative and sum to 1, got a smallest of -0\.2"),
        ([0.5, 0.2, 0.2], r"a sum of 0\.9"),
    ],
)
def test_bad_weights_are_named(weights, message) -> None:
    with pytest.raises(ValueError, match=message):
        WeightedObjective(QuadraticProblem(HESSIANS, OPTIMA), weights)
