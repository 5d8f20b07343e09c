"""Stationary laws against fractions, periods and mixing against the chain's own powers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Matrix, Rational

from fltheory.participation.chain_structure import (
    check_irreducible,
    cited_factor,
    mixing,
    period,
    stationary_law,
)


@st.composite
def chains(draw: st.DrawFn) -> list[list[Fraction]]:
    """Irreducible, aperiodic chains of fractions: a cycle, a loop, and further moves."""
    size = draw(st.integers(1, 6))
    counts = [[draw(st.integers(0, 5)) for _ in range(size)] for _ in range(size)]
    for state in range(size):
        counts[state][(state + 1) % size] += 1
    counts[0][0] += 1
    return [[Fraction(count, sum(row)) for count in row] for row in counts]


def law_in_fractions(chain: list[list[Fraction]]) -> list[Fraction]:
    """Return the null vector of ``P' - I`` by SymPy's elimination."""
    size = len(chain)
    matrix = Matrix(size, size, lambda i, j: Rational(str(chain[j][i])) - int(i == j))
    (null,) = matrix.nullspace()
    return [Fraction(str(entry / sum(null))) for entry in null]


def floats(chain: list[list[Fraction]]) -> np.ndarray:
    return np.array([[float(entry) for entry in row] for row in chain])


@given(chains())
def test_the_stationary_law_is_that_of_fractions(chain) -> None:
    law = stationary_law(floats(chain))
    np.testing.assert_allclose(law, [float(p) for p in law_in_fractions(chain)], rtol=1e-13)
    np.testing.assert_allclose(law @ floats(chain), law, rtol=1e-13)


@pytest.mark.parametrize("leak", [1e-3, 1e-8, 1e-14])
def test_weakly_coupled_clusters_keep_their_digits(leak: float) -> None:
    """Second eigenvalue 1 - O(leak): two clusters of two states, law worked out in fractions.

    Elimination loses no digits, as it reads nothing but the moves between states.
    """
    coupling = Fraction(leak)
    half = Fraction(1, 2)
    chain = [
        [half - coupling, half, coupling, Fraction(0)],
        [Fraction(1, 4), Fraction(3, 4), Fraction(0), Fraction(0)],
        [Fraction(0), 3 * coupling, 1 - 4 * coupling, coupling],
        [Fraction(0), Fraction(0), Fraction(1, 8), Fraction(7, 8)],
    ]
    law = stationary_law(floats(chain))
    expected = [float(p) for p in law_in_fractions(chain)]
    np.testing.assert_allclose(law, expected, rtol=1e-14)


def test_two_states_that_hardly_move() -> None:
    law = stationary_law(np.array([[1 - 1e-15, 1e-15], [3e-15, 1 - 3e-15]]))
    np.testing.assert_allclose(law, [0.75, 0.25], rtol=1e-15)


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([(0, 1), (1, 2), (2, 0)], 3),
        ([(0, 1), (1, 0), (1, 2), (2, 1)], 2),
        ([(0, 1), (1, 2), (2, 0), (1, 0)], 1),
        ([(0, 1), (1, 2), (2, 3), (3, 0), (1, 0)], 2),
        ([(0, 0)], 1),
    ],
)
def test_the_period_divides_every_cycle(edges, expected: int) -> None:
    size = 1 + max(max(edge) for edge in edges)
    matrix = np.zeros((size, size))
    for origin, target in edges:
        matrix[origin, target] = 1
    assert period(matrix / matrix.sum(axis=1, keepdims=True)) == expected


def test_a_state_that_cannot_be_reached_is_named() -> None:
    away = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    with pytest.raises(ValueError, match="got state 2 that cannot be reached from state 0"):
        check_irreducible(away)
    with pytest.raises(ValueError, match="got state 0 that cannot be reached from state 1"):
        check_irreducible(np.array([[0.5, 0.5], [0.0, 1.0]]))


@given(chains())
def test_equation_5_holds_from_the_first_round_on(chain) -> None:
    """For 20 powers of P, each computed in fractions."""
    matrix = floats(chain)
    law = stationary_law(matrix)
    found = mixing(matrix, law)
    assert found.onset == 0
    assert found.rate == (1 + found.second_eigenvalue) / 2
    exact_law = law_in_fractions(chain)
    power = [[Fraction(i == j) for j in range(len(chain))] for i in range(len(chain))]
    for rounds in range(20):
        distance = max(abs(row[j] - exact_law[j]) for row in power for j in range(len(chain)))
        assert float(distance) <= found.factor * found.rate**rounds * (1 + 1e-12)
        power = [
            [sum(row[k] * chain[k][j] for k in range(len(chain))) for j in range(len(chain))]
            for row in power
        ]


def test_a_chain_far_from_normal_has_a_large_factor() -> None:
    """A start at the end of a line takes its length to be forgotten, though lambda_2 is small.

    From state k the chain moves to k + 1, and from the last anywhere: after t < 9 rounds
    state 0 is where it was, or nowhere near the stationary law.
    """
    size = 10
    matrix = np.eye(size, k=1)
    matrix[-1] = 1 / size
    law = stationary_law(matrix)
    found = mixing(matrix, law)
    for rounds in range(200):
        distance = np.abs(np.linalg.matrix_power(matrix, rounds) - law).max()
        assert distance <= found.factor * found.rate**rounds + 1e-14
    assert found.factor > 1


def test_a_reversible_chain_has_the_classical_factor() -> None:
    """A walk on three states in a line: |P^t - pi| <= sqrt(max pi / min pi) lambda_2^t."""
    matrix = np.array([[0.5, 0.5, 0.0], [0.1, 0.8, 0.1], [0.0, 0.5, 0.5]])
    law = np.array([1, 5, 1]) / 7
    found = mixing(matrix, law)
    assert found.second_eigenvalue == pytest.approx(0.5, rel=1e-14)
    assert found.factor == pytest.approx(np.sqrt(5), rel=1e-14)


def test_one_step_to_the_stationary_law() -> None:
    found = mixing(np.full((3, 3), 1 / 3), np.full(3, 1 / 3))
    assert found.second_eigenvalue == pytest.approx(0.0, abs=1e-15)
    assert found.factor == 1


def test_the_cited_factor_does_not_depend_on_the_order_of_states() -> None:
    """Two independent on-off clients, alike: two eigenvalues are equal, and any basis is LAPACK's.

    By hand: one client's U has columns 1 and (1, -3)', so that sum ||u_i|| ||v_i|| = sqrt(5); the
    product's is 5, times sqrt(3) for four states.
    """
    one = np.array([[0.9, 0.1], [0.3, 0.7]])
    chain, law = np.kron(one, one), np.kron([0.75, 0.25], [0.75, 0.25])
    rng = np.random.default_rng(5)
    found = []
    for _ in range(5):
        order = rng.permutation(4)
        found.append(cited_factor(chain[np.ix_(order, order)], law[order]).of_eigenbasis)
    np.testing.assert_allclose(found, 5 * np.sqrt(3), rtol=1e-12)
