"""All sequences of participant sets: probabilities that add up, and laws of each round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.engines.participant_paths import all_paths, drawn_paths
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset


@given(st.floats(0.05, 0.95), st.floats(0.0, 0.9), st.integers(1, 6))
def test_paths_of_a_stationary_chain_have_its_marginals_in_every_round(
    p: float, nu: float, rounds: int
) -> None:
    chances, masks = all_paths(MarkovOnOff([p, 0.5], nu), rounds)
    assert len(chances) == 4**rounds
    assert chances.sum() == pytest.approx(1, rel=1e-12)
    presence = np.einsum("p,prn->rn", chances, masks)
    np.testing.assert_allclose(presence, np.tile([p, 0.5], (rounds, 1)), rtol=1e-11)


def test_transitions_are_the_chains() -> None:
    chances, masks = all_paths(MarkovOnOff([0.25], 0.2), 2)
    stays, comes = 0.4, 0.2
    found = {
        tuple(mask[:, 0].tolist()): chance for chance, mask in zip(chances, masks, strict=True)
    }
    expected = {
        (False, False): 0.75 * (1 - comes),
        (False, True): 0.75 * comes,
        (True, False): 0.25 * (1 - stays),
        (True, True): 0.25 * stays,
    }
    assert found == pytest.approx(expected, rel=1e-14)


def test_independent_rounds() -> None:
    chances, masks = all_paths(Bernoulli([0.3, 1.0]), 3)
    assert chances.sum() == pytest.approx(1, rel=1e-14)
    np.testing.assert_allclose(np.einsum("p,prn->rn", chances, masks)[:, 0], 0.3, rtol=1e-14)


def test_a_cycle_has_one_path() -> None:
    cycles = Cyclic([3, 4], [2, 0])
    chances, masks = all_paths(cycles, 500)
    assert chances.tolist() == [1.0]
    stream = cycles.masks(np.random.default_rng(0), 1)
    assert all((next(stream)[0] == mask).all() for mask in masks[0])


def test_a_long_cycle_has_one_path_too() -> None:
    chances, masks = all_paths(Cyclic([99_991, 2], [0, 0]), 3)
    assert chances.tolist() == [1.0]
    assert masks.tolist() == [[[True, True], [False, False], [False, True]]]


@pytest.mark.parametrize(
    ("participation", "rounds"),
    [
        (Bernoulli([0.5] * 4), 4),
        (Bernoulli([0.5] * 17), 1),
        (UniformSubset(6, 3), 4),
        (MarkovOnOff([0.5] * 4, 0.5), 4),
        (MarkovOnOff([0.5] * 17, 0.5), 1),
        (MarkovOnOff([0.5] * 40, 0.5), 1),
    ],
)
def test_too_many_paths(participation, rounds: int) -> None:
    assert all_paths(participation, rounds) is None


def test_drawn_paths_repeat_with_the_seed() -> None:
    first, again, other = (drawn_paths(Bernoulli([0.5] * 3), 6, 20, seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.shape == (20, 6, 3)
