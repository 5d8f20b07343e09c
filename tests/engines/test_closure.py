"""Why independent on-off clients need the whole product chain, in rational numbers.

With shared Hessians the model follows ``x' = (1 - a sum_k q_k b_k) x`` up to what does not
depend on where it began, so that ``E x_t / x_0 = E prod_r (1 - a sum_k q_k b_k(r))``. A sequence
that a recursion of m moments produces has a Hankel matrix of rank at most m (Kronecker).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

PI = (Fraction(1, 2), Fraction(1, 3), Fraction(2, 5), Fraction(3, 4))
NU = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 5), Fraction(1, 7))
Q = (Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 5))


def mean_factors(
    pi: tuple[Fraction, ...], nu: tuple[Fraction, ...], q: tuple[Fraction, ...], terms: int
) -> list[Fraction]:
    """Return ``E x_t / x_0`` for a = 1/4, summed over the paths of all bits."""
    sets = list(product((0, 1), repeat=len(pi)))

    def chance(before: tuple[int, ...], after: tuple[int, ...]) -> Fraction:
        total = Fraction(1)
        for k, (b, c) in enumerate(zip(before, after, strict=True)):
            comes = nu[k] * b + (1 - nu[k]) * pi[k]
            total *= comes if c else 1 - comes
        return total

    moves = [[chance(before, after) for after in sets] for before in sets]
    law = []
    for bits in sets:
        weight = Fraction(1)
        for k, b in enumerate(bits):
            weight *= pi[k] if b else 1 - pi[k]
        law.append(weight)
    factors = []
    for _ in range(terms):
        factors.append(sum(law, Fraction(0)))
        shrunk = [
            w * (1 - Fraction(1, 4) * sum(q_k * b for q_k, b in zip(q, bits, strict=True)))
            for w, bits in zip(law, sets, strict=True)
        ]
        law = [
            sum((shrunk[i] * moves[i][j] for i in range(len(sets))), Fraction(0))
            for j in range(len(sets))
        ]
    return factors


def rank(rows: list[list[Fraction]]) -> int:
    found = 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(found, len(rows)) if rows[i][column] != 0), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for i in range(found + 1, len(rows)):
            factor = rows[i][column] / rows[found][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[found], strict=True)]
        found += 1
    return found


def hankel_rank(sequence: list[Fraction]) -> int:
    size = len(sequence) // 2
    return rank([sequence[i : i + size] for i in range(size)])


@pytest.mark.parametrize(("n_clients", "pairs"), [(3, 7), (4, 11)])
def test_the_mean_alone_needs_every_product_of_bits(n_clients: int, pairs: int) -> None:
    """2^N moments; with bits and pairs of bits there are 1 + N + N (N - 1)/2, and fewer."""
    chosen = (PI[:n_clients], NU[:n_clients], Q[:n_clients])
    sequence = mean_factors(*chosen, 2 * (2**n_clients + 1))
    assert hankel_rank(sequence) == 2**n_clients > pairs


@pytest.mark.parametrize("n_clients", [3, 4])
def test_clients_that_are_alike_need_only_their_number(n_clients: int) -> None:
    chosen = ((PI[1],) * n_clients, (NU[0],) * n_clients, (Q[0],) * n_clients)
    assert hankel_rank(mean_factors(*chosen, 2 * (n_clients + 3))) == n_clients + 1
