"""Sums over step sizes, against direct summation and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import polygamma, zeta

from fltheory.algorithms import Constant, Harmonic
from fltheory.participation.chain_structure import Mixing
from fltheory.theorems.ca_fed_sums import endless_sums, finite_sums

STEPS = Harmonic(0.5, offset=4.0)


def test_without_delay_the_sums_are_known() -> None:
    """With 2 C_P H t below one for every t that counts, J_t is zero."""
    still = Mixing(0.0, 0.5, 1e-9, 0)
    sums = endless_sums(STEPS, still, 1.0)
    assert sums.squares == pytest.approx(0.25 * float(polygamma(1, 5.0)), rel=1e-12)
    assert sums.delayed == pytest.approx(sums.squares, rel=1e-9)
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
    with pytest.raises(ValueError, match="participation must have a rate that mixes"):
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
