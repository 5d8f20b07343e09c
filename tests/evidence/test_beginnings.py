"""The beginning of a run: the shorter run, and what may be exact where the whole is sampled."""

from __future__ import annotations

import numpy as np

from fltheory import theorems
from fltheory.algorithms import FedAU, FedAvg
from fltheory.engines import Setting, exact, monte_carlo, paths
from fltheory.engines.history.histories import Rounds
from fltheory.engines.trajectory import FIELDS
from fltheory.evidence.truths import Sampling, beginning, exact_beginning, shorter, truth
from fltheory.participation import Bernoulli, Cyclic, UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex

SETTING = theorems.get("sa-fl/5").regimes["i.i.d."].setting
PARTS = (SETTING.algorithm, SETTING.problem, SETTING.participation)


def test_a_cut_run_has_the_numbers_of_a_shorter_one() -> None:
    cut, run = (
        shorter(exact(Setting(*PARTS, 9, SETTING.x0)), 4),
        exact(Setting(*PARTS, 4, SETTING.x0)),
    )
    for field in FIELDS:
        np.testing.assert_array_equal(cut[field], run[field])
        assert cut.rounding_error[field].shape == (5,)


def test_sampled_errors_and_the_sample_size_stay() -> None:
    run = monte_carlo(Setting(*PARTS, 9, SETTING.x0), replicas=8, seed=0)
    cut = shorter(run, 4)
    assert cut.replicas == 8
    np.testing.assert_array_equal(
        cut.standard_error.excess_loss, run.standard_error.excess_loss[:5]
    )


def test_a_truths_grade_stays() -> None:
    found = truth(SETTING, (), Sampling())
    first = beginning(found, 3)
    assert (first.grade, first.sampling, first.trajectory.rounds) == (found.grade, None, 3)


def test_histories_are_followed_where_gradients_are_noisy(monkeypatch) -> None:
    """Counts that meet are merged: 18 rounds, where 4^6 paths were the most. Drawn paths agree.

    An interval has at most 3 rounds, so that a client has 12 + 11 + 11 counts after 17 rounds, by
    how long the open one has lasted: 4 x 34^2 ways to go on are below 5,000. 4 x 36^2 are not.
    """
    monkeypatch.setattr(Rounds, "most", 5_000)
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=0.5)
    setting = Setting(FedAU(0.1, 1, cutoff=3), problem, Bernoulli([0.3, 0.6]), 30, [1.0])
    found = exact_beginning(setting)
    assert found is not None
    assert found.rounds == 18
    known = paths(Setting(setting.algorithm, problem, setting.participation, 3, [1.0]))
    np.testing.assert_allclose(found.excess_loss[:4], known.excess_loss, rtol=1e-12)
    drawn = paths(setting, draws=2000, seed=1)
    gap = abs(drawn.squared_distance[:19] - found.squared_distance)
    assert (gap <= 7 * drawn.standard_error.squared_distance[:19] + 1e-12).all()


def test_runs_are_enumerated_where_they_are_not() -> None:
    """Two sets a round: 2^15 is the largest power below 50,000 paths."""
    problem = nonconvex(2, 1, L=1.0, sigma_G=0.3, sigma=0.0, server_sigma=0.0)
    setting = Setting(FedAvg(0.1, 1), problem, UniformSubset(2, 1), 300, [1.0])
    found = exact_beginning(setting)
    assert found is not None
    assert found.rounds == 15


def test_a_run_without_chance_is_followed_to_its_end() -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    setting = Setting(FedAvg(0.1, 1), problem, Cyclic([2, 2], [0, 1]), 60, [1.0])
    found = exact_beginning(setting)
    assert found is not None
    assert found.rounds == 60
    known = exact(Setting(setting.algorithm, problem, setting.participation, 60, [1.0]))
    np.testing.assert_allclose(found.squared_distance, known.squared_distance, rtol=1e-11)


def test_noise_on_losses_that_are_not_quadratic_leaves_nothing() -> None:
    problem = nonconvex(2, 1, L=1.0, sigma_G=0.3, sigma=0.5, server_sigma=0.5)
    setting = Setting(FedAvg(0.1, 1), problem, UniformSubset(2, 1), 5, [1.0])
    assert exact_beginning(setting) is None
