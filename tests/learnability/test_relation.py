"""Assumptions 1 and 2, against closed forms and a fine grid of thresholds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fltheory.learnability import Source
from fltheory.learnability.populations import (
    Marginal,
    Population,
    as_population,
    excess_at,
    mixture,
    uniform,
)
from fltheory.learnability.relation import alpha_bounds, bernstein_constant, relate

HALF = Fraction(1, 2)
GAP = Marginal((0, "2/5", "3/5", 1), (HALF, 0, HALF))


def of(marginal: Marginal, target=HALF, **options) -> Population:
    return as_population(Source(marginal, target, **options))


UNIFORM, MISSING = of(uniform(0, 1)), of(GAP)
NOISY = of(uniform(0, 1), beta=HALF, scale=2)
NOISIER = of(uniform(0, 1), beta=Fraction(1, 3), scale=4)


@settings(max_examples=20)
@given(st.fractions("1/50", "49/50", max_denominator=50))
def test_mixtures_with_one_target_have_beta_one_and_known_alpha(share: Fraction) -> None:
    """eps_Q >= lambda_2 eps_P, with equality in the gap: alpha = max(1/lambda_2 - 1, beyond it).

    At the ends eps_P = eps_D = 1/2, so the ratio is 0 there; in the gap it is 1/lambda_2 - 1.
    """
    trained = mixture(MISSING, UNIFORM, share)
    found = alpha_bounds(UNIFORM, trained, 1)
    assert relate(UNIFORM, trained).beta == 1
    assert found.at_least == found.at_most == 1 / share - 1
    assert found.where in (Fraction(2, 5), Fraction(3, 5))


def test_alpha_of_the_papers_example() -> None:
    """Q in the middle half of P: alpha = 1 - (b' - a')/(b - a) = 1/2, also beyond Q's ends here."""
    found = alpha_bounds(UNIFORM, of(uniform("1/4", "3/4")), 1)
    assert found.at_least == found.at_most == HALF


@pytest.mark.parametrize(
    ("trained", "broken_at"),
    [
        (of(uniform(0, HALF)), Fraction(1)),
        (MISSING, Fraction(3, 5)),
        (of(uniform(0, 1), target="3/5"), Fraction(3, 5)),
    ],
)
def test_failures_come_with_a_threshold(trained: Population, broken_at: Fraction) -> None:
    found = relate(UNIFORM, trained)
    assert (found.holds, found.beta, found.broken_at) == (False, 0, broken_at)
    assert trained.excess(broken_at) == 0 < UNIFORM.excess(broken_at)
    with pytest.raises(ValueError, match="beta must be above 0 and at most 0, got 1"):
        alpha_bounds(UNIFORM, trained, 1)


@pytest.mark.parametrize(
    ("target", "trained", "beta"),
    [
        (UNIFORM, NOISY, HALF),
        (UNIFORM, NOISIER, Fraction(1, 3)),
        (NOISY, NOISIER, Fraction(2, 3)),
        (NOISY, UNIFORM, 1),
        (NOISY, NOISY, math.inf),
        (NOISY, of(uniform(0, 1), beta=HALF, scale=1), 1),
    ],
)
def test_largest_beta(target: Population, trained: Population, beta: float) -> None:
    """Powers r^(1/beta_P) and r^(1/beta_Q): beta_Q/beta_P, at most 1, infinite if they are one."""
    assert relate(target, trained).beta == beta


@pytest.mark.parametrize(
    ("target", "trained", "beta"),
    [
        (UNIFORM, NOISY, HALF),
        (UNIFORM, NOISY, Fraction(1, 4)),
        (NOISY, NOISIER, Fraction(2, 3)),
        (NOISY, UNIFORM, 1),
        (NOISY, mixture(of(GAP, beta=HALF, scale=2), NOISY, "1/10"), 1),
        (UNIFORM, mixture(MISSING, UNIFORM, "1/3"), HALF),
    ],
)
def test_alpha_is_enclosed_on_the_whole_class(
    target: Population, trained: Population, beta: Fraction
) -> None:
    found = alpha_bounds(target, trained, beta)
    grid = np.linspace(-0.1, 1.1, 4801)
    on_p, on_q = excess_at(target, grid), excess_at(trained, grid)
    inside = on_q > 1e-12
    needed = (np.abs(on_p - on_q)[inside] / on_q[inside] ** float(beta)).max()
    assert needed <= float(found.at_most) * (1 + 1e-9)
    assert float(found.at_least) <= float(found.at_most)
    assert float(found.at_most) <= 1.1 * needed


def test_beta_above_the_largest_is_refused() -> None:
    """eps_P/eps_Q^beta is r^(1 - 2 beta) near the target."""
    with pytest.raises(ValueError, match="at most 1/2, got 3/4"):
        alpha_bounds(UNIFORM, NOISY, "3/4")


def test_bernstein_constants() -> None:
    """P(h != h*) = r; excess r c without power, r^2 for scale 2 and beta 1/2."""
    assert bernstein_constant(UNIFORM, 1) == 1
    assert bernstein_constant(of(uniform(0, 1), scale="1/2"), 1) == 2
    assert bernstein_constant(NOISY, HALF) == pytest.approx(1, rel=0.05)
    assert bernstein_constant(NOISY, HALF) >= 1
    assert bernstein_constant(NOISY, "3/4") == math.inf
    assert bernstein_constant(of(uniform(0, 1), target="3/5"), 1) == 1


def test_bernstein_constant_across_a_gap() -> None:
    """Mass starts at distance 1/10, with margin 1/5 there: r'/(margin r')^(1/2) stays finite."""
    gap = of(GAP, beta=HALF, scale=2)
    found = bernstein_constant(gap, HALF)
    grid = np.linspace(0, 1, 2001)
    apart = np.array([float(gap.disagreement(float(t))) for t in grid])
    excess = excess_at(gap, grid)
    needed = (apart[apart > 0] / excess[apart > 0] ** 0.5).max()
    assert needed * (1 - 1e-9) <= found <= 1.3 * needed


def test_two_targets() -> None:
    """Constant margins: a majority of 2/3 leaves a net margin of 1/3 between the targets."""
    parts = [Source(uniform(0, 1), "1/4"), Source(uniform(0, 1), "3/4")]
    assert bernstein_constant(Population(parts, ["2/3", "1/3"]), 1) == pytest.approx(3)
    assert bernstein_constant(Population(parts), 1) == math.inf
    noisy = [Source(uniform(0, 1), t, beta=HALF, scale=1) for t in ("1/4", "3/4")]
    with pytest.raises(ValueError, match="the same target in all its sources"):
        bernstein_constant(Population(noisy), HALF)
