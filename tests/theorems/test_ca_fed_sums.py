"""Sums over step sizes, against direct summation and closed forms."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, fmpq
from scipy.special import polygamma, zeta

from fltheory.algorithms import Constant, Harmonic
from fltheory.engines.affine.numbers import Balls, with_parameters
from fltheory.engines.enclosure.exact_setting import WIDENING, NoExactTwinError
from fltheory.numbers.step_sums import (
    delays,
    endless_squares,
    endless_sums,
    finite_sums,
    inverse_squares,
)
from fltheory.participation.chain_structure import Mixing

STEPS = Harmonic(0.5, offset=4.0)


def test_without_delay_the_sums_are_known() -> None:
    """With 2 C_P H t below one for every t that counts, J_t is zero."""
    still = Mixing(0.0, 0.5, 1e-9, 0)
    sums, squares = endless_sums(STEPS, still, 1.0), endless_squares(STEPS)
    assert squares == pytest.approx(0.25 * float(polygamma(1, 5.0)), rel=1e-12)
    assert sums.delayed == pytest.approx(squares, rel=1e-9)
    plain = endless_sums(Harmonic(1.0, offset=1e-9), still, 1.0)
    step = 1e-4
    derivative = (float(zeta(2 + step)) - float(zeta(2 - step))) / (2 * step)
    assert plain.delayed_logs == pytest.approx(-derivative, rel=1e-6)


@pytest.mark.parametrize("rate", [0.5, 0.95, 0.995])
def test_delayed_sums_against_ten_times_as_many_terms(rate: float) -> None:
    sums = endless_sums(STEPS, Mixing(2 * rate - 1, rate, 2.0, 0), 30.0)
    t = np.arange(1.0, 5_000_001)
    delay = np.minimum(np.ceil(np.log(120 * t) / math.log(1 / rate)), t)
    terms = (0.5 / (t - delay + 4.0)) ** 2
    rest = 0.25 / (t[-1] - delay[-1])
    assert sums.delayed == pytest.approx(terms.sum() + rest, rel=1e-7)
    logs = float(np.log(t) @ terms) + rest * (math.log(t[-1]) + 1)
    assert sums.delayed_logs == pytest.approx(logs, rel=1e-6)


def test_endless_sums_that_have_no_limit() -> None:
    mixing = Mixing(0.0, 0.5, 1.0, 0)
    for steps in (Constant(0.1), Harmonic(0.1)):
        assert endless_sums(steps, mixing, 1.0).delayed == math.inf


def test_a_chain_that_hardly_mixes_is_refused() -> None:
    with pytest.raises(
        ValueError, match="participation must mix faster for infinite sums, got a rate of"
    ):
        endless_sums(STEPS, Mixing(0.99999, 0.999995, 2.0, 0), 30.0)


def test_finite_sums_by_hand() -> None:
    """rate 1/2, C_P = 1, H = 1: J_t = 1, 2, 3, 3 before it is cut to t - 1."""
    sums = finite_sums(Constant(0.1), Mixing(0.0, 0.5, 1.0, 0), 1.0, 4)
    assert sums.steps == pytest.approx(0.4)
    assert sums.squares == pytest.approx(0.04)
    assert sums.delays == pytest.approx((0 + 1 + 2 + 3) * 0.01)
    assert sums.unmixed == pytest.approx(0.1 / 8)


def test_onset_delays() -> None:
    sums = finite_sums(Constant(0.1), Mixing(0.0, 0.5, 1.0, 3), 1.0, 5)
    assert sums.delays == pytest.approx((0 + 1 + 2 + 3 + 4) * 0.01)


def _exact(*values: float) -> list[Any]:
    return [WIDENING.parameter(value) for value in values]


def _by_blocks(rate: mpmath.mpf, scale: int, offset: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Sum ``1/(t - J_t + offset)^2``, and ln(t) times it, block by block, with Hurwitz's zeta."""
    squares = logs = mpmath.mpf(0)
    before, delay = 0, 0
    while before < 10**10:
        last = max(before, int(mpmath.floor(rate**-delay / scale)))
        near = range(before + 1, min(last, 3000) + 1)
        for t in near:
            term = mpmath.mpf(1) / (t - min(delay, t) + offset) ** 2
            squares, logs = squares + term, logs + mpmath.log(t) * term
        a, c = max(before, 3000) + 1, delay - offset
        if last >= a:
            squares += mpmath.zeta(2, a - c) - mpmath.zeta(2, last + 1 - c)
            # sum ln(t)/(t-c)^2 with ln(t) = ln(t-c) + ln(1 + c/(t-c)) expanded: the first part is
            # a derivative of zeta, and so are the others.
            logs += mpmath.zeta(2, last + 1 - c, 1) - mpmath.zeta(2, a - c, 1)
            for k in range(1, 16):
                series = mpmath.zeta(2 + k, a - c) - mpmath.zeta(2 + k, last + 1 - c)
                logs -= mpmath.mpf(-c) ** k / k * series
        before, delay = last, delay + 1
    rest = 1 / (mpmath.mpf(before) - delay)
    return squares + rest, logs + rest * (mpmath.log(before) + 1)


@pytest.mark.parametrize("rate", ["0.5", "0.9"])
def test_delayed_sums_are_enclosed(rate: str) -> None:
    """With 120 t for 2 C_P H t, against Hurwitz's zeta with 40 digits.

    Fails if a block begins a round later, if either end of a block's or of the tail's sum is moved
    to the middle, or if the tail is left out.
    """
    with mpmath.workdps(40):
        oracle = [mpmath.nstr(each, 35) for each in _by_blocks(mpmath.mpf(rate), 120, 4)]
    with Balls(128).in_use():
        mixing = Mixing(0, *_exact(float(rate), 2.0), 0)
        sums = endless_sums(with_parameters(STEPS, WIDENING), mixing, _exact(30.0)[0])
        for found, text in zip((sums.delayed, sums.delayed_logs), oracle, strict=True):
            truth = arb(text) / 4 + arb(0, 1e-17)
            assert found.value.overlaps(truth)
            assert float(found.value.rad()) < 3e-12 * float(found.value.mid())
            narrower = found.value.mid() + arb(0, float(found.value.rad()) / 100)
            assert not narrower.overlaps(truth)


def test_sums_of_squares_are_enclosed() -> None:
    with Balls(128).in_use(), mpmath.workdps(50):
        squares = endless_squares(with_parameters(STEPS, WIDENING))
        assert squares.value.overlaps(arb(mpmath.nstr(mpmath.zeta(2, 5) / 4, 45)) + arb(0, 1e-44))
        assert float(squares.value.rad()) < 1e-35
        all_squares = inverse_squares(with_parameters(STEPS, WIDENING))
        assert all_squares.value.overlaps(arb(mpmath.nstr(mpmath.zeta(2), 45)) + arb(0, 1e-44))


def test_delays_at_whole_powers_are_decided() -> None:
    """At rate 1/2 and 2 C_P H = 1/4 the delay of round 2^k is k - 2, and no more."""
    with Balls(128).in_use():
        steps = with_parameters(Constant(0.1), WIDENING)
        mixing = Mixing(0, *_exact(0.5, 0.125), 0)
        for rounds, delays in ((16, 2), (17, 3)):
            longer, shorter = (
                finite_sums(steps, mixing, *_exact(1.0), each) for each in (rounds, rounds - 1)
            )
            last = (longer.delays - shorter.delays) * 100
            assert last.value.overlaps(arb(delays))
            assert float(last.value.rad()) < 1e-30


def test_finite_sums_are_enclosed() -> None:
    """rate 1/2, C_P = 1, H = 1: J_t = 1, 2, 3, 3 before it is cut to t - 1."""
    with Balls(128).in_use():
        steps = with_parameters(Constant(0.1), WIDENING)
        sums = finite_sums(steps, Mixing(0, *_exact(0.5, 1.0), 0), *_exact(1.0), 4)
        expected = fmpq(2, 5), fmpq(1, 25), fmpq(1, 80), fmpq(6, 100)
        for found, value in zip(
            (sums.steps, sums.squares, sums.unmixed, sums.delays), expected, strict=True
        ):
            assert found.value.contains(value)
            assert float(found.value.rad()) < 1e-35


def test_delays_beyond_a_run_take_no_time() -> None:
    """rate 1 - 1e-9: J_2 is over 10^8, so all four are cut, to t - 1; nothing is mixed."""
    with Balls(128).in_use():
        steps = with_parameters(Constant(0.1), WIDENING)
        slow = Mixing(0, *_exact(1 - 1e-9, 1.0), 0)
        sums = finite_sums(steps, slow, *_exact(1.0), 4)
        assert sums.unmixed.value == 0
        assert sums.delays.value.contains(fmpq(6, 100))
        assert delays(slow, *_exact(1.0), 4) == [0, 1, 2, 3]


def test_a_chain_that_hardly_mixes_is_not_enclosed() -> None:
    mixing = Mixing(0, *_exact(0.999995, 2.0), 0)
    with pytest.raises(NoExactTwinError, match="participation must mix faster"):
        endless_sums(with_parameters(STEPS, WIDENING), mixing, *_exact(30.0))
