"""Sampled means and intervals, against Student's law by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fltheory import theorems
from fltheory.claims.curves import along, at_values, of_draws, of_errors, sampled_run

THEOREM = theorems.get("sa-fl/5", reading="derived")
SETTING = THEOREM.regimes["q small"].setting
DRAWS = [np.array([1.0, 2.0, 6.0]), np.array([0.0, 0.0, 3.0])]


def test_intervals_of_draws_are_students_shared_among_the_values() -> None:
    found = of_draws(DRAWS)
    assert found.means.tolist() == [3.0, 1.0]
    errors = np.sqrt([7.0 / 3, 3.0 / 3])
    quantile = stats.t(2).isf(1e-3 / 4)
    np.testing.assert_allclose(found.intervals, quantile * errors, rtol=1e-9)
    assert (found.replicas, found.error_probability) == (3, 1e-3)
    wider = of_errors(found.means, errors, 3, 1e-9)
    np.testing.assert_allclose(wider.intervals, stats.t(2).isf(1e-9 / 4) * errors, rtol=1e-6)


def test_intervals_along_a_run_hold_for_all_rounds_and_fields() -> None:
    drawn = sampled_run(THEOREM, SETTING, 20, 0)
    settings = [type(SETTING)(*_parts(rounds)) for rounds in (1, SETTING.rounds)]
    found = along(THEOREM.quantity, drawn, settings)
    run = drawn.trajectory
    assert run.standard_error is not None
    quantile = stats.t(19).isf(1e-3 / (2 * 3 * (SETTING.rounds + 1)))
    ends = [1, SETTING.rounds]
    np.testing.assert_allclose(found.means, run.squared_distance[ends], rtol=1e-14)
    expected = quantile * run.standard_error.squared_distance[ends]
    np.testing.assert_allclose(found.intervals, expected, rtol=1e-9)


def test_runs_of_their_own_share_the_probability() -> None:
    one = sampled_run(THEOREM, SETTING, 20, 0, rounds=5)
    short = type(SETTING)(*_parts(5))
    alone = at_values(THEOREM.quantity, [one], [short])
    shared = at_values(THEOREM.quantity, [one, one], [short, short])
    ratio = stats.t(19).isf(1e-3 / (2 * 2 * 18)) / stats.t(19).isf(1e-3 / (2 * 18))
    assert shared.intervals[0] / alone.intervals[0] == pytest.approx(ratio, rel=1e-9)


def _parts(rounds: int):
    return (
        SETTING.algorithm,
        SETTING.problem,
        SETTING.participation,
        rounds,
        SETTING.x0,
    )
