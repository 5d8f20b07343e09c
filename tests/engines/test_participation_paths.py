"""All sequences of participant sets: their chances add up, and what there are too many of."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.engines.participation_paths import drawn_paths, every_path
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, Participation

LONG_CYCLE = Cyclic([99_991, 2], [0, 0])


def setting(participation: Participation, rounds: int) -> Setting:
    return Setting(FedAvg(0.1, 1), random_problem(0, 2, 1), participation, rounds, [0.0])


@pytest.mark.parametrize("participation", [Bernoulli([0.5, 0.25]), MarkovOnOff([0.5, 0.25], 0.3)])
def test_chances_add_up_and_give_the_marginals(participation: Participation) -> None:
    weights, masks = every_path(setting(participation, 4))
    assert masks.shape == (4**4, 4, 2)
    assert len(np.unique(masks.reshape(4**4, 8), axis=0)) == 4**4
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(
        np.einsum("p,prn->rn", weights, masks), np.tile([0.5, 0.25], (4, 1)), rtol=1e-12
    )


def test_pairs_of_rounds_have_the_chains_correlation() -> None:
    """Cov(here now, here next) = nu pi (1 - pi)."""
    weights, masks = every_path(setting(MarkovOnOff([0.5, 0.25], 0.3), 2))
    both = np.einsum("p,pn,pn->n", weights, masks[:, 0], masks[:, 1])
    pi = np.array([0.5, 0.25])
    np.testing.assert_allclose(both - pi**2, 0.3 * pi * (1 - pi), rtol=1e-12)


def test_a_cycle_is_one_path_however_long() -> None:
    weights, masks = every_path(setting(LONG_CYCLE, 3))
    assert weights.tolist() == [1.0]
    assert masks.tolist() == [[[True, True], [False, False], [False, True]]]


def test_drawn_paths_weigh_alike() -> None:
    weights, masks = drawn_paths(setting(Bernoulli([0.5, 0.25]), 3), 10, 0)
    assert weights.tolist() == [0.1] * 10
    assert masks.shape == (10, 3, 2)


@pytest.mark.parametrize("participation", [Bernoulli([0.5, 0.5]), MarkovOnOff([0.5, 0.5], 0.3)])
def test_too_many(participation: Participation) -> None:
    with pytest.raises(
        ValueError, match=r"at most 50000 paths to enumerate.*give the number to draw"
    ):
        every_path(setting(participation, 9))
