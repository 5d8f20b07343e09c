"""Bound and truth over rounds and parameters, against closed forms and single checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import Safari
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import sa_fl
from fltheory.verify import BoundCurve, Outcome, check, rounds_curve, sweep_curve

THEOREM = theorems.get("sa-fl/5", reading="derived")


def server_alone(step: float = 0.25, rounds: int = 16) -> Setting:
    """SAFARI at q = 0 without noise: x_r = (1 - step)^r x_0 with L = mu = 1."""
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    safari = Safari(0.0, 2 * step, step, 1)
    return Setting(safari, problem, UniformSubset(2, 1), rounds, [2.0])


def test_the_truth_along_the_rounds_is_the_closed_form() -> None:
    curve = rounds_curve(THEOREM, server_alone(), points=4, replicas=0)
    assert curve.values.tolist() == [1.0, 3.0, 6.0, 16.0]
    np.testing.assert_allclose(curve.truth, 4 * 0.75 ** (2 * curve.values), rtol=1e-13)
    assert curve.sampled is None
    assert curve.variable == "$R$"


def test_the_bound_along_the_rounds_is_that_of_a_check_with_so_many() -> None:
    curve = rounds_curve(THEOREM, server_alone(), points=4, replicas=0)
    for rounds, bound, outcome in zip(curve.values, curve.bound, curve.outcomes, strict=True):
        verdict = check(THEOREM, server_alone(rounds=int(rounds)))
        assert (bound, outcome) == (verdict.bound, verdict.outcome)


def test_means_over_rounds_are_those_of_shorter_runs() -> None:
    theorem = theorems.get("sa-fl/4")
    curve = rounds_curve(theorem, server_alone(), points=3, replicas=0)
    for rounds, truth in zip(curve.values, curve.truth, strict=True):
        expected = np.mean([4 * 0.75 ** (2 * r) for r in range(1, int(rounds) + 1)])
        assert truth == pytest.approx(expected, rel=1e-13)


def test_intervals_of_a_sampled_curve_hold_the_truth() -> None:
    """Together they miss with probability 1e-3; the seed is fixed."""
    setting = THEOREM.regimes["q small"].setting
    curve = rounds_curve(THEOREM, setting, replicas=200)
    assert (np.abs(curve.sampled - curve.truth) <= curve.interval).all()
    assert (curve.interval[1:] > 0).all()
    assert curve.replicas == 200


def test_a_single_replica_more_or_less_moves_the_sample_not_the_truth() -> None:
    setting = THEOREM.regimes["q small"].setting
    one, other = (rounds_curve(THEOREM, setting, points=3, replicas=n) for n in (20, 21))
    assert one.truth.tolist() == other.truth.tolist()
    assert one.sampled.tolist() != other.sampled.tolist()


def test_what_can_only_be_sampled_has_no_exact_truth() -> None:
    theorem = theorems.get("ca-fed/2")
    curve = rounds_curve(theorem, theorem.regimes["tight W"].setting, points=3, replicas=50)
    assert curve.truth is None
    assert curve.variable == "$T$"
    assert curve.verdict == "HOLDS"


def test_a_sweep_shows_verdicts_and_parts_at_every_value() -> None:
    first_term = (1 - sa_fl.eta_bar) ** sa_fl.R * sa_fl.D_0**2
    steps = [0.25, 0.5, 2.5]
    curve = sweep_curve(
        THEOREM,
        lambda step: server_alone(step),
        steps,
        variable=r"$\eta_s$",
        replicas=20,
        parts={"transient": first_term},
    )
    np.testing.assert_allclose(curve.truth, [4 * (1 - s) ** 32 for s in steps], rtol=1e-12)
    np.testing.assert_allclose(curve.parts["transient"], [4 * (1 - s) ** 16 for s in steps])
    assert curve.outcomes[-1] is Outcome.INAPPLICABLE
    np.testing.assert_allclose(curve.sampled, curve.truth, rtol=1e-12)


def test_a_claim_without_a_run_can_be_swept() -> None:
    claim = theorems.get("ca-fed/1")
    names = ["independent", "equal weights"]
    settings = dict(enumerate(claim.regimes[name].setting for name in names))
    curve = sweep_curve(claim, lambda i: settings[int(i)], [0, 1], variable="regime")
    assert curve.verdict == "HOLDS"
    assert curve.bound.tolist() == [check(claim, setting).bound for setting in settings.values()]


def test_several_verdicts_are_counted() -> None:
    ones = np.ones(3)
    outcomes = (Outcome.HOLDS, Outcome.REFUTED, Outcome.HOLDS)
    curve = BoundCurve("t (printed)", "$R$", "$y$", ones, ones, outcomes, truth=ones)
    assert curve.verdict == "HOLDS at 2, REFUTED at 1"


def test_bad_arguments_are_named() -> None:
    rate = theorems.get("sa-fl/corollary-1")
    with pytest.raises(ValueError, match=r"theorem must be an inequality over rounds"):
        rounds_curve(rate, server_alone())
    with pytest.raises(ValueError, match=r"theorem must be an inequality, got sa-fl/corollary-1"):
        sweep_curve(rate, server_alone, [0.1], variable="x")
    with pytest.raises(ValueError, match=r"values must hold at least one value"):
        sweep_curve(THEOREM, server_alone, [], variable="x")
    with pytest.raises(ValueError, match=r"points must be a whole number of at least 2, got 1"):
        rounds_curve(THEOREM, server_alone(), points=1)
    curve = rounds_curve(THEOREM, server_alone(), points=2, replicas=0)
    with pytest.raises(ValueError, match=r"truth must be given where sampled is not"):
        replace(curve, truth=None)
