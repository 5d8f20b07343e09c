"""Excess errors in closed form, against integration by hand and by scipy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from fltheory.learnability import Source
from fltheory.learnability.populations import Marginal, Population, as_population, mixture, uniform

HALF = Fraction(1, 2)
STEPS = Marginal((0, "1/4", "1/2", 1), ("1/2", "1/8", "3/8"))
places = st.fractions(-1, 2, max_denominator=40)


def integrated(source: Source, threshold: float) -> float:
    """Integrate density times margin between target and threshold."""
    edges = np.array(source.marginal.edges, dtype=float)
    densities = [float(d) for d in source.marginal.densities]

    def integrand(x: float) -> float:
        piece = int(np.searchsorted(edges, x, side="right")) - 1
        inside = 0 <= piece < len(densities)
        distance = abs(x - float(source.target))
        margin = float(source.scale) * distance ** float(source.kappa)
        return densities[piece] * margin if inside else 0.0

    low, high = sorted((float(source.target), threshold))
    points = [edge for edge in edges if low < edge < high]
    return quad(integrand, low, high, points=points or None, epsabs=1e-11)[0]


@settings(max_examples=40)
@given(places, st.sampled_from(["1", "1/2", "1/3", "2/5"]))
def test_excess_is_the_integral_of_the_margin(threshold: Fraction, beta: str) -> None:
    source = Source(STEPS, "3/8", beta=beta, scale=HALF)
    assert float(source.excess(threshold)) == pytest.approx(
        integrated(source, float(threshold)), abs=1e-9
    )


def test_the_papers_closed_form() -> None:
    """|t - t*|/(b - a) inside the support, and no more beyond."""
    source = Source(uniform(1, 5), 2)
    assert [source.excess(t) for t in (1, 2, 3, 5, 7, 0)] == [
        Fraction(1, 4),
        0,
        Fraction(1, 4),
        Fraction(3, 4),
        Fraction(3, 4),
        Fraction(1, 4),
    ]


@pytest.mark.parametrize(("beta", "kappa"), [(1, 0), (HALF, 1), (Fraction(1, 3), 2)])
def test_bernstein_exponent(beta: Fraction, kappa: int) -> None:
    """P(h_t != h*) = r and excess = scale r^(kappa + 1)/(kappa + 1), exactly."""
    source = Source(uniform(0, 1), HALF, beta=beta, scale=1)
    for r in (Fraction(1, 2), Fraction(1, 7), Fraction(1, 100)):
        assert source.disagreement(HALF + r) == r
        assert source.excess(HALF - r) == r ** (kappa + 1) / (kappa + 1)


@settings(max_examples=25)
@given(places)
def test_mixture_is_the_weighted_sum(threshold: Fraction) -> None:
    one, two = Source(STEPS, HALF), Source(uniform(0, 2), HALF, beta=HALF, scale="1/2")
    mixed = mixture(one, two, "1/4")
    expected = Fraction(3, 4) * one.excess(threshold) + Fraction(1, 4) * two.excess(threshold)
    assert mixed.excess(threshold) == expected
    assert mixed.best == HALF
    low = Fraction(3, 4) * one.marginal.below(threshold)
    assert mixed.below(threshold) == low + two.marginal.below(threshold) / 4


def test_weight_zero_is_absent() -> None:
    mixed = mixture(Source(uniform(0, 1), HALF), Source(uniform(5, 6), 5), 0)
    assert mixed.targets == (HALF,)
    assert mixed.places == (0, HALF, 1)


def test_best_threshold_between_two_targets_goes_with_the_majority() -> None:
    """With constant margins the risk between the targets is linear."""
    one, two = Source(uniform(0, 1), "1/4"), Source(uniform(0, 1), "3/4")
    assert Population([one, two], ["2/3", "1/3"]).best == Fraction(1, 4)
    assert Population([one, two], ["1/3", "2/3"]).best == Fraction(3, 4)
    assert Population([one, two], ["1/3", "2/3"]).excess("1/4") == Fraction(1, 6)


def test_best_threshold_with_noise_balances_the_margins() -> None:
    """Margins |t - 1/4| and |3/4 - t| weighed 2 to 1 are equal at 5/12."""
    parts = [Source(uniform(0, 1), t, beta=HALF, scale=1) for t in ("1/4", "3/4")]
    mixed = Population(parts, ["2/3", "1/3"])
    assert float(mixed.best) == pytest.approx(5 / 12, abs=1e-12)
    grid = np.linspace(0, 1, 101)
    assert min(float(mixed.excess(float(t))) for t in grid) >= 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": 0}, r"beta must be in \(0, 1\], got 0"),
        ({"beta": "3/2"}, r"beta must be in \(0, 1\], got 3/2"),
        ({"scale": 0}, "scale must be above 0"),
        ({"scale": 2}, "scale must be above 0 and such that the margin .* at most 1"),
        ({"beta": "1/2", "scale": 3}, "up to the distance 1/2, got 3"),
        ({"target": "nan"}, "target must be made of finite numbers"),
    ],
)
def test_bad_sources(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Source(uniform(0, 1), **{"target": HALF, **changes})


def test_bad_mixtures() -> None:
    source = Source(uniform(0, 1), HALF)
    with pytest.raises(ValueError, match="sources must not be empty, got none"):
        Population([])
    with pytest.raises(ValueError, match="weights must be 1 numbers"):
        Population([source], [1, 0])
    with pytest.raises(ValueError, match=r"server_share must be in \[0, 1\], got 2"):
        mixture(source, as_population(source), 2)
