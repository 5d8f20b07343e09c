"""What is proved for every loss from a log, against exact truths and other choices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from fltheory import Setting, exact
from fltheory.algorithms import FedAvg, Scheduled, WeightedFedAvg
from fltheory.logs import AvailabilityLog
from fltheory.logs.transitions import draw_log
from fltheory.participation import MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.weights import Training
from fltheory.worst_case import ClientClass
from fltheory.worst_case.correlated.bound import best_correlated_bound
from fltheory.worst_case.correlated.log_proof import LogProof, log_proof
from fltheory.worst_case.correlated.phases import PhasesCertificate
from fltheory.worst_case.rounds.one_round import AvailabilityGroup, AveragingRound

TRAINING = Training(noise=0.0)
# Two phases, whose search takes most of the time, are not searched for so few rounds.
FEW_ROUNDS = 19


def _proved(
    process: MarkovOnOff, training: Training = TRAINING
) -> tuple[LogProof, AvailabilityLog]:
    log = draw_log(process, 300, seed=2)
    return log_proof(log, np.full(log.n_clients, 1 / log.n_clients), training, 10.0), log


def _bound(played: AveragingRound, rounds: int) -> float:
    return best_correlated_bound(played, ClientClass(1, "0.1"), rounds=rounds, distance=1).after(
        rounds, 1.0
    )


def test_it_is_proved_for_the_fitted_clients_and_better_than_other_choices() -> None:
    found, log = _proved(MarkovOnOff([0.5] * 5, 0.8))
    found.certificate.verify()
    (own,) = found.proof.groups
    assert (own.n_clients, found.rounds) == (5, 300)
    assert float(own.availability) == pytest.approx(log.marginals.mean(), rel=2e-3)
    assert 0.65 < own.correlation < 0.9
    # With Gamma of 1/2, gradients at the optimum are at most 1; the start is 1 away.
    said = found.certificate.proof.bound
    square = said["start"] + said["heterogeneity"]
    if not isinstance(found.certificate, PhasesCertificate):
        square = (said["start"] + said["start_heterogeneity"]) / 300 + said["heterogeneity"]
    assert Fraction(found.distance) ** 2 >= square == found.square
    group = AvailabilityGroup(*(getattr(own, name) for name in AvailabilityGroup.__match_args__))
    for step in ("0.3", "0.1", "0.03", "0.01"):
        for K in (1, 2):
            other = AveragingRound((group,), "weights", K, Fraction(step) / K, Fraction(1))
            assert found.distance**2 <= 1.02 * _bound(other, 300)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_no_truth_is_above_it(noise: float) -> None:
    """Quadratics of condition 10 at most, a distance of 1 from the start, with Gamma of 1/2."""
    found, _ = _proved(MarkovOnOff([0.6] * 3, 0.7), Training(noise=noise))
    proof = found.proof
    (own,) = proof.groups
    K, weights = proof.local_steps, (float(own.weight),) * 3
    method = FedAvg(1.0, K) if proof.averaging == "present" else WeightedFedAvg(weights, 1.0, K)
    process = MarkovOnOff([float(own.availability)] * 3, float(own.correlation))
    steps = _Steps(tuple(float(lr) for count, lr in found.steps for _ in range(count)))
    schedule, measured = Scheduled(method, steps), found.steps[-1][0]
    assert len(steps.values) == 300
    largest = 0.0
    for curvature in (0.1, 0.3, 1.0):
        # Gradients 1, -1/2 and -1/2 in units of their largest.
        optima = np.array([[1.0], [-0.5], [-0.5]]) / curvature
        problem = QuadraticProblem([[curvature]], optima, sigma=noise)
        run = exact(Setting(schedule, problem, process, 299, problem.x_star + 1.0))
        largest = max(largest, float(np.mean(run.squared_distance[-measured:])))
    assert 0.2 * found.square < largest <= found.square


def test_the_rare_are_a_group_with_a_weight_of_their_own() -> None:
    found, log = _proved(MarkovOnOff([0.1] + [0.8] * 3, 0.5))
    rare, others = found.proof.groups
    assert (rare.n_clients, others.n_clients) == (1, 3)
    assert float(rare.availability) == pytest.approx(log.marginals[0], abs=1e-3)
    assert rare.weight > others.weight
    unbiased = tuple(
        AvailabilityGroup(
            own.n_clients,
            own.availability,
            own.target_weight,
            own.target_weight / own.availability,
            own.correlation,
        )
        for own in (rare, others)
    )
    proof = found.proof
    plain = AveragingRound(unbiased, "weights", 1, proof.client_lr, Fraction(1))
    for factor in (Fraction(1, 2), 1, 2):
        other = replace(plain, client_lr=factor * proof.client_lr)
        assert found.square <= 1.02 * _bound(other, 300)


def test_dissimilar_clients_taken_for_alike_are_told() -> None:
    found, log = _proved(MarkovOnOff([0.5, 0.7] * 4, 0.5))
    low, high = log.marginals.min(), log.marginals.max()
    assert f"({low:.2g} to {high:.2g} in the log)" in found.sentence


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (
            [[1, 0, 1, 0], [0, 0, 1, 0]],
            "client 1 and 1 more never came online, and with clients at pi = 0",
        ),
        ([[1], [0], [1]], "must have at least two clients, got 1"),
        (np.eye(61, dtype=int), "61 clients are too many for a proof in a few seconds: at most 60"),
    ],
)
def test_what_is_not_proved_is_told(masks: list[list[int]], message: str) -> None:
    log = AvailabilityLog.from_masks(masks)
    with pytest.raises(ValueError, match=message):
        log_proof(log, np.full(log.n_clients, 1 / log.n_clients), TRAINING, 10.0)


def test_a_condition_at_which_floats_cannot_tell_rates_is_refused() -> None:
    log = AvailabilityLog.from_masks(np.ones((30, 2)))
    with pytest.raises(ValueError, match="L at most 1e10 mu, beyond which float64 cannot tell"):
        log_proof(log, np.full(2, 1 / 2), TRAINING, 1e12)


def test_condition_and_noise_are_rounded_up() -> None:
    """Six digits; a condition of nearly one is above one."""
    log = AvailabilityLog.from_masks(np.ones((FEW_ROUNDS, 2)))
    for condition, above in ((1.0000001, "1.00001"), (3.3333333, "3.33334"), (12.3, "12.3")):
        found = log_proof(log, np.full(2, 1 / 2), Training(noise=0.0), condition)
        assert (found.condition, 1 / found.proof.mu) == (Fraction(above), Fraction(above))
        assert f"L/mu <= {above} " in found.sentence
    exact_noise, more = (
        log_proof(log, np.full(2, 1 / 2), Training(noise=noise), 10.0).square
        for noise in (0.100001, 0.1000001)
    )
    assert more == exact_noise


def test_a_dissimilarity_just_above_a_short_one_is_rounded_up() -> None:
    """The root of 2 Gamma is 1, and 5e-14 above it; of the latter more is proved, of 1.000001."""
    log = AvailabilityLog.from_masks(np.random.default_rng(0).random((FEW_ROUNDS, 2)) < 0.5)
    one, above = (
        log_proof(log, np.full(2, 1 / 2), Training(noise=0.0, dissimilarity=gamma), 10.0).square
        for gamma in (0.5, 0.50000000000005)
    )
    assert one < above < Fraction(1000003, 1000000) * one


@pytest.mark.parametrize("noise", [1.0, 5.0])
def test_everybody_always_there_with_noise(noise: float) -> None:
    """Of the flattest losses the square is r^2 as large after a round, and what noise adds."""
    log = AvailabilityLog.from_masks(np.ones((200, 2)))
    found = log_proof(log, np.full(2, 1 / 2), Training(noise=noise), 10.0)
    square, squares = 1.0, []
    for count, lr in found.steps:
        for _ in range(count):
            squares.append(square)
            for _ in range(found.proof.local_steps):
                square = (1 - float(lr) / 10) ** 2 * square + float(lr) ** 2 * noise**2 / 2
    truth = np.mean(squares[-found.steps[-1][0] :])
    assert 0.3 * found.square < truth <= found.square


def test_everybody_always_there_is_gradient_descent() -> None:
    """Each round multiplies the square by (1 - eta mu)^2 at most, K times."""
    log = AvailabilityLog.from_masks(np.ones((200, 3)))
    found = log_proof(log, np.full(3, 1 / 3), TRAINING, 10.0)
    squares = [1.0]
    for count, lr in found.steps:
        rate = max(abs(1 - float(lr)), abs(1 - float(lr) / 10)) ** (2 * found.proof.local_steps)
        squares += [squares[-1] * rate**k for k in range(1, count + 1)]
    truth = np.mean(squares[:-1][-found.steps[-1][0] :])
    assert truth < found.square < 0.05


def test_two_phases_are_proved_where_they_are_better() -> None:
    found, _ = _proved(MarkovOnOff([0.5] * 5, 0.3))
    assert isinstance(found.certificate, PhasesCertificate)
    found.certificate.verify()
    (_, first), (measured, second) = found.steps
    assert second < first
    assert f"root mean square over the last {measured} of 300 rounds" in found.sentence
    assert f"and then of {float(second):g}/L" in found.sentence
    assert found.document()["mean_over"] == measured
    said = found.certificate.proof.bound
    assert found.square == said["start"] + said["heterogeneity"]


@dataclass(frozen=True)
class _Steps:
    """Steps as listed."""

    values: tuple[float, ...]

    def at(self, round_index: int) -> float:
        """Return eta_t."""
        return self.values[round_index - 1]
