"""Closed forms in float64 against those in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fltheory.learnability import Source
from fltheory.learnability.populations import (
    Marginal,
    Population,
    disagreement_at,
    excess_at,
    uniform,
)

STEPS = Marginal((0, "1/4", "1/2", 1), ("1/2", "1/8", "3/8"))
PARTS = [Source(STEPS, "1/4"), Source(uniform(0, 1), "3/4")]
NOISY = [Source(STEPS, "1/2", beta=beta, scale="1/2") for beta in ("1", "1/2", "2/5")]
POPULATIONS = [Population(PARTS), Population(PARTS, ["1/5", "4/5"]), Population(NOISY)]


@settings(max_examples=25)
@given(st.fractions(-1, 2, max_denominator=40), st.sampled_from(POPULATIONS))
def test_floats_agree_with_fractions(threshold: Fraction, population: Population) -> None:
    at = np.array([float(threshold)])
    (excess,), (apart,) = excess_at(population, at), disagreement_at(population, at)
    assert excess == pytest.approx(float(population.excess(threshold)), abs=1e-12)
    assert apart == pytest.approx(float(population.disagreement(threshold)), abs=1e-12)
