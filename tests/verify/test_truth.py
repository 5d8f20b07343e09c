"""Which engine gives the truth, and with what error."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import FedAU, FedAvg
from fltheory.engines import Setting, conditional, exact
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff
from fltheory.problems import QuadraticProblem, nonconvex
from fltheory.verify.truth import Sampling, truth_of
from fltheory.verify.verdict import Grade

PROBLEM = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=0.5)
SAMPLING = Sampling(replicas=400, seed=3)


def setting(algorithm, participation, rounds: int, problem=PROBLEM) -> Setting:
    return Setting(algorithm, problem, participation, rounds, [2.0])


def test_an_affine_round_is_followed_exactly() -> None:
    run = setting(FedAvg(0.1, 2), MarkovOnOff([0.5, 0.5], 0.5), 20)
    truth = truth_of(run, (), SAMPLING)
    expected = exact(run.algorithm, run.problem, run.participation, run.rounds, run.x0)
    assert truth.grade is Grade.EXACT
    np.testing.assert_array_equal(truth.trajectory.excess_loss, expected.excess_loss)


@pytest.mark.parametrize(
    ("participation", "rounds", "paths"),
    [
        (Bernoulli([0.5, 0.7]), 4, 256),
        (MarkovOnOff([0.5, 0.7], 0.5), 4, 256),
        (Cyclic([2, 3], [0, 1]), 100, 1),
    ],
)
def test_few_paths_are_all_averaged_over(participation, rounds: int, paths: int) -> None:
    run = setting(FedAU(0.1, 2, cutoff=3), participation, rounds)
    truth = truth_of(run, (), SAMPLING)
    assert truth.grade is Grade.EXACT
    assert truth.trajectory.replicas == paths
    evidence = truth.evidence(0.0)
    assert (evidence.error_probability, evidence.replicas) == (0.0, None)
    error = truth.error("squared_gradient")
    assert (error > 0).all()
    assert error.max() < 1e-12


def test_many_paths_are_drawn() -> None:
    run = setting(FedAU(0.1, 2, cutoff=3), Bernoulli([0.5, 0.7]), 12)
    truth = truth_of(run, (), SAMPLING)
    assert truth.grade is Grade.STATISTICAL
    drawn = conditional(
        run.algorithm, run.problem, run.participation, run.rounds, run.x0, paths=100, seed=3
    )
    np.testing.assert_array_equal(truth.trajectory.squared_gradient, drawn.squared_gradient)
    assert truth.evidence(0.0).replicas == 100
    # Student's quantile with 99 degrees of freedom at 1e-9/78 is above 7
    assert (truth.error("excess_loss")[1:] > 7 * drawn.standard_error.excess_loss[1:]).all()


def test_without_noise_runs_are_drawn() -> None:
    quiet = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    run = setting(FedAU(0.1, 2, cutoff=3), Bernoulli([0.5, 0.7]), 12, quiet)
    truth = truth_of(run, (), SAMPLING)
    assert truth.grade is Grade.STATISTICAL
    assert truth.evidence(0.0).replicas == 400
    paths = conditional(
        run.algorithm, run.problem, run.participation, run.rounds, run.x0, paths=4000, seed=5
    )
    spread = np.hypot(paths.standard_error.excess_loss, truth.trajectory.standard_error.excess_loss)
    gap = abs(paths.excess_loss - truth.trajectory.excess_loss)
    assert (gap <= 7 * spread + 1e-12).all()


def test_what_is_never_affine_is_sampled() -> None:
    run = setting(
        FedAU(0.1, 2), Bernoulli([0.5, 0.7]), 5, nonconvex(2, 1, L=1.0, sigma_G=1.0, sigma=0.1)
    )
    truth = truth_of(run, (), SAMPLING)
    assert truth.grade is Grade.STATISTICAL
    assert truth.evidence(0.0).replicas == 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicas": 1}, "replicas must be a whole number of at least 2"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"error_probability": 1.0}, "error_probability must be a probability between 0 and 1"),
    ],
)
def test_bad_sampling(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sampling(**arguments)
