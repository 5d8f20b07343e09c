"""Chains of clients: closed forms of two states, products, draws against probabilities."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.participation import FiniteChain, MarkovOnOff
from fltheory.participation.chain_structure import stationary_law

DRAWS = 40_000


@st.composite
def on_offs(draw: st.DrawFn, most_clients: int = 4) -> MarkovOnOff:
    """Clients of any availability strictly between 0 and 1 and any correlation they allow."""
    n_clients = draw(st.integers(1, most_clients))
    pi = np.array([draw(st.floats(0.02, 0.98)) for _ in range(n_clients)])
    least = -np.minimum(pi / (1 - pi), (1 - pi) / pi)
    share = np.array([draw(st.floats(0.05, 0.95)) for _ in range(n_clients)])
    return MarkovOnOff(pi, least + share * (1 - least))


def two_states(pi: float, nu: float) -> np.ndarray:
    """Return the matrix with stationary law (1 - pi, pi) and eigenvalues 1 and nu."""
    return np.array([[1 - (1 - nu) * pi, (1 - nu) * pi], [(1 - nu) * (1 - pi), pi + nu * (1 - pi)]])


@pytest.mark.parametrize(
    ("pi", "nu"),
    [
        ("0.99999999731", "0.3"),
        ("0.99999731", "-1.23e-6"),
        ("1e-13", "0.99999999731"),
        ("0.3", "0"),
    ],
)
@pytest.mark.parametrize("start", [None, [1], [0]])
def test_no_chance_is_a_difference_of_floats(pi: str, nu: str, start: list[int] | None) -> None:
    p, correlation = Fraction(pi), Fraction(nu)
    first = p if start is None else Fraction(start[0])
    stays, comes = correlation + (1 - correlation) * p, (1 - correlation) * p
    chains = MarkovOnOff([float(pi)], float(nu), start=start)
    found = chains.client_chains
    expected = {
        "first": first,
        "stays": stays,
        "comes": comes,
        "absent": 1 - first,
        "leaves": 1 - stays,
        "lacks": 1 - comes,
    }
    for name, chance in expected.items():
        value = Fraction(float(getattr(found, name)[0]))
        assert abs(value - chance) <= Fraction(2) ** -51 * chance
    assert chains.stays == found.stays


@given(on_offs(most_clients=1))
def test_one_client_has_its_law_and_eigenvalue(chains: MarkovOnOff) -> None:
    """P^t = 1 pi' + nu^t (I - 1 pi'), the closed form of two states."""
    pi, nu = float(chains.availability[0]), float(chains.correlation[0])
    matrix = two_states(pi, nu)
    np.testing.assert_allclose(
        matrix, [[1 - chains.comes[0], chains.comes[0]], [1 - chains.stays[0], chains.stays[0]]]
    )
    law = np.array([1 - pi, pi])
    np.testing.assert_allclose(law @ matrix, law, rtol=1e-13)
    for rounds in range(6):
        power = np.linalg.matrix_power(matrix, rounds)
        np.testing.assert_allclose(power, law + nu**rounds * (np.eye(2) - law), atol=1e-13)
        distance = np.abs(power - law).max()
        assert distance <= chains.mixing.factor * abs(nu) ** rounds + 1e-13
    assert chains.mixing.second_eigenvalue == abs(nu)


@given(on_offs())
def test_the_product_is_never_built_but_agrees(chains: MarkovOnOff) -> None:
    chain = chains.as_chain()
    np.testing.assert_allclose(chain.marginals, chains.marginals, rtol=1e-12)
    np.testing.assert_allclose(chain.pair_inclusions, chains.pair_inclusions, rtol=1e-12)
    assert chain.n_outcomes == chains.n_outcomes
    ours = {tuple(mask): probability for probability, mask in chains.outcomes()}
    for probability, mask in chain.outcomes():
        assert ours[tuple(mask)] == pytest.approx(probability, rel=1e-12)
    eigenvalues = np.sort(np.abs(np.linalg.eigvals(chain.transition)))
    assert chains.mixing.second_eigenvalue == pytest.approx(eigenvalues[-2], abs=1e-9)
    for rounds in range(12):
        distance = np.abs(np.linalg.matrix_power(chain.transition, rounds) - chain.stationary).max()
        assert distance <= chains.mixing.factor * chains.mixing.second_eigenvalue**rounds + 1e-12


def test_many_clients_have_a_rate() -> None:
    """CA-Fed's 24 clients, and a million: lambda(P) is the largest of the clients'."""
    nu = np.array([0.9] * 6 + [0.0] * 18)
    chains = MarkovOnOff(np.repeat([0.9, 0.1], 12), nu)
    assert chains.mixing.second_eigenvalue == 0.9
    assert chains.mixing.rate == 0.95
    assert chains.mixing.factor == pytest.approx(24 * 0.9)
    assert MarkovOnOff(np.full(10**6, 0.5), 0.25).mixing.rate == 0.625


def test_clients_that_never_change_do_not_count() -> None:
    chains = MarkovOnOff([0.0, 1.0, 0.5], [0.99, 0.99, 0.3])
    assert chains.mixing.second_eigenvalue == 0.3
    assert chains.n_outcomes == 2
    assert {tuple(mask) for _, mask in chains.outcomes()} == {(0, 1, 0), (0, 1, 1)}
    assert chains.as_chain().n_states == 2
    constant = MarkovOnOff([0.0, 1.0, 1.0], 0.5)
    assert constant.fixed_size == 2
    assert constant.independent
    with pytest.raises(ValueError, match="start must agree with the clients that always"):
        MarkovOnOff([1.0, 0.5], 0.3, start=[0, 1]).as_chain()


def _within(count: int, of: int, probability: float) -> bool:
    """Whether a binomial count lies within 8 deviations and one of its mean."""
    deviation = math.sqrt(of * probability * (1 - probability))
    return abs(count - of * probability) < 8 * deviation + 1


def test_draws_follow_the_transition_probabilities() -> None:
    """From every round to the next each client stays and comes with its probability.

    40 000 runs, 3 clients, 3 rounds: 27 binomials with deviations d above 30. By Bernstein's
    inequality one leaves 8 deviations with probability at most 2 exp(-32 / (1 + 8/(3 d))) <
    4e-13, so that a false alarm has one below 2e-11.
    """
    chains = MarkovOnOff([0.3, 0.6, 0.5], [0.8, -0.3, 0.0])
    rounds = list(islice(chains.masks(np.random.default_rng(21), DRAWS), 4))
    for now, following in pairwise(rounds):
        for client in range(3):
            there = now[:, client]
            assert _within(int(there.sum()), DRAWS, float(chains.availability[client]))
            stayed = int((there & following[:, client]).sum())
            assert _within(stayed, int(there.sum()), float(chains.stays[client]))
            came = int((~there & following[:, client]).sum())
            assert _within(came, int((~there).sum()), float(chains.comes[client]))


def test_draws_of_a_chain_follow_its_matrix() -> None:
    """Three states at first and nine moves in three rounds, as above: below 2e-11."""
    matrix = np.array([[0.1, 0.6, 0.3], [0.5, 0.5, 0.0], [0.2, 0.2, 0.6]])
    chain = FiniteChain(matrix, np.eye(3))
    rounds = [
        drawn.argmax(axis=1) for drawn in islice(chain.masks(np.random.default_rng(22), DRAWS), 4)
    ]
    for state in range(3):
        assert _within(int((rounds[0] == state).sum()), DRAWS, float(chain.stationary[state]))
    for now, following in pairwise(rounds):
        for origin, target in np.ndindex(3, 3):
            of = now == origin
            count = int((of & (following == target)).sum())
            assert _within(count, int(of.sum()), float(matrix[origin, target]))


def test_a_given_start_is_the_first_round() -> None:
    first = next(MarkovOnOff([0.1, 0.9], 0.5, start=[1, 0]).masks(np.random.default_rng(0), 5))
    np.testing.assert_array_equal(first, [[True, False]] * 5)
    chain = FiniteChain([[0.5, 0.5], [0.25, 0.75]], np.eye(2), start=1)
    np.testing.assert_array_equal(next(chain.masks(np.random.default_rng(0), 3)), [[0, 1]] * 3)
    np.testing.assert_array_equal(chain.initial, [0.0, 1.0])
    assert not chain.independent
    assert MarkovOnOff([0.5, 0.5], 0.5, start=[1, 0]).as_chain().state_masks[
        MarkovOnOff([0.5, 0.5], 0.5, start=[1, 0]).as_chain().start
    ].tolist() == [True, False]


def test_clusters_share_a_chain() -> None:
    """Two states for three clients: clients 0 and 1 come and go together, client 2 opposes."""
    chain = FiniteChain(two_states(0.4, 0.9), [[0, 0, 1], [1, 1, 0]])
    np.testing.assert_allclose(chain.marginals, [0.4, 0.4, 0.6], rtol=1e-14)
    expected = [[0.4, 0.4, 0.0], [0.4, 0.4, 0.0], [0.0, 0.0, 0.6]]
    np.testing.assert_allclose(chain.pair_inclusions, expected, atol=1e-15)
    assert chain.mixing.second_eigenvalue == pytest.approx(0.9, rel=1e-14)
    assert chain.fixed_size is None
    assert FiniteChain(two_states(0.4, 0.9), np.eye(2)).fixed_size == 1


def test_states_with_the_same_clients_are_one_outcome() -> None:
    matrix = np.array([[0.1, 0.6, 0.3], [0.5, 0.5, 0.0], [0.2, 0.2, 0.6]])
    chain = FiniteChain(matrix, [[1, 0], [0, 1], [0, 1]])
    outcomes = {tuple(mask): probability for probability, mask in chain.outcomes()}
    law = stationary_law(matrix)
    assert outcomes == pytest.approx({(True, False): law[0], (False, True): law[1] + law[2]})


def test_a_chain_that_hardly_moves_mixes_slowly() -> None:
    """nu = 1 - 1e-9: the law keeps its digits, and lambda(P) = 1 - 5e-10."""
    chain = FiniteChain(two_states(0.3, 1 - 1e-9), [[0], [1]])
    assert chain.marginals[0] == pytest.approx(0.3, rel=1e-7)
    assert 1 - chain.mixing.rate == pytest.approx(5e-10, rel=1e-6)
    assert chain.mixing.factor == pytest.approx(math.sqrt(0.7 / 0.3), rel=1e-7)


def test_a_second_eigenvalue_of_one_to_rounding_is_refused() -> None:
    matrix = np.array([[1 - 1e-17, 1e-17], [1e-17, 1 - 1e-17]])
    with pytest.raises(
        ArithmeticError, match="second eigenvalue must be below 1 by more than rounding"
    ):
        _ = FiniteChain(matrix, [[0], [1]]).mixing


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.5], 0.0), {}, r"availability must be in \[0, 1\], got 1\.5 for client 0"),
        (([0.5, -0.1], 0.0), {}, r"availability must be in \[0, 1\], got -0\.1 for client 1"),
        (([], 0.0), {}, r"availability must have shape \(N,\) with N >= 1, got \(0,\)"),
        (([0.5, 0.5], [0.1]), {}, r"correlation must have shape \(2,\), got \(1,\)"),
        (([0.5, 0.5], [0.1, 1.0]), {}, r"correlation must be in \(-1, 1\), got 1 for client 1"),
        (([0.5], -1.0), {}, r"correlation must be in \(-1, 1\), got -1 for client 0"),
        (([0.5, 0.2], -0.3), {}, r"correlation must be at least -pi/.* got -0\.3 for client 1"),
        (([0.9], -0.2), {}, r"correlation must be at least -pi/.* got -0\.2 for client 0"),
        (([0.5], np.nan), {}, r"correlation must be finite, got nan"),
        (([0.5], 0.0), {"start": [2]}, r"start must be 0 or 1, got 2 for client 0"),
        (([0.5], 0.0), {"start": [1, 0]}, r"start must have shape \(1,\), got \(2,\)"),
    ],
)
def test_bad_on_off_chains_are_named(arguments, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MarkovOnOff(*arguments, **options)


HALVES = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("transition", "masks", "options", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.4]], np.eye(2), {}, r"rows that sum to 1, got 0\.9 for row 1"),
        ([[1.5, -0.5], [0.5, 0.5]], np.eye(2), {}, r"not be negative, got -0\.5 in row 0"),
        ([[0.5, 0.5]], np.eye(2), {}, r"transition must have shape \(M, M\), got \(1, 2\)"),
        (np.eye(2), np.eye(2), {}, r"irreducible, got state 1 that cannot be reached from state 0"),
        ([[0, 1], [1, 0]], np.eye(2), {}, r"aperiodic, got a chain of period 2"),
        (HALVES, np.eye(3), {}, r"state_masks must have shape \(2, N\), got \(3, 3\)"),
        (HALVES, [[0, 1], [0, 2]], {}, r"state_masks must be 0 or 1, got 2 in row 1, column 1"),
        (HALVES, np.eye(2), {"start": 2}, r"start must be a state below 2, got 2"),
        (HALVES, np.eye(2), {"start": -1}, r"start must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_chains_are_named(transition, masks, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FiniteChain(transition, masks, **options)


def test_large_products_are_refused() -> None:
    chains = MarkovOnOff(np.full(11, 0.5), 0.1)
    with pytest.raises(ValueError, match=r"at most 10 clients .* got 11"):
        chains.as_chain()
    assert repr(chains) == "MarkovOnOff(11 clients)"
