"""What algorithms say of their clients' pull at the limit, by sums over who may be there."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from fltheory.algorithms import (
    AdaFed,
    FedAU,
    FedAvg,
    FedAvgIS,
    FedVarp,
    Mifa,
    Scaffold,
    Unbiased,
    WeightedFedAvg,
)  # fmt: skip
from fltheory.participation import MarkovOnOff

P = np.array([0.9, 0.5, 0.2, 0.0])
ALPHA = np.array([0.4, 0.3, 0.2, 0.1])
STAND_IN = np.where(P > 0, P, 0.5)
MOVED = np.array([1.0, 2.0, 3.0, 4.0])
CHAINS = MarkovOnOff(P, [0.3, 0.6, 0.2, 0.0])


def moves(steps: int, lr: float) -> np.ndarray:
    """Tell which steps were asked about: a hundred times as many steps, and their size."""
    return MOVED * (100 * steps + lr)


ASKED = MOVED * (100 * 3 + 0.1)


def shares_of_those_there(weights: np.ndarray) -> np.ndarray:
    """E w_i 1{i there} / (sum of w over those there), over independent coins."""
    total = np.zeros(P.size)
    for there in product((0, 1), repeat=P.size):
        counted = weights * there
        if counted.sum() > 0:
            chance = np.prod(np.where(np.array(there) == 1, P, 1 - P))
            total += chance * counted / counted.sum()
    return total


EXPECTED = {
    "FedAvg": (FedAvg(0.1, 3), shares_of_those_there(np.ones(4)) * ASKED),
    "AdaFed": (
        AdaFed(ALPHA, STAND_IN, 0.1, 3),
        shares_of_those_there(ALPHA / STAND_IN) * ASKED,
    ),
    "MIFA": (Mifa(0.1, 3, start="zero"), (P > 0) * ASKED),
    "FedVARP": (FedVarp(0.1, 3), (P > 0) * ASKED),
    "SCAFFOLD": (Scaffold(0.1, 3), (P > 0) * MOVED * 101),
    "FedAvg-IS": (FedAvgIS(tuple(2 * STAND_IN / 3), 0.1, 3), 1.5 * (P > 0) * ASKED),
    "unbiased": (Unbiased(ALPHA, STAND_IN, 0.1, 3), ALPHA * (P > 0) * ASKED),
    "weighted": (WeightedFedAvg(tuple(ALPHA), 0.1, 3), P * ALPHA * ASKED),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_pulls(name: str) -> None:
    algorithm, expected = EXPECTED[name]
    found = algorithm.limit_pulls(CHAINS, moves)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found[3] == 0


@pytest.mark.parametrize("cutoff", [1, 3, math.inf])
def test_fedaus_pulls(cutoff: float) -> None:
    """Over ceil(L/K) intervals for an absence of L rounds, added up over L."""
    found = FedAU(0.1, 3, cutoff=cutoff).limit_pulls(CHAINS, moves)
    for i in range(3):
        stays, comes = CHAINS.stays[i], CHAINS.comes[i]
        number = stays
        for length in range(2, 4000):
            chance = (1 - stays) * (1 - comes) ** (length - 2) * comes
            number += chance * (1 if cutoff == math.inf else math.ceil(length / cutoff))
        assert found[i] == pytest.approx(ASKED[i] / number, rel=1e-9)
    assert found[3] == 0
