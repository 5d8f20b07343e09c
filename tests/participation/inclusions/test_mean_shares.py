"""Mean shares of independent clients, against enumeration and against laws of numbers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fltheory.participation.inclusions.independent_clients import mean_shares
from fltheory.participation.inclusions.like_clients import LikeClients


@pytest.mark.parametrize("weights", [np.ones(6), np.array([1, 5, 0.1, 100, 0.5, 3])], ids=str)
@pytest.mark.parametrize("certain", [0.2, 1.0])
def test_shares_are_those_of_all_sets(weights: np.ndarray, certain: float) -> None:
    pi = np.array([0.9, 0.5, 0.1, 0.01, certain, 0.0])
    expected = np.zeros(6)
    for bits in product([0, 1], repeat=6):
        there = np.array(bits)
        chance = np.prod(np.where(there, pi, 1 - pi))
        if chance > 0 and there.any():
            expected += chance * there * weights / (there @ weights)
    np.testing.assert_allclose(mean_shares(pi, weights), expected, atol=1e-15, rtol=1e-13)


def test_shares_of_thousands_agree_with_the_law_of_their_number() -> None:
    pi = np.maximum(np.round(np.random.default_rng(0).beta(2, 3, 3000), 1), 0.05)
    like = LikeClients.of(pi)
    expected = like.availability * like.without_one(1 / np.arange(1.0, pi.size + 1))
    np.testing.assert_allclose(mean_shares(pi), expected[like.group], rtol=1e-12)


@pytest.mark.parametrize("pi", [[0.5, 1.5], [[0.5]], [-0.1]])
def test_what_is_no_probability_is_refused(pi: list[float]) -> None:
    with pytest.raises(ValueError, match="availability must be probabilities"):
        mean_shares(pi)


@pytest.mark.parametrize(("weights", "said"), [([1, 0], "above 0"), ([1, 2, 3], "shape")])
def test_other_weights_are_refused(weights: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=f"weights must (have|be) ?.*{said}"):
        mean_shares([0.5, 0.5], weights)
