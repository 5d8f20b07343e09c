"""The law by quadrature, against the exact one and against samples."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from fltheory.learnability import Source
from fltheory.learnability.empirical_minimiser import sample_erm
from fltheory.learnability.populations import Population, as_population, uniform
from tests.learnability.empirical_minimiser.grid_law import GridLaw

HALF = Fraction(1, 2)


def of(target=HALF, **options) -> Population:
    return as_population(Source(uniform(0, 1), target, **options))


P = of()


@pytest.mark.parametrize("n", [50, 2000])
def test_without_noise_it_is_the_poisson_law(n: int) -> None:
    """No sample within u of the target on a side has probability exp(-nu), sides independent."""
    law = GridLaw(P, P, n, cells=60)
    for level in law.levels[[5, 20, 40]]:
        empty = math.exp(-n * level)
        assert law.survival(float(level)) == pytest.approx(1 - (1 - empty) ** 2, abs=1e-9)
    assert law.mean() == pytest.approx(1.5 / n, rel=1e-3)


@pytest.mark.parametrize(
    ("training", "n"),
    [
        (of(scale=HALF), 1000),
        (of(beta=HALF, scale=2), 1000),
        (of("1/4", beta=HALF), 1000),
    ],
)
def test_mean_agrees_with_samples(training: Population, n: int) -> None:
    """Within 3% for the grid, and six standard errors (about 5%)."""
    found = sample_erm(training, training, n, 5000, np.random.default_rng(3)).on_target
    law = GridLaw(training, training, n, cells=80)
    allowed = 0.03 * law.mean() + 6.5 * found.std() / math.sqrt(5000)
    assert abs(found.mean() - law.mean()) < allowed


def test_survival_falls_from_one() -> None:
    law = GridLaw(P, of(beta=HALF, scale=2), 500, cells=40)
    values = [law.survival(float(level)) for level in law.levels]
    assert values[0] == 1
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(values))
    assert values[-1] < 1e-3


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="must have the same target"):
        GridLaw(P, of("1/3"), 10)
    with pytest.raises(ValueError, match="cells must be a whole number of at least 2, got 1"):
        GridLaw(P, P, 10, cells=1)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        GridLaw(P, P, 0)
