"""Samples of empirical risk minimisation, against raw samples and exact laws.

Means of two independent samples are compared by Student's distribution, with a false alarm of
1e-10 each.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtri

from fltheory.learnability import Source
from fltheory.learnability.empirical_minimiser import (
    NoiselessLaw,
    _Side,
    _Walks,
    draw,
    sample_erm,
    worst_minimiser,
)
from fltheory.learnability.populations import (
    Marginal,
    Population,
    as_population,
    excess_at,
    mixture,
    uniform,
)

HALF = Fraction(1, 2)
GAP = Marginal((0, "2/5", "3/5", 1), (HALF, 0, HALF))
QUANTILE = -float(ndtri(0.5e-10))


def of(marginal: Marginal, target=HALF, **options) -> Population:
    return as_population(Source(marginal, target, **options))


P = of(uniform(0, 1))
NOISY = of(uniform(0, 1), beta=HALF, scale=2)
CASES = {
    "constant noise": (P, of(uniform(0, 1), scale=HALF)),
    "noise near the target": (NOISY, NOISY),
    "target off the middle": (of(uniform(0, 1), "1/5"), of(uniform(0, 1), "1/5", beta=HALF)),
    "two noises": (
        NOISY,
        Population([P.sources[0], NOISY.sources[0]], ["1/10", "9/10"]),
    ),
    "a gap": (NOISY, mixture(of(GAP, beta=HALF, scale=2), NOISY, "1/4")),
}


def apart(one: np.ndarray, two: np.ndarray) -> float:
    """Return the difference of means over what it may be."""
    spread = math.sqrt(one.var(ddof=1) / one.size + two.var(ddof=1) / two.size)
    difference = abs(float(one.mean() - two.mean()))
    if spread == 0:
        return 0.0 if difference < 1e-12 else math.inf
    return difference / (QUANTILE * spread)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [1, 3, 60])
def test_same_law_as_raw_samples(name: str, n: int) -> None:
    target, training = CASES[name]
    rng = np.random.default_rng(5)
    found = sample_erm(target, training, n, 3000, rng)
    raw = worst_minimiser(target, *draw(training, (3000, n), rng)).excess
    assert apart(found.on_target, raw) < 1
    assert apart(np.sqrt(found.on_target), np.sqrt(raw)) < 1
    level = float(np.median(raw))
    assert apart((found.on_target > level) * 1.0, (raw > level) * 1.0) < 1


@pytest.mark.parametrize("n", [10, 10_000])
def test_without_noise_the_mean_is_the_exact_one(n: int) -> None:
    training = mixture(of(GAP), P, "1/4")
    found = sample_erm(P, training, n, 4000, np.random.default_rng(7)).on_target
    exact = NoiselessLaw(P, [(training, n)]).mean()
    assert abs(found.mean() - exact) < QUANTILE * found.std(ddof=1) / math.sqrt(4000)


def test_excess_on_training_is_of_the_same_threshold() -> None:
    """On P and Q with one distance r: excess r and r^2."""
    found = sample_erm(P, NOISY, 50, 200, np.random.default_rng(1))
    assert found.on_training == pytest.approx(found.on_target**2, rel=1e-9)


def test_tagged_errors_are_those_of_the_minimiser() -> None:
    """If all samples are tagged they are the minimum itself, at most 0; if none, they are 0."""
    everything = sample_erm(NOISY, NOISY, 100, 500, np.random.default_rng(2), tag=1.0)
    assert everything.tagged_errors.max() <= 0
    assert everything.tagged_errors.min() < 0
    assert not sample_erm(NOISY, NOISY, 100, 500, np.random.default_rng(2)).tagged_errors.any()
    half = sample_erm(NOISY, NOISY, 100, 4000, np.random.default_rng(3), tag=0.5).tagged_errors
    mean = everything.tagged_errors.mean() / 2
    assert abs(half.mean() - mean) < QUANTILE * half.std() * math.sqrt(1 / 4000 + 1 / 500)


@pytest.mark.parametrize(("height", "left"), [(33, False), (34, True)])
def test_a_walk_is_left_where_it_hardly_returns(height: int, left: bool) -> None:
    """Margin 1/2 makes ((1 - 1/2)/(1 + 1/2))^h = 3^-h: 1.8e-16 and 6e-17 about the limit, 1e-16."""
    walks = _Walks.started(np.array([1000]))
    walks.height[0], walks.least[0] = height - 5, -5
    side = _Side(NOISY, 1)
    assert side._left(walks, np.array([0]), np.array([0.75]))[0] == left


def test_reproducible() -> None:
    one, two = (
        sample_erm(NOISY, NOISY, 1000, 50, np.random.default_rng(4)).on_target for _ in range(2)
    )
    assert (one == two).all()


def test_nothing_beyond_the_support() -> None:
    """One sample: a correct label leaves all thresholds on one side; the worst is at an end."""
    found = sample_erm(P, P, 1, 100, np.random.default_rng(6)).on_target
    assert (found == 0.5).all()
    assert (excess_at(P, np.array([-np.inf, np.inf])) == 0.5).all()


def test_bad_input() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="must have the same target"):
        sample_erm(P, of(uniform(0, 1), "1/3"), 5, 5, rng)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        sample_erm(P, P, 0, 5, rng)
    with pytest.raises(ValueError, match="replicas must be a whole number"):
        sample_erm(P, P, 5, 0, rng)
    with pytest.raises(ValueError, match="tag must be a probability"):
        sample_erm(P, P, 5, 5, rng, tag=2.0)
