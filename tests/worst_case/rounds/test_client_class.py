"""Classes of clients: numbers as fractions, in their ranges."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fltheory.worst_case import ClientClass, SmoothClass


def test_numbers_are_taken_as_written() -> None:
    clients = ClientClass(0.3, "1/30", sigma=Fraction(1, 7), dissimilarity=2)
    assert (clients.L, clients.mu) == (Fraction(3, 10), Fraction(1, 30))
    assert (clients.sigma, clients.dissimilarity) == (Fraction(1, 7), Fraction(2))


def test_the_program_is_exact_at_the_optimum_without_noise() -> None:
    assert ClientClass(1, "0.1").is_exact
    assert not ClientClass(1, "0.1", "everywhere").is_exact
    assert not ClientClass(1, "0.1", sigma=1).is_exact


def test_smooth_clients_may_curve_either_way() -> None:
    clients = SmoothClass("3/2", sigma=1)
    assert (clients.mu, clients.heterogeneity) == (Fraction(-3, 2), "everywhere")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0), "L must be above 0, got 0"),
        ((1, 1), "mu must be below L = 1, got 1"),
        ((1, -1), "mu must be at least 0, got -1"),
        ((1, "x"), "mu must be a fraction"),
        ((1, True), "mu must be a fraction"),
        ((float("inf"), 1), "L must be a fraction"),
        ((1, "1/0"), "mu must be a fraction"),
        ((1, 0, "nowhere"), "heterogeneity must be one of 'optimum', 'everywhere'"),
    ],
)
def test_a_class_out_of_range_is_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClientClass(*arguments)  # type: ignore[arg-type]
