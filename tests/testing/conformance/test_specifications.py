from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fltheory.testing import run_of
from fltheory.testing.conformance.case import Case, QuadraticClient
from fltheory.testing.conformance.case_maker import steady
from fltheory.testing.conformance.specifications import SPECIFICATIONS


def _settled(trace: list[list[int]], **options: Any) -> list[list[int]]:
    clients = tuple(QuadraticClient(np.eye(1), np.zeros(1)) for _ in trace[0])
    case = Case(clients, np.ones(1), np.array(trace, dtype=bool), 0.5, 1, options=options)
    settled = SPECIFICATIONS["f3ast"].prepared(case)
    again = SPECIFICATIONS["f3ast"].prepared(settled)
    assert np.array_equal(settled.trace, again.trace)
    return settled.trace.astype(int).tolist()


def test_of_those_never_chosen_as_many_are_left_as_fit() -> None:
    given = {"target_weights": (0.2, 0.3, 0.5), "size": 1, "smoothing": 0.5}
    # All are as urgent at first; then the one that was chosen is the least so, and clients 1 and 2
    # are as urgent again; in the third round client 2 was never chosen.
    assert _settled([[1, 1, 1]] * 3, **given) == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_where_nothing_is_smoothed_all_are_always_as_urgent() -> None:
    given = {"target_weights": (0.2, 0.3, 0.5), "size": 2, "smoothing": 0.0}
    assert _settled([[1, 1, 1], [0, 1, 1]], **given) == [[1, 1, 0], [0, 1, 1]]


def test_with_known_availability_alpha_over_the_rate_decides() -> None:
    given = {"target_weights": (0.5, 0.25, 0.25), "size": 2, "smoothing": 0.5}
    # Urgencies 0.5/0.75, 0.25/0.75, 0.25/0.75: clients 1 and 2 compete for one place.
    tied = {**given, "availability": (0.5, 0.5, 0.5)}
    assert _settled([[1, 1, 1], [0, 1, 1]], **tied) == [[1, 1, 0], [0, 1, 1]]
    apart = {**given, "availability": (0.5, 0.5, 0.6)}
    assert _settled([[1, 1, 1]], **apart) == [[1, 1, 1]]


def test_other_algorithms_cases_are_left_as_they_are() -> None:
    case = Case(
        (QuadraticClient(np.eye(1), np.zeros(1)),) * 3, np.ones(1), np.ones((2, 3), bool), 0.5, 1
    )
    assert SPECIFICATIONS["adafed"].prepared(replace(case)).trace.all()


def test_the_largest_step_that_a_proximal_term_allows() -> None:
    one = SPECIFICATIONS["fedprox"]
    assert one.checked({"proximal": 10, "client_lr": 0.13}) == {"proximal": 10, "client_lr": 0.13}
    with pytest.raises(ValueError, match=r"client_lr must be at most 0\.13 .*, got 0\.14"):
        one.checked({"proximal": 10, "client_lr": 0.14})
    assert one.checked({"proximal": 0, "client_lr": 9.0})["client_lr"] == 9.0


def _tried(correlation: tuple[float, ...]) -> Case:
    """Return a round of CA-Fed in which the order matters: who is kept depends on it."""
    clients = tuple(QuadraticClient(np.eye(1), np.array([c])) for c in (6.0, 5.0, 4.0, 2.0))
    options = {
        "target_weights": (0.1, 0.1, 0.5, 0.3),
        "loss_smoothing": 1.0,
        "threshold": 0.0,
        "kappa_bar": 1.25,
        "known_minima": (0.0,) * 4,
        "availability": (0.5,) * 4,
        "correlation": correlation,
    }
    return Case(clients, np.zeros(1), np.ones((1, 4), bool), 0.5, 1, options=options)


def test_a_case_is_not_steady_where_it_matters_who_of_those_that_tie_is_tried_first() -> None:
    models = {
        order: run_of("ca-fed")(case.x0, case.clients, case.trace, **case.keywords)
        for order in ((0.1, 0.2, 0.3, 0.4), (0.4, 0.3, 0.2, 0.1))
        if steady(SPECIFICATIONS["ca-fed"], case := _tried(order))
    }
    ascending, descending = models.values()
    assert abs(ascending[1, 0] - descending[1, 0]) == pytest.approx(0.5)
    assert not steady(SPECIFICATIONS["ca-fed"], _tried((0.25,) * 4))
    nearly = tuple(0.25 + 1e-16 * k for k in range(4))
    assert not steady(SPECIFICATIONS["ca-fed"], _tried(nearly))


def test_ties_that_do_not_matter_are_steady() -> None:
    tied = _tried((0.25,) * 4)
    one = tied.ordered([2])
    assert steady(SPECIFICATIONS["ca-fed"], one)
    assert steady(SPECIFICATIONS["fedavg"], replace(tied, options={"weighting": "uniform"}))


def test_a_client_at_its_minimum_ties_where_neither_threshold_nor_bias_counts() -> None:
    """Without it epsilon stays what it was: 0, or as much as rounding makes of it."""
    case = _tried((0.1, 0.2, 0.3, 0.4))
    # Losses are 18, 12.5, 8 and 2. Client 2 goes, then client 3, and those left have no gap.
    known = {"known_minima": (18.0, 12.5, 0.0, 0.0), "availability": (0.6, 0.7, 0.8, 0.5)}
    free = {**(case.options or {}), **known, "kappa_bar": 0.0}
    assert not steady(SPECIFICATIONS["ca-fed"], replace(case, options={**free, "threshold": 0.0}))
    assert steady(SPECIFICATIONS["ca-fed"], replace(case, options={**free, "threshold": 0.1}))
