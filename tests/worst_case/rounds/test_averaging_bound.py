"""Weighted averaging: against closed forms, all sets of clients, the exact engine, and itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fltheory.algorithms import CAFed, FedAU, FedAvg, Mifa, Unbiased, WeightedFedAvg
from fltheory.engines import Setting, exact
from fltheory.participation import Bernoulli, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.worst_case import ClientClass, SmoothClass, checker, read_proof
from fltheory.worst_case.rounds.best_settings import least_floor_weights
from fltheory.worst_case.rounds.bound import Bound, best_bound_of
from fltheory.worst_case.rounds.certificate import certificate, proved
from fltheory.worst_case.rounds.measure import DESCENT, Claim
from fltheory.worst_case.rounds.one_round import AvailabilityGroup, AveragingRound
from tests.drawn import in_turn
from tests.worst_case.full_averaging_program import least_averaging

CLIENTS = ClientClass(1, "0.1")
AVAILABLE = [0.9, 0.9, 0.2]
EQUAL = [1 / 3] * 3


def group(count: int, available: str, target: str, weight: str = "1") -> AvailabilityGroup:
    return AvailabilityGroup(count, Fraction(available), Fraction(target), Fraction(weight))


def played(
    *groups: AvailabilityGroup, averaging: str = "weights", steps: int = 2, lr: str = "1/8"
) -> AveragingRound:
    return AveragingRound(groups, averaging, steps, Fraction(lr), Fraction(1))  # type: ignore[arg-type]


ROUNDS = [
    played(group(2, "1/2", "1/2", "1/2"), steps=3),
    played(group(1, "9/10", "1/3", "1/4"), group(2, "1/5", "1/3", "1")),
    played(group(2, "9/10", "1/8", "1/3"), group(2, "1/3", "3/8", "1/2"), steps=3),
    played(group(1, "1/2", "1/4"), group(1, "1", "1/4"), group(2, "1/5", "1/4"), steps=2),
    played(group(2, "9/10", "1/8"), group(2, "1/3", "3/8"), averaging="present", steps=3),
    played(group(1, "1/2", "2/5"), group(3, "1/5", "1/5"), averaging="present"),
    played(group(3, "1/2", "1/3"), averaging="present", steps=4),
]


@pytest.mark.parametrize(("a_round", "kind"), in_turn(ROUNDS, ["optimum", "everywhere"], of=2))
def test_the_reduced_program_has_the_full_ones_value(a_round: AveragingRound, kind: Any) -> None:
    clients = ClientClass(1, "1/5", kind)
    rate = Fraction(best_bound_of(a_round, clients).rate).limit_denominator(10**6)
    bound = best_bound_of(a_round, clients, rate)
    full = least_averaging(a_round, clients, rate)
    assert bound.heterogeneity == pytest.approx(full, rel=2e-6, abs=1e-7)


@pytest.mark.parametrize("a_round", ROUNDS)
def test_moments_of_weights_are_those_of_the_checker(a_round: AveragingRound) -> None:
    """Convolutions of binomial laws there, numbers of each group or products here."""
    made = certificate(best_bound_of(a_round, CLIENTS), 1e-4)
    crowds, moments = made.proof.crowds, a_round.moments
    for c, crowd in enumerate(crowds):
        count = crowd.n_clients
        assert moments.mean[c] == pytest.approx(float(crowd.mean))
        assert moments.square[c] == pytest.approx(float(crowd.square))
        if count > 1:
            spread = crowd.square - crowd.pairs[c] / (count - 1)
            assert moments.spread[c] == pytest.approx(float(spread))
        for d, pairs in enumerate(crowd.pairs):
            both = pairs + (crowd.square if c == d else 0)
            assert moments.second[c, d] == pytest.approx(float(both))
    assert a_round.noise_weight == sum(crowd.square for crowd in crowds)


def test_one_step_without_bias_in_closed_form() -> None:
    """Equal clients that are there with p: for K = 1 and weights 1/(N p) sampling is all noise."""
    p, n, eta = Fraction(1, 2), 4, Fraction(1, 10)
    a_round = played(group(n, "1/2", "1/4", "1/2"), steps=1, lr="1/10")
    # At x* itself the variance alone is left: (1-p)/p 1/N eta^2 sigma_*^2, and a rate far above
    # one makes it not worth while to begin elsewhere.
    least = float((1 - p) / p / n * eta**2)
    assert best_bound_of(a_round, CLIENTS).heterogeneity >= least
    there = best_bound_of(a_round, CLIENTS, Fraction(100))
    assert there.heterogeneity == pytest.approx(least, rel=1e-4)


def test_the_descent_of_F_is_proved_of_several_groups_and_local_steps() -> None:
    """Whatever the program leaves out is in the checker's matrices, which refuse it then."""
    groups = (group(1, p, "1/3", w) for p, w in (("9/10", "1/3"), ("3/5", "1/2"), ("3/10", "1")))
    bound = best_bound_of(played(*groups), SmoothClass(1), None, DESCENT)
    certificate(bound, 1e-4).verify()


def test_what_is_added_in_a_round_grows_with_the_square_of_dissimilarity() -> None:
    """2 x 3^2 = 18 in every round, of which 18 / (1 - 3/4) = 72 stay."""
    clients = ClientClass(1, "0.1", dissimilarity=3)
    bound = Bound(ROUNDS[0], clients, 0.75, 2.0)
    assert (bound.residual, bound.floor) == (18.0, 72.0)


def test_a_round_is_read_off_the_algorithm() -> None:
    unbiased = AveragingRound.of(Unbiased(EQUAL, AVAILABLE, 0.1, 2), Bernoulli(AVAILABLE))
    third = Fraction(1, 3)
    assert [own.n_clients for own in unbiased.groups] == [2, 1]
    assert unbiased.groups[0].target_weight == third
    assert float(unbiased.groups[0].weight) == pytest.approx(1 / 3 / 0.9)
    weighted = AveragingRound.of(
        WeightedFedAvg((0.5, 0.5, 2), 0.1, 2, server_lr=0.5), Bernoulli(AVAILABLE)
    )
    assert weighted.groups == (group(2, "9/10", "1/3", "1/2"), group(1, "1/5", "1/3", "2"))
    assert (weighted.server_lr, weighted.total_weight) == (Fraction(1, 2), 3)
    present = AveragingRound.of(FedAvg(0.1, 2), Bernoulli(AVAILABLE), [0.25, 0.25, 0.5])
    assert present.averaging == "present"
    assert present.groups[1] == group(1, "1/5", "1/2")


def test_chains_without_correlation_are_coins() -> None:
    """Of a client that is never there no weight makes up for its absence."""
    method = Unbiased(EQUAL, AVAILABLE, 0.1, 2)
    chains = MarkovOnOff(AVAILABLE, 0.0)
    assert AveragingRound.of(method, chains) == AveragingRound.of(method, Bernoulli(AVAILABLE))
    never = MarkovOnOff([0.0, *AVAILABLE[1:]], 0.0)
    with pytest.raises(
        ValueError, match="every client present with positive probability, got availability 0 for"
    ):
        AveragingRound.of(method, never)


@pytest.mark.parametrize("heterogeneity", ["optimum", "everywhere"])
@pytest.mark.parametrize(
    "algorithm",
    [
        WeightedFedAvg((0.4, 0.4, 1.5), 0.1, 3),
        Unbiased(EQUAL, AVAILABLE, 0.1, 3),
        FedAvg(0.1, 3),
    ],
)
@pytest.mark.parametrize("count", [15, pytest.param(170, marks=pytest.mark.soundness)])
def test_no_quadratic_clients_break_a_certificate(
    algorithm: Any, heterogeneity: Any, count: int
) -> None:
    """Random problems with one Hessian, by the exact engine and the algorithm's code."""
    a_round = AveragingRound.of(algorithm, Bernoulli(AVAILABLE))
    made = certificate(best_bound_of(a_round, ClientClass(1, "0.1", heterogeneity))).proof
    rate, budget = float(made.bound["rate"][0]), float(made.bound["heterogeneity"][0])
    rng = np.random.default_rng(0)
    for _ in range(count):
        curvatures = rng.uniform(0.1, 1, size=2)
        tilts = rng.normal(size=(3, 2))
        tilts -= tilts.mean(axis=0)
        setting = Setting(
            algorithm,
            QuadraticProblem(np.diag(curvatures), -tilts / curvatures),
            Bernoulli(AVAILABLE),
            1,
            rng.normal(size=2) * 10 ** rng.uniform(-1, 2),
        )
        distance = exact(setting).squared_distance
        squares = (tilts**2).sum(axis=1)
        level = squares.mean() if heterogeneity == "optimum" else squares.max()
        assert distance[1] <= (rate * distance[0] + budget * level) * (1 + 1e-9)


@pytest.mark.parametrize("a_round", ROUNDS)
def test_less_than_the_best_is_refused(a_round: AveragingRound) -> None:
    bound = best_bound_of(a_round, CLIENTS)
    certificate(bound, 1e-5).verify()
    lower = Fraction(bound.heterogeneity) * Fraction(98, 100)
    zero = Fraction(0)
    assert proved(a_round, CLIENTS, Claim(Fraction(bound.rate), lower, zero, zero)) is None


def test_weights_in_proportion_to_target_over_availability_have_no_bias() -> None:
    """Their floor goes to zero with the steps; that of FedAvg over those present does not."""
    floors = {}
    for step in (0.1, 0.01):
        for algorithm in (Unbiased(EQUAL, AVAILABLE, step, 2), FedAvg(step, 2)):
            a_round = AveragingRound.of(algorithm, Bernoulli(AVAILABLE))
            name = type(algorithm).__name__, step
            floors[name] = best_bound_of(a_round, CLIENTS).floor
    assert floors["Unbiased", 0.01] < floors["Unbiased", 0.1] / 5
    assert floors["FedAvg", 0.01] > floors["FedAvg", 0.1] / 2


def test_the_weights_of_the_least_floor_are_no_worse_than_any_on_a_grid() -> None:
    a_round = played(group(1, "9/10", "1/2", "1"), group(1, "1/5", "1/2", "1"), steps=1)
    best = best_bound_of(least_floor_weights(a_round, CLIENTS), CLIENTS)
    assert float(best.round.total_weight) == pytest.approx(2)
    for share in np.linspace(0.05, 0.95, 19):
        weights = [Fraction(2 * share), Fraction(2 * (1 - share))]
        other = best_bound_of(a_round.weighted(weights), CLIENTS)
        assert other.floor >= best.floor * (1 - 1e-4)
    made = certificate(best)
    made.verify()
    assert float(made.floor) == pytest.approx(best.floor, rel=1e-4)


def test_a_proof_is_checked_by_another_process_without_the_package(tmp_path: Path) -> None:
    made = certificate(best_bound_of(ROUNDS[1], CLIENTS))
    path = tmp_path / "proof.json"
    made.write(path)
    found = read_proof(path)
    assert found == made
    copied = shutil.copytree(Path(str(checker.__file__)).parent, tmp_path / "checker")
    call = [sys.executable, "-I", "-S", str(copied), str(path)]
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout[:6]) == (0, "proved")
    path.write_text(made.text.replace(f'"{made.proof.bound["rate"][0]}"', '"1/2"'))
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert "has a negative eigenvalue" in run.stderr


def test_a_file_of_something_else_is_no_proof(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for text in ("{}", "[1", '{"kind": "proof of another sort"}', '{"kind": []}'):
        path.write_text(text)
        assert read_proof(path) is None


@pytest.mark.parametrize(
    ("algorithm", "participation", "message"),
    [
        (FedAvg(0.1, 1), UniformSubset(2, 1), "got UniformSubset: clients must be present"),
        (CAFed([0.5, 0.5], 0.1, 1), Bernoulli([0.5, 0.5]), "got CAFed: whom it leaves out"),
        (FedAU(0.1, 1), Bernoulli([0.5, 0.5]), "got FedAU: its round is neither a sum"),
        (Mifa(0.1, 1), Bernoulli([0.5, 0.5]), "got Mifa: its round is neither a sum"),
        (Unbiased(EQUAL, AVAILABLE, 0.1, 1), Bernoulli([0.5]), "one entry for each"),
        (
            WeightedFedAvg((1.0,), 0.1, 1),
            Bernoulli([0.5, 0.5]),
            "aggregation_weights must have one entry",
        ),
    ],
)
def test_what_is_not_covered_is_refused(algorithm: Any, participation: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AveragingRound.of(algorithm, participation)


def test_targets_must_be_weights() -> None:
    for targets, message in (
        ([0.5, 0.6], "must add up to 1, got 1.1"),
        ([1.0], "one entry for each of the 2 clients"),
        ([1.0, 0.0], "target_weights must be above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            AveragingRound.of(FedAvg(0.1, 1), Bernoulli([0.5, 0.5]), targets)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: group(0, "1/2", "1"), "n_clients must be a whole number"),
        (lambda: group(1, "3/2", "1"), "availability must be at most 1"),
        (lambda: group(1, "0", "1"), "availability must be above 0"),
        (lambda: group(1, "1/2", "1", "-1"), "weight must be at least 0"),
        (lambda: played(group(2, "1/2", "1")), "must add up to 1, got 2"),
        (lambda: played(group(1, "1/2", "1", "2"), averaging="present"), "weight must be 1"),
        (lambda: played(group(1, "1/2", "1"), averaging="sum"), "averaging must be one of"),
        (lambda: played(group(1, "1/2", "1"), lr="0"), "client_lr must be above 0"),
        (lambda: played(group(1, "1/2", "1"), steps=0), "local_steps must be a whole number"),
    ],
)
def test_a_round_out_of_range_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_mean_has_no_weights_to_choose() -> None:
    with pytest.raises(ValueError, match="a_round must average with weights"):
        least_floor_weights(ROUNDS[-1], CLIENTS)


def test_one_noisy_step_has_the_noise_of_the_weights() -> None:
    """K = 1: ``eta^2 sigma^2 E sum W_i^2``; of a mean of S clients that is the mean of 1/S."""
    clients = ClientClass(1, "0.1", sigma=3)
    weighted = played(group(2, "1/2", "1/4", "2"), group(1, "1", "1/2"), steps=1, lr="1/10")
    assert best_bound_of(weighted, clients).noise == pytest.approx(0.01 * (2 * 0.5 * 4 + 1))
    mean = played(group(2, "1/2", "1/2"), averaging="present", steps=1, lr="1/10")
    bound = best_bound_of(mean, clients)
    assert bound.noise == pytest.approx(0.01 * (0.5 + 0.25 / 2))
    certificate(bound, 1e-5).verify()


def test_noise_of_several_steps_is_no_less_than_that_of_the_last() -> None:
    clients = ClientClass(1, "0.1", sigma=1)
    bound = best_bound_of(ROUNDS[1], clients)
    assert bound.noise > (1 / 8) ** 2 * float(ROUNDS[1].noise_weight)
    certificate(bound, 1e-4).verify()


def test_too_many_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="must be at most 100, got 122"):
        best_bound_of(replace(ROUNDS[1], local_steps=60), CLIENTS)
    with pytest.raises(ValueError, match="there must be at most 200 clients, got 2000"):
        best_bound_of(played(group(2000, "1/2", "1/2000"), averaging="present"), CLIENTS)
    many = [group(20, f"1/{k}", "1/80") for k in range(2, 6)]
    with pytest.raises(ValueError, match=r"at most 20000 combinations .* got 194481"):
        best_bound_of(played(*many, averaging="present"), CLIENTS)
