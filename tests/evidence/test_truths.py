"""Which engine gives the truth, and with what error."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import FedAU, FedAvg
from fltheory.engines import Setting, exact, paths
from fltheory.evidence.truths import Sampling, truth
from fltheory.evidence.verdict import Grade
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff
from fltheory.problems import QuadraticProblem, nonconvex

PROBLEM = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=0.5)
SAMPLING = Sampling(replicas=400, seed=3)


def setting(algorithm, participation, rounds: int, problem=PROBLEM) -> Setting:
    return Setting(algorithm, problem, participation, rounds, [2.0])


def test_an_affine_round_is_followed_exactly() -> None:
    run = setting(FedAvg(0.1, 2), MarkovOnOff([0.5, 0.5], 0.5), 20)
    found = truth(run, (), SAMPLING)
    expected = exact(run)
    assert found.grade is Grade.FLOAT64
    np.testing.assert_array_equal(found.trajectory.excess_loss, expected.excess_loss)


def test_a_known_path_is_followed() -> None:
    """Two engines that share no recursion agree within what both say of their rounding."""
    run = setting(FedAU(0.1, 2, cutoff=3), Cyclic([2, 3], [0, 1]), 100)
    found = truth(run, (), SAMPLING)
    assert found.grade is Grade.FLOAT64
    other = paths(run)
    for field in ("squared_distance", "squared_gradient", "excess_loss"):
        allowed = found.error(field) + other.rounding_error[field]
        assert (abs(found.trajectory[field] - other[field]) <= allowed).all()
        assert allowed.max() < 1e-11


@pytest.mark.parametrize("participation", [Bernoulli([0.5, 0.7]), MarkovOnOff([0.5, 0.7], 0.5)])
@pytest.mark.parametrize("rounds", [4, 12])
def test_histories_are_all_followed_where_they_are_few(participation, rounds: int) -> None:
    """Merged, 12 rounds have few enough: drawn runs agree within 7 standard errors."""
    run = setting(FedAU(0.1, 2, cutoff=3), participation, rounds)
    found = truth(run, (), SAMPLING)
    assert found.grade is Grade.FLOAT64
    assert found.trajectory.replicas is None
    evidence = found.evidence(0.0)
    assert (evidence.error_probability, evidence.replicas) == (0.0, None)
    error = found.error("squared_gradient")
    assert (error > 0).all()
    assert error.max() < 1e-11
    drawn = paths(run, draws=4000, seed=5)
    gap = abs(drawn.excess_loss - found.trajectory.excess_loss)
    assert (gap <= 7 * drawn.standard_error.excess_loss + 1e-12).all()


def test_many_paths_are_drawn() -> None:
    """Without a cut-off intervals of all lengths are averaged, and histories do not meet."""
    run = setting(FedAU(0.1, 2), Bernoulli([0.5, 0.7]), 30)
    found = truth(run, (), SAMPLING)
    assert found.grade is Grade.STATISTICAL
    drawn = paths(run, draws=100, seed=3)
    np.testing.assert_array_equal(found.trajectory.squared_gradient, drawn.squared_gradient)
    assert found.evidence(0.0).replicas == 100
    # Student's quantile with 99 degrees of freedom at 1e-9/186 is above 7
    assert (found.error("excess_loss")[1:] > 7 * drawn.standard_error.excess_loss[1:]).all()


def test_without_noise_runs_are_drawn() -> None:
    quiet = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    run = setting(FedAU(0.1, 2), Bernoulli([0.5, 0.7]), 30, quiet)
    found = truth(run, (), SAMPLING)
    assert found.grade is Grade.STATISTICAL
    assert found.evidence(0.0).replicas == 400
    followed = paths(run, draws=4000, seed=5)
    spread = np.hypot(
        followed.standard_error.excess_loss, found.trajectory.standard_error.excess_loss
    )
    gap = abs(followed.excess_loss - found.trajectory.excess_loss)
    assert (gap <= 7 * spread + 1e-12).all()


def test_what_is_never_affine_is_sampled() -> None:
    run = setting(
        FedAU(0.1, 2), Bernoulli([0.5, 0.7]), 5, nonconvex(2, 1, L=1.0, sigma_G=1.0, sigma=0.1)
    )
    found = truth(run, (), SAMPLING)
    assert found.grade is Grade.STATISTICAL
    assert found.evidence(0.0).replicas == 400


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


def test_a_run_beyond_the_range_of_floats_agrees_with_itself() -> None:
    run = setting(FedAvg(1e200, 1), Bernoulli([0.5, 0.25]), 5)
    assert truth(run).trajectory.diverged_at is not None
