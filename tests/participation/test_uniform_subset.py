"""Uniform subsets: probabilities against enumeration, draws against probabilities."""

from __future__ import annotations

import math
from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.participation import UniformSubset


@st.composite
def subsets(draw: st.DrawFn) -> UniformSubset:
    n_clients = draw(st.integers(1, 9))
    excluded = draw(st.sets(st.integers(0, n_clients - 1), max_size=n_clients - 1))
    size = draw(st.integers(1, n_clients - len(excluded)))
    return UniformSubset(n_clients, size, excluded=excluded)


@given(subsets())
def test_probabilities_are_those_of_the_outcomes(participation: UniformSubset) -> None:
    outcomes = list(participation.outcomes())
    probabilities = np.array([probability for probability, _ in outcomes])
    masks = np.array([mask for _, mask in outcomes], dtype=float)
    assert len(outcomes) == participation.n_outcomes
    np.testing.assert_allclose(probabilities.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(probabilities @ masks, participation.marginals, atol=1e-14)
    pairs = np.einsum("s,si,sj->ij", probabilities, masks, masks)
    np.testing.assert_allclose(pairs, participation.pair_inclusions, atol=1e-14)


@given(subsets())
def test_outcomes_are_all_subsets_of_the_eligible(participation: UniformSubset) -> None:
    eligible = sorted(set(range(participation.n_clients)) - set(participation.excluded))
    np.testing.assert_array_equal(participation.eligible, eligible)
    assert participation.fixed_size == participation.size
    found = {tuple(np.flatnonzero(mask).tolist()) for _, mask in participation.outcomes()}
    assert found == set(combinations(eligible, participation.size))


@given(subsets(), st.integers(1, 20), st.integers(0, 100))
def test_draws_are_outcomes(participation: UniformSubset, replicas: int, seed: int) -> None:
    for masks in islice(participation.masks(np.random.default_rng(seed), replicas), 3):
        assert masks.shape == (replicas, participation.n_clients)
        assert masks.dtype == np.bool_
        assert (masks.sum(axis=1) == participation.size).all()
        assert not masks[:, list(participation.excluded)].any()


@pytest.mark.parametrize(
    ("n_clients", "size", "excluded"),
    [(4, 1, ()), (5, 2, ()), (5, 3, ()), (6, 5, ()), (7, 3, (0, 4)), (7, 3, ()), (8, 4, (2,))],
)
def test_every_subset_is_equally_likely(
    n_clients: int, size: int, excluded: tuple[int, ...]
) -> None:
    """40 000 draws in two rounds: each subset's count lies within 8 deviations.

    A binomial of mean at least 1100 exceeds 8 deviations with probability below 1e-13;
    with at most 35 subsets, two rounds and seven cases below 1e-10.
    """
    participation = UniformSubset(n_clients, size, excluded=excluded)
    chance = 1 / math.comb(n_clients - len(excluded), size)
    deviation = math.sqrt(40_000 * chance * (1 - chance))
    masks = participation.masks(np.random.default_rng(11), 40_000)
    for drawn in islice(masks, 2):
        codes = drawn @ (1 << np.arange(n_clients))
        _, counts = np.unique(codes, return_counts=True)
        assert counts.size == participation.n_outcomes
        assert (np.abs(counts - 40_000 * chance) < 8 * deviation).all()


def test_rounds_and_replicas_are_independent() -> None:
    """Repeats of a subset among C(6, 3) = 20 come up one time in 20, within 8 deviations.

    Between rounds of a replica, and between neighbouring replicas of a round: two binomials
    of 40 000, a false alarm below 1e-13.
    """
    masks = UniformSubset(6, 3).masks(np.random.default_rng(12), 40_001)
    first, second = (drawn @ (1 << np.arange(6)) for drawn in islice(masks, 2))
    deviation = math.sqrt(40_000 * 0.05 * 0.95)
    for left, right in ((first[1:], second[1:]), (first[1:], first[:-1])):
        assert abs((left == right).sum() - 2000) < 8 * deviation


def test_all_present_is_certain() -> None:
    participation = UniformSubset(3, 3)
    assert participation.n_outcomes == 1
    np.testing.assert_array_equal(participation.pair_inclusions, np.ones((3, 3)))
    masks = next(participation.masks(np.random.default_rng(0), 4))
    assert masks.all()


def test_a_yielded_mask_is_not_written_to_again() -> None:
    for excluded in ((), (1,)):
        masks = UniformSubset(5, 2, excluded=excluded).masks(np.random.default_rng(0), 50)
        held = next(masks)
        copy = held.copy()
        next(masks)
        np.testing.assert_array_equal(held, copy)


@pytest.mark.parametrize(
    ("arguments", "excluded", "message"),
    [
        ((0, 1), (), r"n_clients must be a whole number of at least 1, got 0"),
        ((3, 0), (), r"size must be a whole number of at least 1, got 0"),
        ((3, 1.5), (), r"size must be a whole number of at least 1, got 1\.5"),
        ((3, 4), (), r"size must be at most the 3 eligible clients \(3 less 0 excluded\), got 4"),
        ((5, 4), (0, 1), r"size must be at most the 3 eligible clients \(5 less 2.*got 4"),
        ((2, 1), (0, 1), r"size must be at most the 0 eligible clients .*got 1"),
        ((3, 1), (3,), r"excluded must name distinct clients from 0 to 2, got \(3,\)"),
        ((3, 1), (1, 1), r"excluded must name distinct clients from 0 to 2, got \(1, 1\)"),
        ((3, 1), (-1,), r"excluded must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_input_is_named(
    arguments: tuple[int, int], excluded: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        UniformSubset(*arguments, excluded=excluded)


def test_replicas_are_checked() -> None:
    with pytest.raises(ValueError, match=r"replicas must be a whole number of at least 1, got 0"):
        next(UniformSubset(3, 1).masks(np.random.default_rng(0), 0))
