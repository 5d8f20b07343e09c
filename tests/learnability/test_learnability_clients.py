"""Choosing clients instead of samples, against an enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from fltheory.learnability import impossibility
from fltheory.learnability.impossibility import alike_clients, drawn_clients, split_clients

SYSTEMS = [(2, 1, 1), (2, 2, 1), (3, 2, 1), (3, 2, 2), (2, 3, 1)]


def hidden_by_clients(M: int, n: int, m: int, *, drawn: bool) -> Fraction:
    """Enumerate all samples, and all sets of m clients, for one without x_2."""
    rare = Fraction(M - m, 2 * M)
    total = Fraction(0)
    for points in itertools.product((0, 1), repeat=M if drawn else M * n):
        chance = math.prod((rare if point else 1 - rare for point in points), start=Fraction(1))
        held = [points[i : i + 1] if drawn else points[i * n : (i + 1) * n] for i in range(M)]
        sets = itertools.combinations(held, m)
        if any(not any(itertools.chain(*chosen)) for chosen in sets):
            total += chance
    return total


@pytest.mark.parametrize(("M", "n", "m"), SYSTEMS)
def test_hidden_probability_by_enumeration(M: int, n: int, m: int) -> None:
    assert alike_clients(M, n, m).hidden_probability == hidden_by_clients(M, n, m, drawn=False)
    assert drawn_clients(M, n, m).hidden_probability == hidden_by_clients(M, n, m, drawn=True)


def test_split_clients_hide_for_certain_up_to_those_shut_out() -> None:
    """Of 10 clients 6 can be shut out: x_2 with up to 6 of them is hidden, with 7 it is not."""
    found = split_clients(10, 5, 4)
    assert (found.rare_probability, found.hidden_probability) == (Fraction(6, 10), 1)
    assert found.rare_probability == 8 * found.epsilon
    assert (found.minimax_probability, found.minimax_deterministic) == (Fraction(1, 2), 1)
    assert split_clients(10, 5, 4, 7).hidden_probability == 0
    assert split_clients(10, 5, 4, 7).minimax_probability == 0


def test_a_rare_point_of_small_mass_is_no_failure() -> None:
    """One of 100 clients with x_2, half shut out: an error of 1/100 is below epsilon = 1/16."""
    assert split_clients(100, 1, 50, 1).minimax_probability == 0


def test_alike_clients_cannot_hide_what_selected_samples_hide() -> None:
    """Five of ten clients must have 20 samples without x_2, with probability (3/4)^20 each."""
    by_samples, by_clients = impossibility(10, 20, 5), alike_clients(10, 20, 5)
    assert by_samples.hidden_probability > 1 - Fraction(1, 10**6)
    assert by_clients.hidden_probability < math.comb(10, 5) * Fraction(3, 4) ** 100
    values = [alike_clients(10, n, 5).hidden_probability for n in (1, 2, 5, 10)]
    assert values == sorted(values, reverse=True)
    assert alike_clients(10, 1, 5) == impossibility(10, 1, 5).__class__(
        10,
        1,
        5,
        by_samples.epsilon,
        by_samples.rare_probability,
        impossibility(10, 1, 5).hidden_probability,
    )


def test_samples_of_drawn_clients_do_not_count() -> None:
    one, many = drawn_clients(7, 1, 3), drawn_clients(7, 50, 3)
    assert one.hidden_probability == many.hidden_probability
    assert one.hidden_probability == impossibility(7, 1, 3).hidden_probability


@pytest.mark.parametrize("count", [0, 11, 1.5])
def test_bad_numbers_of_rare_clients(count: float) -> None:
    with pytest.raises(ValueError, match="rare_clients must be"):
        split_clients(10, 5, 4, count)  # type: ignore[arg-type]
