"""The beginning of a run is the shorter run."""

from __future__ import annotations

import numpy as np

from fltheory import theorems
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.engines.trajectory import FIELDS
from fltheory.evidence.shorter_runs import beginning, shorter
from fltheory.evidence.truths import Sampling, truth

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
