"""A round: its numbers as fractions, and what is not covered, with the reason."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fltheory.algorithms import Constant, FedAU, FedAvg, Safari, Scaffold
from fltheory.participation import Bernoulli, MarkovOnOff, UniformSubset
from fltheory.worst_case import ClientClass, best_bound
from fltheory.worst_case.rounds.one_round import OneRound

CLIENTS = ClientClass(1, "0.1")


def test_numbers_are_taken_as_written() -> None:
    played = OneRound.of(Safari(0.1, 0.025, 0.05, 2), UniformSubset(5, 2, excluded=(0, 3)))
    assert played == OneRound(
        5, Fraction(2, 5), 2, 2, Fraction(1, 40), Fraction(1), Fraction(1, 20), Fraction(1, 10)
    )
    assert (played.n_eligible, played.n_excluded) == (3, 2)


@pytest.mark.parametrize(
    ("algorithm", "participation", "apart"),
    [
        (FedAvg(0.1, 1), UniformSubset(4, 4), False),
        (FedAvg(0.1, 2), UniformSubset(4, 4), True),
        (FedAvg(0.1, 1), UniformSubset(4, 2), True),
        (FedAvg(0.1, 1), UniformSubset(4, 3, excluded=(3,)), True),
        (Safari(0.0, 0.1, 0.1, 5), UniformSubset(4, 2, excluded=(3,)), False),
    ],
)
def test_clients_are_told_apart_unless_the_model_moves_along_the_gradient_of_f(
    algorithm: FedAvg | Safari, participation: UniformSubset, apart: bool
) -> None:
    """Where they are not, no heterogeneity is left; where they are, some is."""
    assert OneRound.of(algorithm, participation).tells_clients_apart is apart
    found = best_bound(algorithm, participation, CLIENTS)
    assert (found.heterogeneity > 0) is apart


def test_the_variance_of_a_sample_without_replacement() -> None:
    """(n - m)/(m (n - 1)): zero for everybody, and 1/m at most."""
    for n, m, value in ((5, 5, 0), (5, 1, 1), (5, 2, Fraction(3, 8)), (1, 1, 0)):
        played = OneRound.of(FedAvg(0.1, 1), UniformSubset(n, m))
        assert played.sampling_variance == value
        assert played.for_every_n_clients().sampling_variance == Fraction(1, m)


@pytest.mark.parametrize(
    ("algorithm", "participation", "message"),
    [
        (
            FedAvg(0.1, 1),
            MarkovOnOff([0.5, 0.5], 0.5),
            "MarkovOnOff: its rounds depend on the past",
        ),
        (FedAvg(0.1, 1), Bernoulli([0.5, 0.5]), "Bernoulli: clients must be interchangeable"),
        (FedAU(0.1, 1, cutoff=2), UniformSubset(2, 1), "FedAU: its weights are random"),
        (Scaffold(0.1, 1), UniformSubset(2, 1), "Scaffold: fltheory has no form of its round"),
    ],
)
def test_what_is_not_covered_is_refused_with_the_reason(
    algorithm: object, participation: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        OneRound.of(algorithm, participation)  # type: ignore[arg-type]


def test_schedules_and_projections_are_refused() -> None:
    from fltheory.algorithms import Projected, Scheduled
    from fltheory.problems import Ball

    scheduled = Scheduled(FedAvg(0.1, 1), Constant(0.1))
    with pytest.raises(ValueError, match="its rounds differ"):
        best_bound(scheduled, UniformSubset(2, 1), CLIENTS)
    with pytest.raises(ValueError, match="a projection is not a linear map"):
        best_bound(Projected(FedAvg(0.1, 1), Ball([0.0], 1.0)), UniformSubset(2, 1), CLIENTS)
