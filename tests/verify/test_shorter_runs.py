"""The beginning of a run is the shorter run."""

from __future__ import annotations

import numpy as np

from fltheory import theorems
from fltheory.engines import exact, monte_carlo
from fltheory.engines.trajectory import FIELDS
from fltheory.verify.shorter_runs import beginning, shorter
from fltheory.verify.truth import Sampling, truth_of

SETTING = theorems.get("sa-fl/5").regimes["i.i.d."].setting
PARTS = (SETTING.algorithm, SETTING.problem, SETTING.participation)


def test_a_cut_run_has_the_numbers_of_a_shorter_one() -> None:
    cut, run = shorter(exact(*PARTS, 9, SETTING.x0), 4), exact(*PARTS, 4, SETTING.x0)
    for field in FIELDS:
        np.testing.assert_array_equal(cut[field], run[field])
        assert cut.rounding_error[field].shape == (5,)


def test_sampled_errors_and_the_sample_size_stay() -> None:
    run = monte_carlo(*PARTS, 9, SETTING.x0, replicas=8, seed=0)
    cut = shorter(run, 4)
    assert cut.replicas == 8
    np.testing.assert_array_equal(
        cut.standard_error.excess_loss, run.standard_error.excess_loss[:5]
    )


def test_a_truths_grade_stays() -> None:
    truth = truth_of(SETTING, (), Sampling())
    first = beginning(truth, 3)
    assert (first.grade, first.sampling, first.trajectory.rounds) == (truth.grade, None, 3)
