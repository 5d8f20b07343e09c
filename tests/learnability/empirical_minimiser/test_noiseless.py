"""The exact law without noise, against enumeration, closed forms and raw samples."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.learnability import Source
from fltheory.learnability.empirical_minimiser import NoiselessLaw
from fltheory.learnability.populations import Marginal, Population, as_population, mixture, uniform

HALF = Fraction(1, 2)
GAP = Marginal((0, "2/5", "3/5", 1), (HALF, 0, HALF))


def of(marginal: Marginal, target=HALF, **options) -> Population:
    return as_population(Source(marginal, target, **options))


P, D = of(uniform(0, 1)), of(GAP)


@given(st.integers(1, 30), st.fractions(0, HALF, max_denominator=60))
def test_uniform_law_in_closed_form(n: int, u: Fraction) -> None:
    """P[max(L, R) > u] = 2 (1 - u)^n - (1 - 2u)^n for u < 1/2."""
    expected = 2 * (1 - u) ** n - (1 - 2 * u) ** n if u < HALF else 0
    assert NoiselessLaw(P, [(P, n)]).survival(u) == expected


@pytest.mark.parametrize("n", [1, 7, 1000, 10**6])
def test_mean_in_closed_form(n: int) -> None:
    """2 (1 - 2^-(n+1))/(n+1) - 1/(2 (n+1)), the integral of the law."""
    expected = 2 * (1 - 2.0 ** -(n + 1)) / (n + 1) - 1 / (2 * (n + 1))
    assert NoiselessLaw(P, [(P, n)]).mean() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("counts", [(1, 1), (2, 1), (0, 2)])
def test_law_by_enumeration_of_cells(counts: tuple[int, int]) -> None:
    """All samples over ten cells; at levels that are cell ends only cells count."""
    ends = [Fraction(k, 10) for k in range(11)]
    draws = list(zip((P, D), counts, strict=True))
    parts = [part for part, count in draws for _ in range(count)]
    for level in (Fraction(1, 10), Fraction(1, 5), Fraction(2, 5)):
        total = Fraction(0)
        for cells in itertools.product(range(10), repeat=len(parts)):
            held = zip(parts, cells, strict=True)
            masses = (part.below(ends[c + 1]) - part.below(ends[c]) for part, c in held)
            chance = math.prod(masses, start=Fraction(1))
            left = any(HALF - level <= ends[c] < HALF for c in cells)
            right = any(HALF <= ends[c] < HALF + level for c in cells)
            total += chance * (not (left and right))
        assert NoiselessLaw(P, draws).survival(level) == total


def test_quantile_inverts_the_survival() -> None:
    law = NoiselessLaw(P, [(P, 40), (D, 100)])
    for delta in (0.5, 0.05, 1e-6):
        assert float(law.survival(law.quantile(delta))) == pytest.approx(delta, rel=1e-9)


def test_servers_samples_alone_count_in_the_clients_gap() -> None:
    """However many the clients' samples are, the threshold is inside the gap, and no better."""
    alone = NoiselessLaw(P, [(P, 20)])
    together = NoiselessLaw(P, [(P, 20), (D, 10**4)])
    for level in (Fraction(1, 100), Fraction(1, 20), Fraction(99, 1000)):
        assert alone.survival(level) == pytest.approx(float(together.survival(level)), rel=1e-12)
    beyond = Fraction(11, 100)
    assert float(together.survival(beyond)) < 1e-40 < float(alone.survival(beyond))


def test_law_of_raw_samples(rng: np.random.Generator) -> None:
    """4,000 samples of 12 points; a share is off by 0.06 with probability below 1e-12."""
    q = mixture(D, P, "1/4")
    law = NoiselessLaw(P, [(q, 12)])
    points = q.marginal.draw(rng, (4000, 12))
    left = np.where(points < 0.5, 0.5 - points, np.inf).min(axis=1)
    right = np.where(points >= 0.5, points - 0.5, np.inf).min(axis=1)
    worst = np.maximum(np.minimum(left, 0.5), np.minimum(right, 0.5))
    for level in (0.03, 0.09, 0.15, 0.3):
        assert (worst > level).mean() == pytest.approx(float(law.survival(level)), abs=0.06)


def test_bad_input() -> None:
    noisy = of(uniform(0, 1), scale=HALF)
    with pytest.raises(ValueError, match="must be without noise"):
        NoiselessLaw(P, [(noisy, 3)])
    with pytest.raises(ValueError, match="must have the same target"):
        NoiselessLaw(P, [(of(uniform(0, 1), target="1/3"), 3)])
    with pytest.raises(ValueError, match="draws must not be empty"):
        NoiselessLaw(P, [])
    with pytest.raises(ValueError, match="draws must be a whole number of at least 0, got -1"):
        NoiselessLaw(P, [(P, -1)])
    with pytest.raises(ValueError, match=r"delta must be inside \(0, 1\)"):
        NoiselessLaw(P, [(P, 1)]).quantile(0)
