"""Shapley's axioms, all orders of arrival, and the closed form for quadratic games."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.scripts.shapley import (
    coalitions,
    quadratic_shapley_values,
    shapley_values,
)

players = st.integers(1, 5)
seeds = st.integers(0, 10**6)


def game(n: int, seed: int) -> np.ndarray:
    """Return a random game whose empty coalition is worth nothing."""
    worth = np.random.default_rng(seed).standard_normal(2**n)
    worth[0] = 0.0
    return worth


def index(members) -> int:
    return sum(1 << player for player in members)


@given(n=players, seed=seeds)
def test_mean_over_all_orders_of_arrival(n: int, seed: int) -> None:
    worth, total = game(n, seed), np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        for place, player in enumerate(order):
            total[player] += worth[index(order[: place + 1])] - worth[index(order[:place])]
    np.testing.assert_allclose(shapley_values(worth), total / len(orders), atol=1e-12)


@given(n=players, seed=seeds)
def test_efficiency(n: int, seed: int) -> None:
    worth = game(n, seed)
    assert shapley_values(worth).sum() == pytest.approx(worth[-1], abs=1e-12)


@given(n=st.integers(2, 5), seed=seeds)
def test_symmetry(n: int, seed: int) -> None:
    """Two players who can stand for each other have one value."""
    worth = game(n, seed)
    members = coalitions(n)
    swapped = members.copy()
    swapped[:, [0, 1]] = members[:, [1, 0]]
    alike = 0.5 * (worth + worth[[index(np.flatnonzero(row)) for row in swapped]])
    values = shapley_values(alike)
    assert values[0] == pytest.approx(values[1], abs=1e-12)


@given(n=st.integers(2, 5), seed=seeds, own=st.floats(-2, 2))
def test_a_player_who_adds_his_own_to_every_coalition_has_just_that(
    n: int, seed: int, own: float
) -> None:
    """The dummy axiom; with nothing of his own, a null player."""
    without = game(n - 1, seed)
    worth = np.concatenate([without, without + own])
    values = shapley_values(worth)
    assert values[-1] == pytest.approx(own, abs=1e-12)
    np.testing.assert_allclose(values[:-1], shapley_values(without), atol=1e-12)


@given(n=players, seeds=st.tuples(seeds, seeds), factor=st.floats(-3, 3))
def test_additivity(n: int, seeds: tuple[int, int], factor: float) -> None:
    first, second = game(n, seeds[0]), game(n, seeds[1])
    expected = shapley_values(first) + factor * shapley_values(second)
    np.testing.assert_allclose(shapley_values(first + factor * second), expected, atol=1e-11)


@given(n=players, seed=seeds)
def test_quadratic_games_have_a_closed_form(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    linear, quadratic = rng.standard_normal(n), rng.standard_normal((n, n))
    inside = coalitions(n).astype(float)
    worth = inside @ linear + np.einsum("si,ij,sj->s", inside, quadratic, inside)
    expected = quadratic_shapley_values(linear, quadratic)
    np.testing.assert_allclose(shapley_values(worth), expected, atol=1e-12)


def test_the_glove_game() -> None:
    """One left glove, two right ones, a pair is worth 1: 2/3, 1/6, 1/6 (Shapley and Shubik)."""
    worth = [0, 0, 0, 1, 0, 1, 0, 1]
    np.testing.assert_allclose(shapley_values(worth), [2 / 3, 1 / 6, 1 / 6], rtol=1e-14)


@pytest.mark.parametrize("worth", [[], [1.0], [1.0, 2.0, 3.0], np.zeros((2, 2)), np.zeros(2**21)])
def test_a_game_has_a_worth_for_every_coalition(worth) -> None:
    with pytest.raises(ValueError, match=r"worth must have 2\^N entries, N from 1 to 20"):
        shapley_values(worth)


def test_worths_are_numbers() -> None:
    with pytest.raises(ValueError, match="worth"):
        shapley_values([0.0, np.nan])
