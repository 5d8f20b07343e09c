"""Claimed orders: what the search says agrees with the exact engine at every step."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fltheory import theorems
from fltheory.evidence.truths import Sampling
from fltheory.theorems import RateClaim
from fltheory.verify import Outcome, check
from fltheory.verify.safari.rate_falsification import RateFalsification, falsify_rate


def claim(identifier: str, reading: str) -> RateClaim:
    statement = theorems.get(identifier, reading)
    assert isinstance(statement, RateClaim)
    return statement


def test_printed_corollary_2_breaks_its_bound_and_stays_there() -> None:
    calls: list[tuple[int, int, str]] = []
    corollary = claim("sa-fl/corollary-2", "printed")
    found = falsify_rate(corollary, 300, progress=lambda *call: calls.append(call))
    assert found.speaks_against
    assert (found.settings_tried, found.variable) == (300, "R")
    assert 0 < found.settings_applicable < 300
    assert [call[:2] for call in calls] == [(250, 300), (300, 300)]
    assert found.worst is not None
    verdict = check(corollary, found.worst.setting())
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.truth - verdict.bound == pytest.approx(found.excess, abs=1e-6)
    last = corollary.theorem.compared(found.worst.setting(), Sampling())
    assert last.outcome is Outcome.REFUTED
    assert last.truth / last.bound == pytest.approx(found.best_ratio, rel=1e-6)


def test_derived_corollary_1_stays_below_its_bound() -> None:
    found = falsify_rate(claim("sa-fl/corollary-1", "derived"), 60)
    assert not found.speaks_against
    assert found.settings_applicable > 0
    assert found.best_ratio < 1


def test_a_claim_of_too_fast_a_bound_never_applies() -> None:
    """If the claimed order decays faster than the bound itself, the bound has not settled."""
    slower = claim("sa-fl/corollary-1", "derived")
    axis = replace(slower.axes[0], order=slower.axes[0].order ** 4)
    found = falsify_rate(replace(slower, axes=(axis,)), 40)
    assert found.settings_applicable == 0
    assert found.best_ratio == -math.inf
    assert found.worst is None


@pytest.mark.parametrize(
    ("ratio", "excess", "expected"),
    [(1.5, 0.3, True), (0.9, 0.3, False), (1.5, 0.2, False), (1.5, math.nan, False)],
)
def test_both_the_bound_and_the_slope_must_be_broken(ratio, excess, expected) -> None:
    assert RateFalsification("c", "printed", 1, 1, ratio, excess).speaks_against is expected


@pytest.mark.parametrize(("budget", "seed"), [(0, 0), (5, -1)])
def test_bad_arguments(budget: int, seed: int) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        falsify_rate(claim("sa-fl/corollary-2", "printed"), budget, seed)
