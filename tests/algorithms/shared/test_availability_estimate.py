"""Estimates of availability and correlation against counts made by hand and in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms.ca_fed import (
    counted,
    estimated_availability,
    estimated_correlation,
    first_counts,
)
from fltheory.algorithms.contract import State

PRIOR = (0.25, 0.5)


def after(presence: list[bool]) -> State:
    counts = first_counts(np.zeros((1, 3)), 1)
    for here in presence:
        counts = counted(counts, np.array([[here]]))
    return counts


@given(st.lists(st.booleans(), max_size=12))
def test_counts_are_those_of_the_rounds_and_of_the_pairs_of_rounds(presence: list[bool]) -> None:
    counts = after(presence)
    pairs = list(pairwise(presence))
    assert counts["present"] == presence.count(True)
    assert counts["absent"] == presence.count(False)
    assert counts["stayed"] == pairs.count((True, True))
    assert counts["waited"] == pairs.count((False, False))


@given(st.lists(st.booleans(), max_size=12))
def test_the_correlation_is_the_trace_of_the_estimated_matrix_less_one(
    presence: list[bool],
) -> None:
    n, m = (Fraction(number) for number in PRIOR)
    pairs = list(pairwise(presence))
    from_present = sum(before for before, _ in pairs)
    from_absent = len(pairs) - from_present
    stays = (pairs.count((True, True)) + n) / (from_present + n + m)
    waits = (pairs.count((False, False)) + m) / (from_absent + n + m)
    found = estimated_correlation(after(presence), PRIOR)
    assert found[0, 0] == pytest.approx(float(stays + waits - 1), abs=1e-15)


def test_three_rounds_by_hand() -> None:
    """Present, absent, absent: one round of three, no pair of presences, one of absences."""
    counts = after([True, False, False])
    assert estimated_availability(counts, PRIOR)[0, 0] == pytest.approx(1.25 / 3.75)
    assert estimated_correlation(counts, PRIOR)[0, 0] == pytest.approx(0.25 / 1.75 + 1.5 / 1.75 - 1)
