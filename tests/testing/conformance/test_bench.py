"""Where expected and actual models part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fltheory.testing import run_of
from fltheory.testing.conformance import case_maker
from fltheory.testing.conformance.bench import (
    Bench,
    LawTrial,
    ModelComparison,
    failure_of,
    smallest,
)
from fltheory.testing.conformance.case import Case
from fltheory.testing.conformance.case_maker import CaseMaker
from fltheory.testing.conformance.guarded_run import GuardedRun
from fltheory.testing.conformance.own_runs import Run
from fltheory.testing.conformance.specifications import SPECIFICATIONS

EXPECTED = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({}, None),
        ({(1, 0): 3.0625}, None),  # as far as it may be
        ({(1, 0): 3.125}, 1),
        ({(1, 1): 3.875, (2, 0): 0.0}, 1),
        ({(2, 1): np.nan}, 2),
        ({(0, 1): np.inf}, 0),
    ],
    ids=["alike", "at the tolerance", "above", "below, twice", "no number", "infinite"],
)
def test_the_first_row_that_is_off_by_more_than_the_tolerance(changes, first) -> None:
    actual = EXPECTED.copy()
    for place, value in changes.items():
        actual[place] = value
    assert ModelComparison(EXPECTED, actual, 0.0625).first_wrong == first
    assert ModelComparison(EXPECTED, actual, np.full((3, 2), 0.0625)).first_wrong == first


@pytest.mark.parametrize(("off", "nearly"), [(0.0, True), (5e-7, True), (1e-3, False)])
def test_models_nearly_agree_where_single_precision_would(off: float, nearly: bool) -> None:
    """Relative to the largest model: float32 keeps 24 bits, 6e-8."""
    expected = np.array([[4.0, 1.0], [0.5, 0.25]])
    assert ModelComparison(expected, expected + off, 1e-9).nearly is nearly


def _bench(run: Run) -> tuple[Bench, Case]:
    bench = Bench(SPECIFICATIONS["fedavg"], GuardedRun(run), 1e-9)
    make = CaseMaker(bench.specification, {"weighting": "uniform"}, np.random.default_rng(3))
    return bench, make.case(case_maker.full, n=3, dim=2, rounds=5)


@pytest.mark.parametrize("raises", [False, True])
def test_a_failure_is_shown_where_it_is_smallest(raises: bool) -> None:
    """Both models that differ and calls that raise: one client, one round, one step."""

    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        if raises:
            raise KeyError("weights")
        return run_of("fedavg")(x0, clients, trace, **{**given, "server_lr": 3.0})

    bench, case = _bench(run)
    found = failure_of(bench, LawTrial(case, lambda bench, case: bench.against_ours(case)))
    assert found is not None
    least = smallest(bench, found, fixed=(), n_fixed=False).case
    assert (least.n_clients, least.rounds, least.dim, least.local_steps) == (1, 1, 1, 1)


def test_what_shows_in_two_dimensions_alone_stays_there() -> None:
    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        rate = 3.0 if x0.size > 1 else given["server_lr"]
        return run_of("fedavg")(x0, clients, trace, **{**given, "server_lr": rate})

    bench, case = _bench(run)
    found = failure_of(bench, LawTrial(case, lambda bench, case: bench.against_ours(case)))
    assert found is not None
    least = smallest(bench, found, fixed=(), n_fixed=False)
    assert least.case.dim == 2
    assert least.case.client_lr == case.client_lr
