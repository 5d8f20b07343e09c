"""Theorem 5 on runs that are made up: its bound, its couplings, and what decides a verdict."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAU, Safari
from fltheory.engines.measured_run import Bracket, MeasuredRun
from fltheory.engines.trajectory import Trajectory, round_arrays
from fltheory.participation import UniformSubset
from fltheory.problems import MultinomialProblem
from fltheory.theorems.registry import readings
from fltheory.verify import Outcome
from fltheory.verify.on_hardware import check_on_hardware

DERIVED = theorems.get("sa-fl/5", "derived")
STEPS, ROUNDS, SIZE, Q = 4, 6, 2, 0.25
SIGMA, SIGMA_S, SIGMA_G = Bracket(0.5, 1.5), Bracket(0.25, 2.0), Bracket(1.0, 3.0)


def problem():
    rng = np.random.default_rng(0)
    return MultinomialProblem(
        [rng.normal(size=(6, 2)) for _ in range(3)],
        [rng.integers(3, size=6) for _ in range(3)],
        n_classes=3,
        ridge=0.5,
    )


def step_sizes(L, mu):
    """Small ones with eta_c K mu/2 = 2 eta_s L mu/(L + mu)."""
    assist_lr = 0.002
    return 4 * assist_lr * L / (L + mu) / STEPS, assist_lr


def made_up(*, truth=1e-6, error=1e-9, G_3=1.0, G_4=0.0, taken_L=None, premise=True, **changes):
    it = problem()
    client_lr, assist_lr = step_sizes(taken_L or it.L, it.mu)

    def arrays(**values):
        return round_arrays({name: np.full(ROUNDS + 1, value) for name, value in values.items()})

    values = arrays(
        squared_distance=truth, squared_gradient=G_3, excess_loss=1.0, participant_excess_loss=G_4
    )
    errors = arrays(
        squared_distance=error,
        squared_gradient=error,
        excess_loss=error,
        participant_excess_loss=error,
    )
    trajectory = Trajectory(
        values.squared_distance,
        values.squared_gradient,
        values.excess_loss,
        values.observed,
        standard_error=errors,
        replicas=20,
    )
    run = SimpleNamespace(
        algorithm=Safari(Q, client_lr, assist_lr, STEPS),
        problem=it,
        participation=UniformSubset(3, SIZE),
        rounds=ROUNDS,
        x0=np.full(it.dim, 0.1),
        measured=MeasuredRun(trajectory, 1.0, Bracket(1.0, it.L), SIGMA, SIGMA_G, SIGMA_S, 0.0),
        premises=(SimpleNamespace(name="a premise", holds=premise, detail="for a reason"),),
    )
    for name, value in changes.items():
        setattr(run, name, value)
    return run


def bound(run, sigma, sigma_s, sigma_G, L):
    """The right-hand side of Theorem 5, from the paper, with the noise of (60) twice."""
    eta_c, eta_s, mu = run.algorithm.client_lr, run.algorithm.assist_lr, run.problem.mu
    start = np.square(run.x0 - run.problem.x_star).sum()
    return (
        (1 - eta_c * STEPS * mu / 2) ** ROUNDS * start
        + 8 * Q * eta_c * STEPS / mu * sigma_G**2
        + 4 * Q * eta_c / (mu * SIZE) * sigma**2
        + 4
        * Q
        * L
        * (1 + STEPS * eta_c * L)
        / mu
        * 5
        * STEPS
        * eta_c**2
        * (sigma**2 + 6 * STEPS * sigma_G**2)
        + (1 - Q) * (L + mu) / (2 * L * mu) * eta_s * sigma_s**2
    )


def test_holds_with_the_bound_at_both_ends_of_the_constants():
    run = made_up()
    found = check_on_hardware(DERIVED, run)
    L = run.problem.L
    assert found.outcome is Outcome.HOLDS
    assert found.smoothness == pytest.approx(L)
    assert found.bound.low == pytest.approx(bound(run, 0.5, 0.25, 1.0, L), rel=1e-12)
    assert found.bound.high == pytest.approx(bound(run, 1.5, 2.0, 3.0, L), rel=1e-12)
    assert found.truth == pytest.approx(1e-6)
    assert found.failures == ()
    assert "few client rounds" in found.met


def test_the_brackets_of_the_constants_may_leave_it_open():
    run = made_up()
    ends = check_on_hardware(DERIVED, run).bound
    between = made_up(truth=(ends.low + ends.high) / 2)
    assert check_on_hardware(DERIVED, between).outcome is Outcome.UNDECIDED
    above = made_up(truth=ends.high * 1.01)
    assert check_on_hardware(DERIVED, above).outcome is Outcome.REFUTED
    barely = made_up(truth=ends.high * 1.01, error=ends.high / 100)
    assert check_on_hardware(DERIVED, barely).outcome is Outcome.UNDECIDED


def test_the_half_width_is_students():
    """Seven rounds of four quantities: 28 intervals that miss with 1e-3 together."""
    from scipy.stats import t

    found = check_on_hardware(DERIVED, made_up(error=1e-9))
    assert found.error == pytest.approx(1e-9 * t.isf(1e-3 / 2 / 28, 19), rel=1e-6)


def test_a_failed_premise_makes_it_inapplicable():
    found = check_on_hardware(DERIVED, made_up(premise=False))
    assert found.outcome is Outcome.INAPPLICABLE
    assert found.failures == ("a premise: for a reason",)


def test_a_failed_hypothesis_is_named_with_its_margin():
    """All gradients vanish on the right of (81), and excess losses are negative."""
    found = check_on_hardware(DERIVED, made_up(G_3=1e-9, G_4=-1.0))
    assert found.outcome is Outcome.INAPPLICABLE
    assert found.failures == ("few client rounds: margin -2 in round 0",)


def test_too_few_runs_to_decide_a_hypothesis():
    found = check_on_hardware(DERIVED, made_up(G_3=1.0, G_4=0.0, error=1.0))
    assert found.undecided == ("few client rounds",)
    assert found.outcome is Outcome.UNDECIDED


@pytest.mark.parametrize("factor", [1.5, 1.0, 0.9])
def test_taken_with_a_larger_smoothness_if_that_couples_the_steps(factor):
    L = problem().L
    run = made_up(taken_L=factor * L)
    found = check_on_hardware(DERIVED, run)
    coupled = "coupled step sizes" in found.met
    assert coupled == (factor >= 1)
    assert found.smoothness == pytest.approx(max(factor, 1.0) * L, rel=1e-9)
    assert found.bound.low == pytest.approx(bound(run, 0.5, 0.25, 1.0, found.smoothness), rel=1e-12)


def test_steps_that_no_smoothness_couples():
    run = made_up()
    run.algorithm = replace(run.algorithm, client_lr=2 * run.algorithm.client_lr)
    found = check_on_hardware(DERIVED, run)
    assert found.smoothness == run.problem.L
    assert any(failure.startswith("coupled step sizes") for failure in found.failures)


def test_all_readings_apply_the_same_constants():
    """Derived, the noise counts twice; repaired, there is the price of differing clients, too."""
    run = made_up()
    sigma, sigma_G, mu = 0.5, 1.0, run.problem.mu
    price = 4 * Q * sigma_G**2 / mu**2
    once = 2 * Q * run.algorithm.client_lr * sigma**2 / (mu * SIZE)
    for reading in readings("sa-fl/5"):
        found = check_on_hardware(theorems.get("sa-fl/5", reading), run)
        assert (found.theorem, found.reading) == ("sa-fl/5", reading)
        expected = bound(run, sigma, 0.25, sigma_G, run.problem.L)
        expected += {"printed": -once, "derived": 0.0, "repaired": price}[reading]
        assert found.bound.low == pytest.approx(expected)


@pytest.mark.parametrize("name", ["sa-fl/4", "sa-fl/corollary-2", "ca-fed/1"])
def test_only_what_is_measured(name):
    with pytest.raises(ValueError, match=f"theorems must be ones .* e.g. sa-fl/5, got {name}"):
        check_on_hardware(theorems.get(name), made_up())


def test_only_the_theorems_algorithm():
    run = made_up(algorithm=FedAU(0.1, 2))
    with pytest.raises(ValueError, match="algorithm must be Safari"):
        check_on_hardware(DERIVED, run)
