"""Sources of clients' noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.engines.clients.analytic_clients import GaussianNoise
from tests.engines.impulses import CountedSilence, UnitImpulses


def test_gaussian_noise_is_the_generators_stream() -> None:
    noise = GaussianNoise(np.random.default_rng(5))
    expected = np.random.default_rng(5)
    for rows, width in ((3, 2), (7, 4), (1, 1), (4, 3)):
        drawn = noise.normal(np.arange(rows), width)
        np.testing.assert_array_equal(drawn, expected.standard_normal((rows, width)))


def test_silence_counts_the_most_that_a_replica_uses() -> None:
    """Three replicas: 2 x 3 numbers, 1 x 3 and then 2 x 5, 1 x 3; a fourth none, 16 at last."""
    silence = CountedSilence()
    assert (silence.normal(np.array([0, 1, 0, 2]), 3) == 0).all()
    assert silence.normal(np.array([1, 1]), 5).shape == (2, 5)
    assert silence.numbers_per_replica == 1 * 3 + 2 * 5
    silence.normal(np.array([3, 3, 3, 3]), 4)
    assert silence.numbers_per_replica == 4 * 4


@pytest.mark.parametrize("place", range(6))
def test_impulse_in_one_replica(place: int) -> None:
    """One replica that asks for 2 x 2, then 1 x 2 numbers: exactly its place-th is one."""
    impulses = UnitImpulses(np.array([place]))
    asked = np.concatenate(
        [impulses.normal(np.zeros(2, int), 2), impulses.normal(np.zeros(1, int), 2)]
    )
    np.testing.assert_array_equal(asked.ravel(), np.eye(6)[place])


@given(
    calls=st.lists(
        st.tuples(st.lists(st.integers(0, 3), max_size=9), st.integers(1, 3)),
        min_size=1,
        max_size=5,
    ),
    places=st.lists(st.integers(0, 12), min_size=4, max_size=4),
)
def test_impulses_follow_each_replicas_own_count(
    calls: list[tuple[list[int], int]], places: list[int]
) -> None:
    """Replica r sees one where its own running count of numbers reaches its place."""
    impulses = UnitImpulses(np.array(places))
    used = [0] * 4
    for rows, width in calls:
        answer = impulses.normal(np.array(rows, dtype=np.intp), width)
        assert answer.shape == (len(rows), width)
        for replica, numbers in zip(rows, answer, strict=True):
            for number in numbers:
                assert number == float(used[replica] == places[replica])
                used[replica] += 1


def test_numbers_of_one_draw_are_held_where_those_of_the_last_were() -> None:
    """As large an array is used again, and a larger one is made."""
    noise = GaussianNoise(np.random.default_rng(0))
    first = noise.normal(np.arange(3), 2)
    assert np.shares_memory(noise.normal(np.arange(2), 3), first)
    assert np.shares_memory(noise.normal(np.arange(2), 2), first)
    larger = noise.normal(np.arange(7), 1)
    assert larger.shape == (7, 1)
    assert not np.shares_memory(larger, first)
