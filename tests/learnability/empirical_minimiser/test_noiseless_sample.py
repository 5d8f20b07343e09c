"""Order statistics next to the target, against the exact law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fltheory.learnability import Source
from fltheory.learnability.empirical_minimiser import NoiselessLaw, sample_noiseless
from fltheory.learnability.populations import Marginal, as_population, uniform

HALF = Fraction(1, 2)
WHOLE = as_population(Source(uniform(0, 1), HALF))
GAP = as_population(Source(Marginal((0, Fraction(1, 4), Fraction(3, 4), 1), (HALF, 0, HALF)), HALF))


@pytest.mark.parametrize(
    "draws",
    [[(WHOLE, 1)], [(WHOLE, 30)], [(GAP, 5)], [(WHOLE, 3), (GAP, 40)]],
    ids=["one", "thirty", "gap", "both"],
)
def test_means_and_tails_are_those_of_the_law(draws) -> None:
    """Two comparisons at 7 standard errors: false alarms below 1e-11."""
    law = NoiselessLaw(WHOLE, draws)
    drawn = sample_noiseless(WHOLE, draws, 20_000, np.random.default_rng(0))
    error = drawn.std(ddof=1) / np.sqrt(drawn.size)
    assert abs(drawn.mean() - law.mean()) <= 7 * error
    level = Fraction(round(float(np.median(drawn)), 3)).limit_denominator(1000)
    chance = float(law.survival(level))
    spread = np.sqrt(max(chance * (1 - chance), 1 / drawn.size) / drawn.size)
    assert abs((drawn > float(level)).mean() - chance) <= 7 * spread


def test_ten_million_samples_cost_no_more() -> None:
    """P[eps > u] = 2 (1-u)^n - (1-2u)^n has the mean 2/(n+1) - 1/(2(n+1)), u up to 1/2."""
    drawn = sample_noiseless(WHOLE, [(WHOLE, 10**7)], 20_000, np.random.default_rng(0))
    error = drawn.std(ddof=1) / np.sqrt(drawn.size)
    assert abs(drawn.mean() - 1.5 / (10**7 + 1)) <= 7 * error


def test_without_samples_the_worst_threshold_is_at_the_end() -> None:
    drawn = sample_noiseless(WHOLE, [(WHOLE, 0)], 3, np.random.default_rng(0))
    assert drawn.tolist() == [0.5] * 3
