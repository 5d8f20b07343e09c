"""The transform against the recursion over rounds, and against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from fltheory.engines.fedau_weights.weight_error import mean_weight_errors, weight_error
from tests.engines.fraction_runs import rational_weight_error


@pytest.mark.parametrize("rounds", [1, 2, 9])
@pytest.mark.parametrize("p", [Fraction(1, 9), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
def test_it_is_the_fractions_mean(p: Fraction, rounds: int) -> None:
    cutoffs = [1, 2, 3, 8, 9, 10, math.inf]
    exact = [float(sum(rational_weight_error(p, each, rounds)) / rounds) for each in cutoffs]
    found = mean_weight_errors(float(p), np.array(cutoffs, dtype=np.float64), rounds)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-11)


@pytest.mark.parametrize("p", [0.001, 0.03, 0.2, 0.7, 0.999])
@pytest.mark.parametrize("rounds", [150, 1000])
def test_it_is_the_recursions_mean(p: float, rounds: int) -> None:
    cutoffs = [1, 4, 40, rounds, math.inf]
    exact = [weight_error(p, each, rounds).values.mean() for each in cutoffs]
    found = mean_weight_errors(p, np.array(cutoffs, dtype=np.float64), rounds)
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-11)


def test_many_cutoffs_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    cutoffs = np.arange(1.0, 20.0)
    whole = mean_weight_errors(0.3, cutoffs, 50)
    monkeypatch.setattr("fltheory.engines.fedau_weights.weight_error._MOST_ENTRIES", 300)
    np.testing.assert_array_equal(mean_weight_errors(0.3, cutoffs, 50), whole)
