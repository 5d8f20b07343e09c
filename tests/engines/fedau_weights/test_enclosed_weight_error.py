"""Weight errors in balls, against all histories of Algorithm 2 in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, fmpq

from fltheory.engines.affine.numbers import Balls
from fltheory.engines.enclosure.exact_setting import exact_numbers
from fltheory.engines.fedau_weights import enclosed_weight_error
from fltheory.engines.fedau_weights.dependent_weight_error import weight_error_under
from fltheory.engines.fedau_weights.enclosed_weight_error import enclosed_weight_errors
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff
from tests.engines.fedau_weights.test_dependent_weight_error import over_all_histories
from tests.engines.fedau_weights.test_weight_error import over_all_paths, weights_of_algorithm_2
from tests.engines.fraction_runs import rational_weight_error

CUTOFFS = [1, 2, 3, 5, math.inf]


def _holds(found, expected) -> None:
    """Each fraction is in its ball, whose radius is next to nothing."""
    for ball, truth in zip(found, expected, strict=True):
        assert _contains(ball.value, truth)
        assert float(ball.value.rad()) < 1e-33


def _contains(ball: arb, truth: Fraction) -> bool:
    # FLINT asks for a ball about the fraction, which must be small itself.
    with Balls(1000).in_use():
        return bool(ball.contains(fmpq(truth.numerator, truth.denominator)))


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 5), Fraction(9, 10), Fraction(1)])
def test_independent_rounds(p: Fraction, cutoff: float) -> None:
    with Balls(128).in_use():
        twin = Bernoulli([float(p)]).in_numbers(exact_numbers)
        found = weight_error_under(twin, cutoff, 9).values[0]
        _holds(found, [over_all_paths(p, cutoff, t) for t in range(9)])


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("nu", [Fraction(-1, 4), Fraction(9, 10)])
@pytest.mark.parametrize("start", [None, 0, 1])
def test_chains(nu: Fraction, cutoff: float, start: int | None) -> None:
    p = Fraction(3, 10)
    chains = MarkovOnOff([float(p)], float(nu), start=None if start is None else [start])
    with Balls(128).in_use():
        found = weight_error_under(chains.in_numbers(exact_numbers), cutoff, 8).values[0]
        _holds(found, [over_all_histories(p, nu, cutoff, t, start) for t in range(8)])


def test_cycles() -> None:
    """A third of the rounds, cut off after two: fractions of the pseudo-code's own counters."""
    presence = (0, 1, 0, 0, 1, 0, 0, 1)
    twin = Cyclic([3], [2]).in_numbers(exact_numbers)
    found = weight_error_under(twin, 2, 9).values[0]
    expected = [
        (Fraction(1, 3) * weights_of_algorithm_2(presence[:t], 2) - 1) ** 2 for t in range(9)
    ]
    assert [Fraction(int(each.p), int(each.q)) for each in found] == expected


@pytest.mark.parametrize(("p", "cutoff"), [(Fraction(1, 10), 3), (Fraction(1, 2), 8)])
def test_what_is_left_out_is_in_the_radius(
    p: Fraction, cutoff: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With intervals left out that are not negligible, the fractions are held all the same.

    Fails if the probability of those is not added, times the largest square.
    """
    chance = fmpq(p.numerator, p.denominator)
    expected = rational_weight_error(p, cutoff, 40)
    widths = []
    for limit in (1e-30, 1e-2, 10.0, 300.0):
        monkeypatch.setattr(enclosed_weight_error, "_negligible", lambda limit=limit: arb(limit))
        with Balls(128).in_use():
            found = enclosed_weight_errors(*[chance] * 4, cutoff=cutoff, rounds=40)
        assert all(_contains(ball, truth) for ball, truth in zip(found, expected, strict=True))
        widths.append(float(found[-1].rad()))
    assert widths[0] < 1e-25 < 1e-4 < widths[-1]
