"""Claimed orders and directions as curves, against checks and laws known otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from sampled_means import agrees

from fltheory import theorems, verify
from fltheory.learnability.empirical_minimiser import NoiselessLaw
from fltheory.verify import Outcome, check


def test_a_claimed_order_goes_through_the_truth_of_the_last_decade() -> None:
    claim = theorems.get("fedar/1")
    setting = claim.regimes["unequal cycles"].setting
    curve = verify.curve(claim, setting, replicas=60)
    verdict = check(claim, setting)
    assert curve.outcomes == (verdict.outcome,) * 5 == (Outcome.UNDECIDED,) * 5
    assert curve.values.tolist() == [1, 10, 100, 300, 1000]
    assert curve.truth is not None
    np.testing.assert_allclose(curve.bound, curve.truth[2] * 100 / curve.values, rtol=1e-12)
    last = curve.values >= 100
    slope = np.polyfit(np.log(curve.values[last]), np.log(curve.truth[last]), 1)[0]
    assert slope == pytest.approx(verdict.truth, abs=1e-9)
    assert curve.sampled is not None
    assert agrees(curve, curve.truth)
    assert "claimed -1.00" in curve.note


def test_of_a_direction_the_line_is_the_value_before() -> None:
    claim = theorems.get("fedar/average-inactivity")
    setting = claim.regimes["in rotation"].setting
    curve = verify.curve(claim, setting, replicas=0)
    assert curve.truth is not None
    assert np.isnan(curve.bound[0])
    assert curve.bound[1:].tolist() == curve.truth[:-1].tolist()
    assert curve.bound_name.endswith("to be exceeded")
    assert set(curve.outcomes) == {check(claim, setting).outcome}
    assert curve.sampled is None


def test_without_noise_the_error_of_learning_is_its_law() -> None:
    claim = theorems.get("pac/2", "uniform in Q")
    system = claim.regimes["ten server samples"].setting
    curve = verify.curve(claim, system, replicas=2000)
    assert curve.truth is not None
    assert curve.sampled is not None
    assert curve.interval is not None
    draws = [(system.server, 10), (system.clients(1000), 990)]
    assert curve.truth[1] == pytest.approx(NoiselessLaw(system.target, draws).mean(), rel=1e-12)
    assert (np.abs(curve.sampled - curve.truth) <= curve.interval).all()
    np.testing.assert_allclose(curve.bound, curve.truth[0] * curve.values[0] / curve.values)
    assert curve.verdict == "REFUTED"


def test_with_noise_verdict_and_intervals_rest_on_the_sample() -> None:
    claim = theorems.get("pac/3")
    regime = claim.regimes["clients' target apart"]
    curve = verify.curve(claim, regime.setting, replicas=50)
    assert not curve.is_computed
    assert curve.replicas == 10
    assert curve.error_probability == 1e-9
    assert curve.verdict == check(claim, regime.setting, replicas=50).outcome.name


def test_settings_of_another_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="setting must be a Setting for fedar/1"):
        verify.curve(theorems.get("fedar/1"), theorems.get("pac/2").regimes["clients only"].setting)
