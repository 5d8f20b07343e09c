"""Bound and truth over rounds and parameters, against closed forms and single checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sampled_means import agrees

from fltheory import theorems, verify
from fltheory.algorithms import FedAU, FedAvg, Safari
from fltheory.engines import Setting, paths
from fltheory.engines.fedau_weights.weight_error import weight_error
from fltheory.learnability import FederatedSystem, impossibility
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.verify import Outcome, check

THEOREM = theorems.get("sa-fl/5", reading="derived")


def server_alone(step: float = 0.25, rounds: int = 16) -> Setting:
    """SAFARI at q = 0 without noise: x_r = (1 - step)^r x_0 with L = mu = 1."""
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    safari = Safari(0.0, 2 * step, step, 1)
    return Setting(safari, problem, UniformSubset(2, 1), rounds, [2.0])


def test_the_truth_along_the_rounds_is_the_closed_form() -> None:
    curve = verify.curve(THEOREM, server_alone(), points=4, replicas=0)
    assert curve.values.tolist() == [1.0, 3.0, 6.0, 16.0]
    np.testing.assert_allclose(curve.truth, 4 * 0.75 ** (2 * curve.values), rtol=1e-13)
    assert curve.sampled is None
    assert curve.variable == "$R$"


def test_the_bound_along_the_rounds_is_that_of_a_check_with_so_many() -> None:
    curve = verify.curve(THEOREM, server_alone(), points=4, replicas=0)
    for rounds, bound, outcome in zip(curve.values, curve.bound, curve.outcomes, strict=True):
        verdict = check(THEOREM, server_alone(rounds=int(rounds)))
        assert (bound, outcome) == (verdict.bound, verdict.outcome)


def test_means_over_rounds_are_those_of_shorter_runs() -> None:
    theorem = theorems.get("sa-fl/4")
    curve = verify.curve(theorem, server_alone(), points=3, replicas=0)
    for rounds, truth in zip(curve.values, curve.truth, strict=True):
        expected = np.mean([4 * 0.75 ** (2 * r) for r in range(1, int(rounds) + 1)])
        assert truth == pytest.approx(expected, rel=1e-13)


def test_intervals_of_a_sampled_curve_hold_the_truth() -> None:
    setting = THEOREM.regimes["q small"].setting
    curve = verify.curve(THEOREM, setting, replicas=200)
    assert agrees(curve, curve.truth)
    assert (curve.interval[1:] > 0).all()
    assert curve.replicas == 200


def test_a_single_replica_more_or_less_moves_the_sample_not_the_truth() -> None:
    setting = THEOREM.regimes["q small"].setting
    one, other = (verify.curve(THEOREM, setting, points=3, replicas=n) for n in (20, 21))
    assert one.truth.tolist() == other.truth.tolist()
    assert one.sampled.tolist() != other.sampled.tolist()


def test_what_can_only_be_sampled_has_no_exact_truth() -> None:
    theorem = theorems.get("ca-fed/2")
    curve = verify.curve(theorem, theorem.regimes["tight W"].setting, points=3, replicas=50)
    assert curve.truth is None
    assert curve.variable == "$T$"
    assert curve.verdict == "HOLDS"


def test_a_sweep_shows_verdicts_and_parts_at_every_value() -> None:
    first_term = (1 - sa_fl.eta_bar) ** sa_fl.R * sa_fl.D_0**2
    steps = [0.25, 0.5, 2.5]
    curve = verify.curve(
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
    curve = verify.curve(claim, lambda i: settings[int(i)], [0, 1], variable="regime")
    assert curve.verdict == "HOLDS"
    bounds = [check(claim, setting).bound for setting in settings.values()]
    assert curve.bound.tolist() == pytest.approx(bounds, rel=1e-12)


def test_rounds_of_which_the_theorem_does_not_speak_are_left_out() -> None:
    def only_long(setting: Setting) -> Setting:
        if setting.rounds < 4:
            raise ValueError("rounds must be at least 4")
        return THEOREM.domain(setting)

    late = replace(THEOREM, domain=only_long)
    assert verify.curve(late, server_alone(), points=4, replicas=0).values.tolist() == [6.0, 16.0]
    with pytest.raises(ValueError, match=r"setting must be one that sa-fl/5 is about"):
        verify.curve(late, server_alone(rounds=3), replicas=0)


def test_bad_arguments_are_named() -> None:
    rate = theorems.get("sa-fl/corollary-1")
    with pytest.raises(ValueError, match=r"statement must be an inequality over rounds"):
        verify.curve(rate, server_alone(), bound=False)
    with pytest.raises(ValueError, match=r"statement must be an inequality about an algo"):
        verify.curve(rate, server_alone, [0.1], variable="x")
    with pytest.raises(ValueError, match=r"values must hold at least one value"):
        verify.curve(THEOREM, server_alone, [], variable="x")
    with pytest.raises(ValueError, match=r"points must be a whole number of at least 2, got 1"):
        verify.curve(THEOREM, server_alone(), points=1)


def test_of_a_long_run_only_the_beginning_may_be_sampled() -> None:
    curve = verify.curve(THEOREM, server_alone(), points=4, replicas=30, sampled_rounds=5)
    assert np.isnan(curve.sampled[-2:]).all()
    np.testing.assert_allclose(curve.sampled[:2], curve.truth[:2], rtol=1e-12)


def test_intervals_of_a_sampled_verdict_are_those_it_rests_on() -> None:
    theorem = theorems.get("sa-fl/4")
    setting = replace(theorem.regimes["nonconvex"].setting, rounds=20)
    curve = verify.curve(theorem, setting, points=3, replicas=50)
    single = check(theorem, setting, replicas=50, error_probability=1e-9 / 3)
    assert curve.sampled[-1] == single.truth
    assert curve.interval[-1] == pytest.approx(single.evidence.error, rel=1e-12)
    assert curve.error_probability == pytest.approx(1e-9 / 3)
    assert curve.truth is None


def test_the_first_rounds_of_what_is_sampled_are_computed_where_they_can_be() -> None:
    """FedAU without noise: eight sets a round, so five rounds; conditional moments agree."""
    theorem = theorems.get("fedau/2-option-2", reading="derived")
    setting = theorem.regimes["FedAU"].setting
    curve = verify.curve(theorem, setting, points=12, replicas=50)
    early = curve.values <= 5
    assert np.isnan(curve.truth[~early]).all()
    run = paths(
        Setting(setting.algorithm, setting.problem, setting.participation, 4, setting.x0)
    ).squared_gradient
    for rounds, truth in zip(curve.values[early], curve.truth[early], strict=True):
        assert truth == pytest.approx(run[: int(rounds)].mean(), rel=1e-12)
    assert not curve.is_computed


def test_a_quantity_is_followed_without_a_claim() -> None:
    """FedAvg of one client alone: x_r = (1 - 1/4)^r x_0."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    setting = Setting(FedAvg(0.25, 1), problem, UniformSubset(1, 1), 16, [2.0])
    curve = verify.curve(THEOREM, setting, bound=False, points=4, replicas=20)
    np.testing.assert_allclose(curve.truth, 4 * 0.75 ** (2 * curve.values), rtol=1e-13)
    np.testing.assert_allclose(curve.sampled, curve.truth, rtol=1e-12)
    assert np.isnan(curve.bound).all()
    assert curve.verdict == "no claim"


def test_cases_have_names() -> None:
    alone = THEOREM.regimes["q = 0"].setting
    cases = {"q = 0": alone, "large": server_alone(2.5)}
    curve = verify.curve(THEOREM, cases, replicas=0)
    assert curve.labels == ("q = 0", "large")
    assert [one.name for one in curve.outcomes] == ["HOLDS", "INAPPLICABLE"]
    assert curve.truth[0] == pytest.approx(check(THEOREM, alone).truth, rel=1e-12)
    assert curve.truth[1] == pytest.approx(4 * 1.5**32)


def test_a_claim_on_learning_is_swept_and_drawn() -> None:
    claim = theorems.get("pac/1", reading="derived")
    sizes = [1, 5, 20]
    curve = verify.curve(
        claim, lambda n: FederatedSystem(10, int(n), 5), sizes, variable="$n$", replicas=4000
    )
    known = [float(impossibility(10, n, 5).minimax_probability) for n in sizes]
    assert curve.truth.tolist() == known
    assert curve.bound.tolist() == [0.05] * 3
    assert curve.bound_name == "bound from below"
    assert agrees(curve, known)


def test_weights_are_drawn_by_running_their_algorithm() -> None:
    claim = theorems.get("fedau/3", reading="derived")
    clients = QuadraticProblem([[1.0]], [[0.0], [0.0]])

    def setting(cutoff: float) -> Setting:
        fedau = FedAU(0.1, 1, cutoff=int(cutoff))
        return Setting(fedau, clients, Bernoulli([0.2, 0.6]), 30, [0.0])

    curve = verify.curve(claim, setting, [1, 4, 16], variable="$K$", replicas=300)
    known = [weight_error([0.2, 0.6], K, 30).values.mean() for K in (1, 4, 16)]
    np.testing.assert_allclose(curve.truth, known, rtol=1e-12)
    assert agrees(curve, known)
    assert curve.replicas == 300
