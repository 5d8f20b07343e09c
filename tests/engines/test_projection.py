"""Projection onto a ball, where it is left out, and the loss of a biased objective."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import (
    AveragedIterate,
    FedAvg,
    Harmonic,
    Projected,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.observables import BiasedExcessLoss
from fltheory.engines.setting import without_idle_projection
from fltheory.participation import MarkovOnOff
from fltheory.problems import Ball, QuadraticProblem

STEPS = Harmonic(1.0, offset=4.0)
PLAIN = Scheduled(WeightedFedAvg((0.5, 0.8), 1.0, 3), STEPS)
PROBLEM = QuadraticProblem(
    [np.diag([1.0, 0.4]), [[0.7, 0.1], [0.1, 0.6]]], [[2.0, 0.0], [-1.0, 1.0]]
)
WHO = MarkovOnOff([0.7, 0.4], 0.5)
ROOMY = Ball([0.1, 0.2], 8.0)


def setting(algorithm=PLAIN, problem=PROBLEM, x0=(3.0, 3.0)) -> Setting:
    return Setting(algorithm, problem, WHO, 12, x0)


@pytest.mark.parametrize("wrap", [lambda a: a, AveragedIterate], ids=["plain", "averaged"])
def test_idle_projection_changes_nothing(wrap) -> None:
    projected = setting(wrap(Projected(PLAIN, ROOMY)))
    if wrap is AveragedIterate:
        projected = setting(AveragedIterate(Projected(PLAIN, ROOMY), weights=STEPS))
    plain = without_idle_projection(projected, PROBLEM)
    assert plain.algorithm in (PLAIN, AveragedIterate(PLAIN, weights=STEPS))
    arguments = (PROBLEM, WHO, 12, [3.0, 3.0])
    run = monte_carlo(Setting(projected.algorithm, *arguments), replicas=50, seed=1)
    same = monte_carlo(Setting(plain.algorithm, *arguments), replicas=50, seed=1)
    np.testing.assert_array_equal(run.squared_distance, same.squared_distance)
    found = exact(Setting(projected.algorithm, *arguments))
    np.testing.assert_array_equal(
        found.squared_distance, exact(Setting(plain.algorithm, *arguments)).squared_distance
    )


@pytest.mark.parametrize(
    "binding",
    [
        setting(Projected(PLAIN, Ball([0.1, 0.2], 3.0)), x0=(0.0, 0.0)),
        setting(Projected(PLAIN, ROOMY), x0=(9.0, 0.0)),
        setting(Projected(Scheduled(WeightedFedAvg((0.5, 0.8), 1.0, 3), Harmonic(6.0)), ROOMY)),
        setting(Projected(Scheduled(WeightedFedAvg((5.0, 0.8), 1.0, 3), STEPS), ROOMY)),
        setting(Projected(Scheduled(FedAvg(1.0, 3), STEPS), ROOMY)),
        setting(
            Projected(PLAIN, ROOMY),
            QuadraticProblem(PROBLEM.hessians, PROBLEM.optima, sigma=0.1),
        ),
    ],
    ids=["small ball", "start outside", "large steps", "large weights", "other", "noise"],
)
def test_a_projection_that_may_work_has_no_exact_moments(binding: Setting) -> None:
    with pytest.raises(NotAffineError, match="projection must provably never move"):
        exact(Setting(binding.algorithm, binding.problem, WHO, binding.rounds, binding.x0))


@pytest.mark.parametrize("problems", [3, pytest.param(30, marks=pytest.mark.soundness)])
def test_a_radius_that_is_not_left_on_any_path(problems: int) -> None:
    """The claim behind it, on random problems at the limit of its conditions."""
    rng = np.random.default_rng(7)
    for _ in range(problems):
        spectra = rng.uniform(0.2, 1.0, (3, 2))
        turns = np.linalg.qr(rng.normal(size=(3, 2, 2)))[0]
        hessians = np.einsum("iab,ib,icb->iac", turns, spectra, turns)
        problem = QuadraticProblem(
            0.5 * (hessians + hessians.swapaxes(1, 2)), rng.normal(size=(3, 2))
        )
        kappa = problem.L / problem.mu
        radius = kappa * float(np.linalg.norm(problem.optima, axis=1).max())
        q = rng.dirichlet(np.ones(3))
        algorithm = WeightedFedAvg(tuple(q), 1 / problem.L, 4)
        angle = rng.uniform(0, 2 * np.pi)
        start = radius * np.array([np.cos(angle), np.sin(angle)])
        projected = Projected(algorithm, Ball([0.0, 0.0], radius * (1 + 1e-12)))
        who = MarkovOnOff([0.5] * 3, 0.0)
        plain = monte_carlo(Setting(algorithm, problem, who, 30, start), replicas=20, seed=3)
        same = monte_carlo(Setting(projected, problem, who, 30, start), replicas=20, seed=3)
        np.testing.assert_array_equal(plain.squared_distance, same.squared_distance)


def test_projection_goes_to_the_nearest_point() -> None:
    projected = Projected(WeightedFedAvg((1.0,), 0.5, 1, server_lr=2.0), Ball([1.0, 0.0], 1.0))
    problem = QuadraticProblem([[1.0, 0.0], [0.0, 1.0]], [[1.0, 4.0]])
    run = monte_carlo(
        Setting(projected, problem, MarkovOnOff([1.0], 0.0), 1, [1.0, 0.0]), replicas=2, seed=0
    )
    assert run.squared_distance.tolist() == [16.0, 9.0]


def test_biased_excess_loss_exact_and_sampled_agree() -> None:
    observe = (BiasedExcessLoss((0.9, 0.1)),)
    run = exact(Setting(PLAIN, PROBLEM, WHO, 12, [3.0, 3.0]), observe=observe)
    sample = monte_carlo(
        Setting(PLAIN, PROBLEM, WHO, 12, [3.0, 3.0]), replicas=4000, seed=2, observe=observe
    )
    gap = np.abs(run["biased_excess_loss"] - sample["biased_excess_loss"])
    allowed = 5 * sample.standard_error["biased_excess_loss"]
    assert (gap <= allowed + 1e-12).all()
