"""FedAU's weight error against all paths of its Algorithm 2, and against closed forms."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fltheory.engines.fedau_weights.dependent_weight_error import (
    cyclic_weights,
    weight_error_under,
)
from fltheory.engines.fedau_weights.weight_error import (
    _MARGIN,
    _counts_kept,
    interval_moments,
    weight_error,
)
from fltheory.participation import Cyclic, MarkovOnOff
from tests.engines.fraction_runs import rational_weight_error

CUTOFFS = [1, 2, 3, 5, math.inf]
PROBABILITIES = [Fraction(1, 2), Fraction(1, 5), Fraction(9, 10), Fraction(1)]


def weights_of_algorithm_2(presence: tuple[int, ...], cutoff: float) -> Fraction:
    """omega after these rounds, by the pseudo-code's own counters."""
    intervals, lasted, omega = 0, 0, Fraction(1)
    for present in presence:
        lasted += 1
        if present or lasted == cutoff:
            omega = (intervals * omega + lasted) / (intervals + 1)
            intervals, lasted = intervals + 1, 0
    return omega


def over_all_paths(p: Fraction, cutoff: float, t: int) -> Fraction:
    total = Fraction(0)
    for presence in product((0, 1), repeat=t):
        probability = p ** sum(presence) * (1 - p) ** (t - sum(presence))
        total += probability * (p * weights_of_algorithm_2(presence, cutoff) - 1) ** 2
    return total


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("p", PROBABILITIES)
def test_both_recursions_agree_with_all_paths(p: Fraction, cutoff: float) -> None:
    expected = [over_all_paths(p, cutoff, t) for t in range(9)]
    assert list(rational_weight_error(p, cutoff, 9)) == expected
    found = weight_error(float(p), cutoff, 9)
    difference = np.abs(found.values - np.array([float(value) for value in expected]))
    assert (difference <= found.error).all()
    assert found.error.max() < 1e-11


def test_always_present_or_cut_at_once_the_weight_is_one() -> None:
    assert weight_error(1.0, 7, 50).values == pytest.approx(np.zeros(50), abs=1e-15)
    assert weight_error(0.3, 1, 50).values == pytest.approx(np.full(50, 0.49), rel=1e-13)


def test_without_cutoff_after_two_rounds() -> None:
    """Presence 11 and 10 give 1, 01 gives 2, 00 gives the initial 1."""
    p = 0.3
    expected = (1 - (1 - p) * p) * (p - 1) ** 2 + (1 - p) * p * (2 * p - 1) ** 2
    assert weight_error(p, math.inf, 3).values[2] == pytest.approx(expected, rel=1e-14)


def test_a_late_error_is_the_cut_laws_bias() -> None:
    """As t grows omega tends to E S, and p E S - 1 = -(1-p)^K."""
    found = weight_error(0.2, 5, 20_000)
    variance = interval_moments(0.2, 5)[1]
    mean = interval_moments(0.2, 5)[0]
    intervals = 19_999 / mean
    expected = 0.8**10 + 0.04 * variance / intervals
    assert found.values[-1] == pytest.approx(expected, rel=1e-2)
    assert found.values[-1] - 0.8**10 < 1e-4
    assert found.error.max() < 1e-9


def test_many_rounds_stay_within_the_stated_error() -> None:
    """Leaving out unlikely numbers of intervals costs less than the bound says."""
    exact = weight_error(0.1, 10, 3000)
    assert exact.error.max() < 1e-9
    short = rational_weight_error(Fraction(1, 10), 10, 40)
    np.testing.assert_allclose(exact.values[:40], [float(v) for v in short], rtol=1e-12)


@pytest.mark.parametrize("p", [0.05, 0.5, 0.95])
def test_counts_are_kept_within_nine_standard_deviations_of_a_binomial(p: float) -> None:
    """Without a cut-off an interval ends in a round with probability p, whatever came before."""
    rounds = 10_000
    fewest, most = _counts_kept(1 / p, (1 - p) / p**2, math.inf, rounds)
    reach = 9 * math.sqrt(rounds * p * (1 - p))
    assert fewest == max(1, math.floor(rounds * p - reach - _MARGIN))
    assert most == min(rounds, math.ceil(rounds * p + reach + _MARGIN))


def test_several_clients_at_once() -> None:
    together = weight_error([0.2, 0.7], 4, 30)
    assert together.values.shape == together.error.shape == (2, 30)
    for row, p in zip(together.values, (0.2, 0.7), strict=True):
        np.testing.assert_array_equal(row, weight_error(p, 4, 30).values)


@given(
    st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20),
    st.integers(1, 6),
    st.integers(1, 14),
)
def test_recursions_agree_anywhere(p: Fraction, cutoff: int, rounds: int) -> None:
    exact = [float(value) for value in rational_weight_error(p, cutoff, rounds)]
    found = weight_error(float(p), cutoff, rounds)
    assert (np.abs(found.values - exact) <= found.error).all()


@pytest.mark.parametrize("cutoff", [1, 2, 3, 6])
def test_moments_of_the_cut_law_symbolically(cutoff: int) -> None:
    """From the law itself: p (1-p)^(k-1) for k < K, and what is left at K."""
    p = sp.Symbol("p", positive=True)
    law = {k: p * (1 - p) ** (k - 1) for k in range(1, cutoff)}
    law[cutoff] = (1 - p) ** (cutoff - 1)
    mean = sum(k * mass for k, mass in law.items())
    variance = sum(k**2 * mass for k, mass in law.items()) - mean**2
    printed_mean = (1 - (1 - p) ** cutoff) / p
    printed_variance = (
        (1 - p) / p**2 - (2 * cutoff - 1) * (1 - p) ** cutoff / p - (1 - p) ** (2 * cutoff) / p**2
    )
    assert sp.simplify(mean - printed_mean) == 0
    assert sp.simplify(variance - printed_variance) == 0
    for value in (0.05, 0.5, 0.95):
        found = interval_moments(value, cutoff)
        assert found[0] == pytest.approx(float(mean.subs(p, value)), rel=1e-12)
        assert found[1] == pytest.approx(float(variance.subs(p, value)), rel=1e-9, abs=1e-12)


def test_moments_of_the_cut_law_for_every_cutoff_symbolically() -> None:
    """By induction in K: a longer cut-off adds P(S > K) to E S, (2K+1) P(S > K) to E S^2."""
    p, K = sp.symbols("p K", positive=True)
    q = 1 - p
    mean = (1 - q**K) / p
    variance = q / p**2 - (2 * K - 1) * q**K / p - q ** (2 * K) / p**2
    square = variance + mean**2

    def vanishes(expression: sp.Expr) -> bool:
        powers = sp.expand(sp.expand_power_exp(sp.expand(expression * p**2)))
        return sp.simplify(powers) == 0

    assert vanishes(mean.subs(K, K + 1) - mean - q**K)
    assert vanishes(square.subs(K, K + 1) - square - (2 * K + 1) * q**K)
    assert sp.simplify(mean.subs(K, 1) - 1) == 0
    assert sp.simplify(square.subs(K, 1) - 1) == 0


def proof_step(p: Fraction, cutoff: int, t: int) -> Fraction:
    """``p^2 Var S / max(floor(t/K), 1) + (1-p)^(2K)``, as if there were so many intervals."""
    q = 1 - p
    variance = q / p**2 - (2 * cutoff - 1) * q**cutoff / p - q ** (2 * cutoff) / p**2
    return p**2 * variance / max(t // cutoff, 1) + q ** (2 * cutoff)


def test_the_proofs_intermediate_step_fails_before_the_first_interval_ends() -> None:
    """p = 1/2, K = 2: omega_1 = 1 always, so the error is 1/4; the step says 1/8.

    The number of intervals is random, and may be zero while t < K. From t = K on the step is true:
    docs/fedau.md.
    """
    p = Fraction(1, 2)
    assert over_all_paths(p, 2, 1) == Fraction(1, 4)
    assert proof_step(p, 2, 1) == Fraction(1, 8)
    for p, cutoff in product((Fraction(1, 50), Fraction(1, 5), Fraction(1, 2)), (2, 3, 5)):
        errors = rational_weight_error(p, cutoff, 25)
        for t in range(cutoff, 25):
            assert errors[t] <= proof_step(p, cutoff, t)


@pytest.mark.parametrize("p", [0.001, 0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("cutoff", [1, 3, 10, 50])
def test_the_explicit_bound_of_theorem_3_holds_here(p: float, cutoff: int) -> None:
    """``2K(1-p)/t + (1-p)^(2K)`` in every round, the proof's last line."""
    found = weight_error(p, cutoff, 1500)
    t = np.arange(1, 1500)
    bound = 2 * cutoff * (1 - p) / t + (1 - p) ** (2 * cutoff)
    assert (found.values[1:] - found.error[1:] <= bound).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 5, 10), r"p must be in \(0, 1\], got 0 for client 0"),
        (([0.5, 1.5], 5, 10), r"p must be in \(0, 1\], got 1.5 for client 1"),
        (([[0.5]], 5, 10), "p must be a number or an array"),
        ((0.5, 0, 10), "cutoff must be a whole number of at least 1"),
        ((0.5, 2.5, 10), "cutoff must be a whole number of at least 1"),
        ((0.5, 5, 0), "rounds must be a whole number of at least 1"),
    ],
)
def test_bad_arguments(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weight_error(*arguments)


def test_one_round_and_a_cutoff_of_one_are_the_least() -> None:
    """In the first round the weight is 1: (p - 1)^2."""
    assert weight_error(0.25, 1, 1).values.ravel().tolist() == [0.5625]
    assert rational_weight_error(Fraction(1, 4), 1, 1) == (Fraction(9, 16),)
    chain = MarkovOnOff([0.25], 0.5)
    assert weight_error_under(chain, 1, 1).values.ravel().tolist() == [0.5625]
    assert cyclic_weights(Cyclic([2], [0]), 1, 1).tolist() == [[1.0]]
    for cutoff, rounds, name in ((0, 1, "cutoff"), (1, 0, "rounds")):
        with pytest.raises(ValueError, match=f"{name} must be .* at least 1, got 0"):
            weight_error(0.25, cutoff, rounds)
        with pytest.raises(ValueError, match=f"{name} must be .* at least 1, got 0"):
            weight_error_under(chain, cutoff, rounds)
    with pytest.raises(ValueError, match=r"rounds must be .* at least 1, got 0"):
        cyclic_weights(Cyclic([2], [0]), 1, 0)
