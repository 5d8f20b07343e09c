"""Distance of participation from uniform sampling."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.participation import Bernoulli, Cyclic, FiniteChain, MarkovOnOff, UniformSubset
from fltheory.participation.base import mean_size
from fltheory.participation.uniformity import distance_from_uniform


@pytest.mark.parametrize(
    ("participation", "size", "distance"),
    [
        (UniformSubset(50, 20), 20, 0.0),
        (UniformSubset(4, 4), 4, 0.0),
        # Pairs of three out of six pairs of four.
        (UniformSubset(4, 2, excluded=(1,)), 2, 1 / 2),
        # Two of four by coins: six of sixteen outcomes have two, each 1/16 where uniform is 1/6.
        (Bernoulli([0.5] * 4), 2, 1 - 6 / 16),
        (Bernoulli([1.0] * 3), 3, 0.0),
        (Bernoulli([0.5, 0.6]), 1.1, 1.0),
        (MarkovOnOff([0.5] * 4, 0.9), 2, 1 - 6 / 16),
        (Cyclic([3] * 3, [0, 1, 2]), 1, 0.0),
        # Client 0 there for two rounds in four, the others for one each.
        (Cyclic([4] * 3, [0, 2, 1], [2, 1, 1]), 1, 1 / 2 - 1 / 3),
    ],
)
def test_against_hand_counts(participation, size: float, distance: float) -> None:
    assert mean_size(participation) == pytest.approx(size)
    assert distance_from_uniform(participation) == pytest.approx(distance, abs=1e-15)


def test_a_chain_of_uniform_draws_is_uniform() -> None:
    masks = np.array([mask for _, mask in UniformSubset(5, 2).outcomes()])
    chain = FiniteChain(np.full((10, 10), 0.1), masks)
    assert distance_from_uniform(chain) == 0.0


def test_too_many_sets_are_refused() -> None:
    with pytest.raises(ValueError, match=r"at most 65536 participant sets .* got 262144"):
        distance_from_uniform(Bernoulli([0.5] * 17 + [1.0, 0.5]))
