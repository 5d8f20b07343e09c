"""One function for the best bound of every kind of round, one for its proof."""

from __future__ import annotations

from typing import Any

import pytest

from fltheory.algorithms import FedAvg, FedVarp, Safari, WeightedFedAvg
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.worst_case import ClientClass, SmoothClass, best_bound, certificate
from fltheory.worst_case.memory import LyapunovBound, LyapunovCertificate
from fltheory.worst_case.rounds.bound import Bound
from fltheory.worst_case.rounds.certificate import Certificate

CLIENTS = ClientClass(1, "1/10")
ALONE = FedAvg(0.5, 1)
EVERYBODY = UniformSubset(3, 3)
SAGA = FedVarp(0.25, 1)


@pytest.mark.parametrize(
    ("arguments", "kind", "proof"),
    [
        ((ALONE, EVERYBODY, CLIENTS), Bound, Certificate),
        ((ALONE, EVERYBODY, SmoothClass(1)), Bound, Certificate),
        ((ALONE, Bernoulli([1.0, 0.5]), CLIENTS), Bound, Certificate),
        ((SAGA, UniformSubset(5, 1), CLIENTS), LyapunovBound, LyapunovCertificate),
    ],
)
def test_the_kind_of_a_round_decides_what_is_bounded_and_how_it_is_proved(
    arguments: tuple[Any, ...], kind: type, proof: type
) -> None:
    bound = best_bound(*arguments)
    assert isinstance(bound, kind)
    made = certificate(bound)
    assert isinstance(made, proof)
    made.verify()


def test_the_measure_of_convex_clients_may_be_the_descent() -> None:
    """The descent lemma's ``eta (1 - L eta / 2)``; strong convexity gives no less."""
    clients = ClientClass(1, "1/10", "everywhere")
    found = best_bound(ALONE, EVERYBODY, clients, measure="descent")
    assert found.decrease >= 0.375 - 1e-9
    assert best_bound(ALONE, EVERYBODY, clients, decrease="0.3").decrease == 0.3


def test_best_weights_undo_availability() -> None:
    """Weights in proportion to target over availability leave no bias, as Unbiased's do."""
    equal = WeightedFedAvg((0.5, 0.5), 0.05, 1)
    there = Bernoulli([0.9, 0.3])
    plain, best = (best_bound(equal, there, CLIENTS, best_weights=best) for best in (False, True))
    assert isinstance(best, Bound)
    assert best.floor < plain.floor
    weights = [float(group.weight) for group in best.round.groups]
    assert sum(weights) == pytest.approx(1, abs=1e-6)
    assert weights[1] / weights[0] == pytest.approx(3, rel=0.05)


def test_every_number_of_clients_is_bounded_by_its_worst() -> None:
    safari = Safari(0.5, 0.025, 0.05, 2)
    few = best_bound(safari, UniformSubset(4, 2), CLIENTS, rate="0.999")
    every = best_bound(safari, UniformSubset(4, 2), CLIENTS, rate="0.999", every_n_clients=True)
    assert every.residual >= few.residual * (1 - 1e-6)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((ALONE, EVERYBODY, CLIENTS), {"measure": "lost"}, "measure must be one of"),
        ((ALONE, EVERYBODY, CLIENTS), {"measure": "loss"}, "Bernoulli or MarkovOnOff for measure"),
        ((ALONE, EVERYBODY, SmoothClass(1)), {"rate": "0.9"}, "rate must not be given"),
        (
            (ALONE, EVERYBODY, CLIENTS),
            {"measure": "distance", "decrease": "0.1"},
            "decrease must not be given for a bound on the distance",
        ),
        ((SAGA, EVERYBODY, SmoothClass(1)), {}, "must be a ClientClass for a method with memory"),
        ((ALONE, EVERYBODY, CLIENTS), {"gap": "1", "decrease": "1"}, "gap must not be given"),
        ((ALONE, EVERYBODY, SmoothClass(1)), {"measure": "distance"}, "must have convex clients"),
    ],
)
def test_what_does_not_fit_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        best_bound(*arguments, **options)


def test_what_is_not_proved_has_no_certificate() -> None:
    undecided = best_bound(FedVarp(3.0, 1), EVERYBODY, CLIENTS)
    with pytest.raises(ArithmeticError, match="no proof was found: functions quadratic"):
        certificate(undecided)
