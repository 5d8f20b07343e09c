"""Bounds on the descent of F: closed forms, the full program, random problems, Theorem 4."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAvg, Safari
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines import Setting, exact
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.participation import MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem, RippledProblem
from fltheory.worst_case import ClientClass, SafariRound, SmoothClass, audit, best_bound
from fltheory.worst_case.audits.audit import ClassOutcome
from fltheory.worst_case.audits.quadratic_witness import QuadraticWitness
from fltheory.worst_case.audits.theorem_form import DESCENT_FORM
from fltheory.worst_case.rounds.bound import Bound, best_bound_of, best_speed_of
from fltheory.worst_case.rounds.certificate import certificate, proved, raised
from fltheory.worst_case.rounds.measure import DESCENT, Claim
from fltheory.worst_case.rounds.one_round import OneRound
from tests.drawn import a_tenth, in_turn
from tests.worst_case.full_program import least_descent
from tests.worst_case.settings import a_round, drawn

PRINTED, DERIVED = theorems.get("sa-fl/4"), theorems.get("sa-fl/4", "derived")
PLAYED = SafariRound(eligible=10, participants=4, local_steps=5, q="1/2", client_lr="1/60")


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0, 1.9])
def test_one_step_of_everybody_is_gradient_descent(step: float) -> None:
    """F falls by ``eta (1 - L eta/2) ||grad F||^2`` at least, and no more is sure."""
    bound = best_bound(FedAvg(step / 2, 1), UniformSubset(5, 5), SmoothClass(2))
    assert bound.decrease == pytest.approx(step / 2 * (1 - step / 2), abs=1e-8)
    assert bound.heterogeneity == pytest.approx(0, abs=1e-6)


def test_one_noisy_step_of_some() -> None:
    """K = 1 in closed form: half of L times the variance of the move, noise and sampling."""
    L, eta, own, q, m, n = 2, 0.1, 0.2, 0.25, 2, 6
    algorithm = Safari(q=q, client_lr=eta, assist_lr=own, local_steps=1)
    bound = best_bound(algorithm, UniformSubset(n, m), SmoothClass(L, 3, 2))
    assert bound.noise == pytest.approx(L / 2 * q * eta**2 / m)
    assert bound.server_noise == pytest.approx(L / 2 * (1 - q) * own**2)
    spread = (n - m) / (m * (n - 1))
    assert bound.heterogeneity == pytest.approx(L / 2 * q * eta**2 * spread, rel=1e-6)
    decrease = q * eta * (1 - L * eta / 2) + (1 - q) * own * (1 - L * own / 2)
    assert bound.decrease == pytest.approx(decrease, rel=1e-6)


@pytest.mark.parametrize(
    ("played", "clients"),
    in_turn(
        [
            a_round(2, 0, 1, 1, "1", "1/3", "0"),
            a_round(2, 1, 1, 3, "1/2", "1/5", "1/4"),
            a_round(3, 1, 2, 4, "1/3", "1/10", "1/5"),
            a_round(4, 0, 2, 4, "1", "1/20", "0"),
            a_round(4, 2, 1, 3, "1/2", "1/20", "1/8"),
            a_round(4, 1, 3, 2, "1/2", "1/8", "1/8", "3/2"),
        ],
        [SmoothClass(1), ClientClass(1, "1/5", "everywhere")],
        of=2,
    ),
)
def test_the_reduced_program_has_the_full_ones_value(played: OneRound, clients: Any) -> None:
    largest = Fraction(best_speed_of(played, clients, DESCENT)).limit_denominator(10**6)
    bound = best_bound_of(played, clients, largest / 2, DESCENT)
    full = least_descent(played, clients, largest / 2)
    assert bound.heterogeneity == pytest.approx(full, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(
    "played",
    [
        a_round(2, 0, 1, 2, "1", "1/4", "0"),
        a_round(3, 1, 2, 2, "1/2", "1/5", "1/4"),
        a_round(3, 0, 2, 3, "2/3", "1/8", "1/4"),
    ],
)
def test_noise_in_the_reduced_program_is_the_full_ones(played: OneRound) -> None:
    """There all clients have fluctuations of their own, and the last step's noise is a vector."""
    clients = SmoothClass(1, 1)
    largest = Fraction(best_speed_of(played, clients, DESCENT)).limit_denominator(10**6)
    bound = best_bound_of(played, clients, largest / 2, DESCENT)
    assert bound.residual == pytest.approx(least_descent(played, clients, largest / 2), rel=2e-6)


def test_units_do_not_matter() -> None:
    """L a thousand times as large and steps a thousandth: F in units a thousand times as small."""
    played = a_round(excluded=2)
    bound = best_bound_of(played, SmoothClass(1, 1), Fraction("0.02"), DESCENT)
    scaled = replace(played, client_lr=played.client_lr / 1000, assist_lr=played.assist_lr / 1000)
    other = best_bound_of(scaled, SmoothClass(1000, 1), Fraction("0.00002"), DESCENT)
    assert other.heterogeneity == pytest.approx(bound.heterogeneity / 1000, rel=1e-6)
    assert other.noise == pytest.approx(bound.noise / 1000, rel=1e-6)


@pytest.mark.parametrize("seed", a_tenth(range(4)))
def test_random_settings_are_proved_and_less_is_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(2):
        played, of_distance = drawn(rng)
        clients = SmoothClass(of_distance.L, of_distance.sigma)
        bound = best_bound_of(played, clients, measure=DESCENT)
        certificate(bound, 1e-5).verify()
        claim = raised(bound, Fraction(1))
        part = Fraction(98, 100)
        lower = replace(
            claim,
            speed=Fraction(bound.decrease),
            heterogeneity=part * claim.heterogeneity,
            noise=part * claim.noise,
        )
        assert proved(played, clients, lower) is None


def test_a_bound_after_rounds_is_its_sum() -> None:
    bound = Bound(a_round(), SmoothClass(1, dissimilarity=2), 0.5, 0.25, measure=DESCENT)
    assert (bound.residual, bound.floor) == (1.0, 2.0)
    # Falls that leave nothing: three rounds of decrease 0.5 with 1 added to F each.
    assert bound.after(3, 6.0) == pytest.approx((6.0 + 3) / (3 * 0.5))
    assert replace(bound, speed=0.0).after(3, 1.0) == float("inf")


def _claimed(setting: OneRound, clients: Any) -> list[float]:
    bound = certificate(best_bound_of(setting, clients, measure=DESCENT)).proof.bound
    return [float(bound[name][0]) for name in ("decrease", "heterogeneity")]


@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.soundness)])
def test_no_quadratic_clients_break_a_certificate(count: int) -> None:
    """With one Hessian, by the exact engine."""
    rng = np.random.default_rng(0)
    played = a_round(5, 1, 2, 3, "1/2", "1/10", "1/5")
    decrease, budget = _claimed(played, SmoothClass(1))
    algorithm, participation = Safari(0.5, 0.1, 0.2, 3), UniformSubset(5, 2, excluded=(4,))
    for _ in range(count):
        curvatures = rng.uniform(0.05, 1, size=2)
        tilts = rng.normal(size=(5, 2))
        tilts -= tilts.mean(axis=0)
        problem = QuadraticProblem(np.diag(curvatures), -tilts / curvatures)
        x0 = rng.normal(size=2) * 10 ** rng.uniform(-1, 1)
        excess = exact(Setting(algorithm, problem, participation, 1, x0)).excess_loss
        gradient = float(((x0 * curvatures) ** 2).sum())
        level = np.linalg.norm(tilts, axis=1).max() ** 2
        assert excess[1] <= (excess[0] - decrease * gradient + budget * level) * (1 + 1e-9)


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.soundness)])
def test_no_rippled_clients_break_a_certificate(count: int) -> None:
    """Nonconvex problems of curvature between -L and L, over all sets, by the code."""
    rng = np.random.default_rng(1)
    played = a_round(5, 1, 2, 3, "1/2", "1/10", "1/5")
    decrease, budget = _claimed(played, SmoothClass(1))
    algorithm, participation = Safari(0.5, 0.1, 0.2, 3), UniformSubset(5, 2, excluded=(4,))
    outcomes = list(participation.outcomes())
    chances = np.array([chance for chance, _ in outcomes])
    masks = np.array([mask for _, mask in outcomes])
    nonconvex = 0
    for _ in range(count):
        bowl, frequency = rng.uniform(0.01, 0.9), rng.uniform(0.5, 5)
        amplitude = (1 - bowl) / frequency**2
        tilts = rng.normal(size=(5, 2)) * 10 ** rng.uniform(-2, 0)
        tilts -= tilts.mean(axis=0)
        problem = RippledProblem(
            tilts, curvature=bowl, amplitude=amplitude, frequency=frequency, x_star=np.zeros(2)
        )
        assert abs(problem.L - 1) < 1e-12
        nonconvex += 2 * bowl < 1
        clients = SteppedClients(problem, Silence())
        x0 = rng.normal(size=2) * 10 ** rng.uniform(-1, 1)
        after = 0.0
        for branch, chance in algorithm.branches:
            who = masks if branch == CLIENTS else np.zeros((1, 5), dtype=bool)
            weights = chances if branch == CLIENTS else np.ones(1)
            state = algorithm.init(np.tile(x0, (len(who), 1)), 5)
            ends = algorithm.round(state, clients, who, branch)["x"]
            after += chance * float(weights @ problem.excess_loss(ends))
        before = float(problem.excess_loss(x0[None])[0])
        gradient = float((problem.gradient(x0[None]) ** 2).sum())
        bound = before - decrease * gradient + budget * problem.sigma_G**2
        assert after <= bound + 1e-9 * (1 + before)
    assert 0.3 * count < nonconvex < 0.7 * count


def test_the_claim_is_theorem_4_to_the_letter() -> None:
    """By hand, from the printed bound: eta_s/2 times each term of delta."""
    clients = SmoothClass(2, 1, 1)
    played = replace(PLAYED, client_lr="1/100").coupled(DERIVED, clients)
    L, q, K, m, eta_s = 2, Fraction(1, 2), 5, 4, Fraction(5, 200)
    assert played.assist_lr == eta_s
    half = eta_s / 2
    assert DESCENT_FORM.claim(DERIVED, clients, played) == Claim(
        half,
        half * 80 * q * L**2 * eta_s**2 * 6,
        half * (80 * q * L**2 * eta_s**2 / K + 8 * L * q * eta_s / (m * K)),
        half * L * eta_s * (1 - q),
        DESCENT,
    )


@pytest.mark.parametrize(("theorem", "q"), [(PRINTED, "1/2"), (DERIVED, 1)])
def test_without_excluded_clients_theorem_4_needs_no_condition_on_q(theorem: Any, q: Any) -> None:
    found = audit(theorem, SmoothClass(1, 1, 1), replace(PLAYED, q=q))
    assert found.all_rounds.outcome is ClassOutcome.PROVED
    assert found.hypotheses["few client rounds"] is None
    assert found.unconditional is not None
    assert found.unconditional.outcome is ClassOutcome.PROVED
    assert found.all_rounds.certificate is not None
    found.all_rounds.certificate.verify()
    noiseless = audit(theorem, SmoothClass(1), PLAYED)
    assert noiseless.residual_ratio > 10
    assert noiseless.unconditional_ratio == pytest.approx(
        noiseless.residual_ratio * (1 + 4 / (480 * float(noiseless.round.assist_lr) ** 2))
    )


def test_the_mean_from_round_one_on_is_proved_with_half_the_floor() -> None:
    """The printed statement begins after the first round: see `enough`."""
    printed, derived = (audit(theorem, SmoothClass(1), PLAYED) for theorem in (PRINTED, DERIVED))
    claims = [item.all_rounds.certificate for item in (printed, derived)]
    floors = [
        claim.proof.bound["heterogeneity"][0] / claim.proof.bound["decrease"][0]
        for claim in claims
        if claim is not None
    ]
    assert floors[0] == floors[1] / 2


def test_with_excluded_clients_it_does_need_one() -> None:
    """Small steps: what the excluded clients want is not seen, whatever the steps."""
    small = replace(PLAYED, eligible=8, excluded=2, client_lr="1/2000")
    found = audit(DERIVED, SmoothClass(1), small)
    assert found.one_round.outcome is ClassOutcome.REFUTED
    assert found.residual_ratio < 1
    assert found.unconditional is not None
    assert found.unconditional.outcome is ClassOutcome.PROVED
    witness = found.one_round.witness
    assert isinstance(witness, QuadraticWitness)
    setting = witness.setting
    run, claim = exact(setting), found.claim
    level = max(sum(t * t for t in _tilt(witness, i)) for i in range(10))
    assert run.excess_loss[1] == pytest.approx(float(witness.truth), rel=1e-9)
    bound = (
        run.excess_loss[0]
        - float(claim.speed) * run.squared_gradient[0]
        + float(claim.heterogeneity * level)
    )
    assert run.excess_loss[1] > bound
    assert bound == pytest.approx(float(witness.bound), rel=1e-9)


def _tilt(witness: QuadraticWitness, client: int) -> list[Fraction]:
    pairs = zip(witness.curvatures, witness.optima[client], strict=True)
    return [-curvature * place for curvature, place in pairs]


def test_a_sum_over_rounds_is_broken_by_clients_that_the_engine_runs() -> None:
    """The bound is the derived reading's, too, whose condition on the run they do not meet."""
    played = replace(PLAYED, eligible=5, excluded=5, q=1, client_lr="1/150")
    witness = audit(PRINTED, SmoothClass(1), played).all_rounds.witness
    assert isinstance(witness, QuadraticWitness)
    setting = witness.setting
    verdict = PRINTED.quantity.of(exact(replace(setting, rounds=setting.rounds)), setting)
    assert verdict == pytest.approx(float(witness.truth), rel=1e-9)
    assert witness.truth > witness.bound
    assert audit(DERIVED, SmoothClass(1), played).all_rounds.given


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FedAvg(0.1, 1), MarkovOnOff([0.5, 0.5], 0.5), SmoothClass(1)), "are correlated in time"),
        ((FedAvg(0.1, 1), UniformSubset(2, 1), ClientClass(1, 0)), "heterogeneity 'everywhere'"),
    ],
)
def test_what_is_not_covered_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        best_bound(*arguments, measure="descent")


def test_a_decrease_above_the_largest_has_no_bound() -> None:
    with pytest.raises(ArithmeticError, match=r"decrease of 0\.5; the largest decrease is 0\.375"):
        best_bound(FedAvg(0.5, 1), UniformSubset(2, 2), SmoothClass(1), decrease="0.5")


@pytest.mark.parametrize("value", [-1, "x", True, float("nan"), 0])
def test_a_class_out_of_range_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"L must be (a fraction )?above 0"):
        SmoothClass(value)


def test_one_level_of_noise_is_the_clients_and_the_servers() -> None:
    """Theorem 4 as submitted has one sigma: at equal levels it is the later one's inequality."""
    submitted, clients = theorems.get("sa-fl-submission/4", "derived"), SmoothClass(2, 3, 3)
    played = replace(PLAYED, client_lr="1/100").coupled(DERIVED, clients)
    one = DESCENT_FORM.claim(submitted, clients, played)
    two = DESCENT_FORM.claim(DERIVED, clients, played)
    assert one.noise + one.server_noise == two.noise + two.server_noise
    # L/2 (1 - q) eta_s^2 is what the server's noise adds to F.
    assert one.server_noise == (1 - played.q) * played.assist_lr**2
    assert one.heterogeneity == two.heterogeneity
    assert audit(submitted, clients, PLAYED).one_round.outcome is ClassOutcome.PROVED
    with pytest.raises(ValueError, match="server_sigma must equal sigma for sa-fl-submission/4"):
        audit(submitted, SmoothClass(2, 3, 1), PLAYED)
