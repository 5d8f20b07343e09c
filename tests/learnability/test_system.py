"""Learning problems."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fltheory.learnability import FederatedSystem, Source
from fltheory.learnability.complexity import cited_complexity
from fltheory.learnability.populations import as_population, uniform
from fltheory.learnability.system import (
    ClientsPerServer,
    DisagreementCase,
    Fixed,
    PowerOfSize,
    ServerAssistedSystem,
    ServerOf,
    ShareOfServer,
    TailCase,
    TailFamily,
    UniformPair,
    exact_effort,
)

P = as_population(Source(uniform(0, 1), "1/2"))
NOISY = as_population(Source(uniform(0, 1), "1/2", scale="1/2"))


def system(clients=P, sizes=(10, 100), split=None) -> ServerAssistedSystem:
    return ServerAssistedSystem(P, P, Fixed(clients), sizes, split or ShareOfServer(Fraction(1, 5)))


def test_splits() -> None:
    assert ShareOfServer(Fraction(1, 5))(100) == (20, 80)
    assert ShareOfServer(Fraction(1, 100))(10) == (1, 9)
    assert ServerOf(7)(100) == (7, 93)
    assert ClientsPerServer(4)(30) == (30, 120)
    assert PowerOfSize(3.0, 0.5)(100) == 0.3
    assert exact_effort(FederatedSystem(3, 7, 1)) == 21


def test_training_is_the_mixture_in_proportion() -> None:
    far = as_population(Source(uniform(0, 2), "1/2"))
    assert system(far).training(10).weights == (Fraction(4, 5), Fraction(1, 5))
    assert system(far, split=ServerOf(10)).training(100).weights == (
        Fraction(9, 10),
        Fraction(1, 10),
    )


def test_noise_is_seen_anywhere() -> None:
    assert system().is_noiseless
    assert not system(NOISY).is_noiseless
    assert not system(as_population(Source(uniform(0, 1), "1/3"))).is_noiseless


def test_complexity_is_of_the_servers_samples() -> None:
    assert system().complexity(100) == cited_complexity(20, 0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FederatedSystem(3, 1, 3), "m must be below M = 3"),
        (lambda: UniformPair(0, 1, "1/2", 2, "1/2"), "must have a <= c <= target <= d <= b"),
        (lambda: UniformPair(0, 1, "1/4", "1/2", "3/4"), "must have a <= c <= target"),
        (lambda: system(sizes=(10,)), "sizes must be two or more in increasing order"),
        (lambda: system(sizes=(10, 5)), "sizes must be two or more in increasing order"),
        (lambda: DisagreementCase(PowerOfSize(3.0, 1.0), (2, 4)), "mass must be a probability"),
        (lambda: PowerOfSize(1.0, -400.0), r"exponent must be in \[-30, 30\], got -400.0"),
        (lambda: ShareOfServer(Fraction(1)), r"share must be inside \(0, 1\)"),
        (lambda: ServerOf(-1), "count must be a whole number"),
        (lambda: ClientsPerServer(-1), "ratio must be a whole number"),
        (lambda: TailCase(0, "1/2"), "m must be a whole number"),
        (lambda: TailCase(5, 2), r"delta must be inside \(0, 1\)"),
        (lambda: TailFamily((5, 50), 2, 0.5), r"delta must be inside \(0, 1\]"),
        (lambda: TailFamily((5, 50), 1, 0.7), r"rate must be in \[0, log 2\)"),
    ],
)
def test_bad_input(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
