"""Counts of inactive rounds and exact chances of long absences."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from fltheory.engines.affine.numbers import Balls
from fltheory.engines.enclosure.exact_setting import exact_numbers
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset
from fltheory.participation.inactivity import chance_of_longer_absence, inactive_rounds


def enumerated(start, come, stay, limits) -> Fraction:
    """Sum the probabilities of all on-off paths of one client that pass a limit."""
    total = Fraction(0)
    for path in product((0, 1), repeat=len(limits)):
        chance = start if path[0] else 1 - start
        for before, now in pairwise(path):
            there = stay if before else come
            chance *= there if now else 1 - there
        tau, failed = 0, False
        for present, limit in zip(path, limits, strict=True):
            tau = 0 if present else tau + 1
            failed = failed or tau > limit
        total += chance if failed else 0
    return total


@given(st.integers(1, 9), st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_bernoulli_against_every_path(tenths: int, limits: list[int]) -> None:
    p = Fraction(tenths, 10)
    one = enumerated(p, p, p, limits)
    both = 1 - (1 - one) ** 2
    chance = chance_of_longer_absence(Bernoulli([tenths / 10] * 2), limits, len(limits))
    assert chance == pytest.approx(float(both), rel=1e-12)


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 3), st.integers(1, 8))
def test_markov_against_every_path(tenths: int, correlation: int, limit: int, rounds: int) -> None:
    pi, nu = Fraction(tenths, 10), Fraction(correlation, 10)
    stay, come = nu + (1 - nu) * pi, (1 - nu) * pi
    expected = enumerated(pi, come, stay, [limit] * rounds)
    chain = MarkovOnOff([tenths / 10], correlation / 10)
    assert chance_of_longer_absence(chain, limit, rounds) == pytest.approx(
        float(expected), rel=1e-12
    )


def test_a_given_start_counts() -> None:
    chain = MarkovOnOff([0.5, 0.5], 0.0, start=[1.0, 0.0])
    assert chance_of_longer_absence(chain, 0, 1) == 1.0
    assert chance_of_longer_absence(chain, 1, 2) == 0.5


def test_a_known_path_passes_or_not() -> None:
    cycle = Cyclic([4, 4], [0, 2])
    assert chance_of_longer_absence(cycle, 3, 100) == 0.0
    assert chance_of_longer_absence(cycle, 2, 100) == 1.0
    assert chance_of_longer_absence(cycle, np.inf, 100) == 0.0


def test_a_bound_that_grows_can_hold_for_ever() -> None:
    """Constant bounds fail in the end; with 20 + t/2 the chance stays where it is."""
    clients = Bernoulli([0.5] * 10)
    constant = [chance_of_longer_absence(clients, 10, rounds) for rounds in (100, 10_000)]
    assert constant[0] < 0.5 < 0.99 < constant[1]
    growing = [
        chance_of_longer_absence(clients, 20 + np.arange(1, rounds + 1) / 2, rounds)
        for rounds in (100, 2000)
    ]
    assert growing[1] == pytest.approx(growing[0], rel=1e-6)
    assert growing[1] < 1e-4


def test_small_chances_keep_their_digits() -> None:
    """One run of 60 heads in 60 rounds: 2^-60, far below float64's spacing at one."""
    assert chance_of_longer_absence(Bernoulli([0.5]), 59, 60) == pytest.approx(2.0**-60)


def test_counts_go_up_and_back_to_zero() -> None:
    masks = np.array([[0, 1], [0, 0], [1, 0], [0, 1]], dtype=bool)
    assert inactive_rounds(masks).tolist() == [[1, 0], [2, 1], [0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("participation", "limits", "message"),
    [
        (UniformSubset(3, 1), 2, "participation must be Bernoulli, MarkovOnOff or known"),
        (Bernoulli([0.5]), [1, 2], r"limits must have shape \(\) or \(3,\), got \(2,\)"),
        (Bernoulli([0.5]), -1, "limits must be at least 0, got -1"),
        (Bernoulli([0.5]), np.nan, "limits must be at least 0, got nan"),
    ],
)
def test_bad_arguments(participation, limits, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chance_of_longer_absence(participation, limits, 3)


@given(
    st.integers(1, 9),
    st.integers(-1, 9),
    st.lists(st.integers(0, 4), min_size=1, max_size=7),
)
def test_exact_chances_hold_every_path(tenths: int, nu: int, limits: list[int]) -> None:
    """Two clients alike, in balls; limits that fall and rise again among them."""
    p, correlation = Fraction(tenths, 10), Fraction(nu, 100)
    come, stay = (1 - correlation) * p, correlation + (1 - correlation) * p
    both = 1 - (1 - enumerated(p, come, stay, limits)) ** 2
    with Balls(128).in_use():
        twin = MarkovOnOff([tenths / 10] * 2, nu / 100).in_numbers(exact_numbers)
        chance = chance_of_longer_absence(twin, limits, len(limits))
    with Balls(1000).in_use():
        assert chance.value.contains(fmpq(both.numerator, both.denominator))
        assert float(chance.value.rad()) < 1e-35
