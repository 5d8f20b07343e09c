"""Binomial probabilities in fractions, against the textbook sum."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.learnability import binomial
from fltheory.learnability.binomial import binomial_tail


def textbook(n: int, p: Fraction, k: int) -> Fraction:
    terms = (math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k))
    return sum(terms, Fraction(0))


@given(
    st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    st.fractions(Fraction(1, 30), Fraction(29, 30), max_denominator=30),
)
def test_tail_is_the_sum_of_its_terms(sizes: tuple[int, int], p: Fraction) -> None:
    n, k = sizes
    assert binomial_tail(n, p, k) == (textbook(n, p, k), textbook(n, p, k + 1))


@pytest.mark.parametrize("k", [31, 32, 33, 65, 127, 128, 129, 300, 513, 699])
@pytest.mark.parametrize("block", [40, 64, 2048])
def test_blocks_join_without_a_gap(k: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binomial, "_BLOCK", block)
    p = Fraction(7, 45)
    assert binomial_tail(700, p, k)[0] == textbook(700, p, k)


@pytest.mark.parametrize("k", [2048, 2200])
def test_several_long_blocks(k: int) -> None:
    """p = 2/5, in whole numbers over 5^n."""
    n = 4500
    below = sum(math.comb(n, j) * 2**j * 3 ** (n - j) for j in range(k))
    assert binomial_tail(n, Fraction(2, 5), k)[0] == Fraction(below, 5**n)


@pytest.mark.parametrize(("n", "k"), [(6, 2), (9, 3), (12, 4), (30, 10)])
def test_result_is_in_lowest_terms(n: int, k: int) -> None:
    """C(n - 1, k) may share factors with the denominator; p = 5/6 has two primes."""
    for value in binomial_tail(n, Fraction(5, 6), k):
        assert math.gcd(value.numerator, value.denominator) == 1
