"""A(m, delta), as printed and as cited."""

from __future__ import annotations

import math

import pytest

from fltheory.learnability import Source
from fltheory.learnability.complexity import cited_complexity, printed_complexity
from fltheory.learnability.empirical_minimiser import NoiselessLaw
from fltheory.learnability.populations import as_population, uniform


def test_values_by_hand() -> None:
    """m = 10, d = 2, delta = exp(-5): 2/10 log(5 + 1/2), and 2/10 log 5 + 1/2."""
    delta = math.exp(-5)
    assert printed_complexity(10, delta, 2) == pytest.approx(0.2 * math.log(5.5), rel=1e-12)
    assert cited_complexity(10, delta, 2) == pytest.approx(0.2 * math.log(5) + 0.5, rel=1e-12)


def test_printed_is_negative_for_few_samples() -> None:
    """d = 10 and m = 2: 5 log(1/5 + log(2)/2) < 0, under a square root in (16)."""
    assert printed_complexity(2, 0.5, 10) < 0
    assert cited_complexity(2, 0.5, 10) == pytest.approx(math.log(2) / 2)


def test_no_constant_saves_the_printed_form() -> None:
    """At delta = exp(-m) the quantile of the exact law stays at 1/2, A goes to zero as log(m)/m."""
    p = as_population(Source(uniform(0, 1), "1/2"))
    ratios, cited = [], []
    for m in (10, 100, 500):
        quantile = NoiselessLaw(p, [(p, m)]).quantile(math.exp(-0.5 * m))
        ratios.append(quantile / printed_complexity(m, math.exp(-0.5 * m)))
        cited.append(quantile / cited_complexity(m, math.exp(-0.5 * m)))
    assert ratios[1] > 4 * ratios[0]
    assert ratios[2] > 3 * ratios[1]
    assert max(cited) < 1


@pytest.mark.parametrize("complexity", [printed_complexity, cited_complexity])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.1), "m must be a whole number of at least 1"),
        ((5, 0.1, 0), "d must be a whole number of at least 1"),
        ((5, 0.0), r"delta must be inside \(0, 1\), got 0.0"),
        ((5, 1.0), r"delta must be inside \(0, 1\), got 1.0"),
    ],
)
def test_bad_input(complexity, arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        complexity(*arguments)
