"""Certificates against random problems: none breaks one, and some notice one that is too small."""

from __future__ import annotations

import pytest

from benchmarks import proofs_against_problems as script

TIGHT = {
    ("FedAvg, one step, everybody", "rate"): 60,
    ("FedAvg, one step, 2 of 4", "heterogeneity"): 200,
    ("SAFARI, K = 5, 2 of 4", "rate"): 20,
    ("FedAvg, one noisy step, 2 of 4", "noise"): 200,
}


@pytest.mark.parametrize("name", script.CASES)
def test_no_random_problem_breaks_a_certificate(name: str) -> None:
    case = script.CASES[name]
    tried = script.against_problems(case, case.bound(), 20, seed=1)
    assert tried.violations == 0
    assert 0.1 < max(tried.quadratic, tried.piecewise) <= 1


@pytest.mark.parametrize(("name", "coefficient"), TIGHT)
def test_a_coefficient_that_is_too_small_is_noticed(name: str, coefficient: str) -> None:
    """Where the bound is nearly attained, 20% less of a coefficient is broken."""
    case = script.CASES[name]
    less = script.lowered(case.bound(), coefficient)
    tried = script.against_problems(case, less, TIGHT[name, coefficient], seed=1)
    assert tried.violations > 0


def test_the_largest_part_is_the_bounds_own_where_the_worst_is_known() -> None:
    """Gradient descent at 1.2/L, mu = L/10: the worst is |1 - mu eta| = 0.88, on F quadratic."""
    case = script.CASES["FedAvg, one step, everybody"]
    bound = case.bound()
    assert bound["rate"] == pytest.approx(0.88**2, rel=1e-5)
    tried = script.against_problems(case, bound, 60, seed=1)
    assert tried.quadratic == pytest.approx(1, abs=1e-3)
