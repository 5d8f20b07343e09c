"""FedAR's regimes are what their names and descriptions say, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fltheory.algorithms import FedAR, Scheduled
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff
from fltheory.theorems import fedar

IN_ROTATION = ([4] * 4, [0, 1, 2, 3])
UNEQUAL = ([1, 2, 4, 8], [0, 1, 2, 3])
# How fast psi grows, and after how many rounds updates are left out; psi is at most 2.
GROWTH = {"unequal cycles, psi = 1": 0.0, "cut off": 0.0, "psi grows faster": 0.2}
GROWTH |= {"psi hardly grows": 0.001}
GROUPS = {
    "convex": {**fedar.THEOREM_1_REGIMES, **fedar.OF_PSI, **fedar.OF_CLIENTS},
    "smooth": fedar.THEOREM_2_REGIMES,
}
CELLS = [(group, name) for group, found in GROUPS.items() for name in found]


@pytest.mark.parametrize(("group", "name"), CELLS)
def test_regimes_of_the_optimiser(group: str, name: str) -> None:
    setting = GROUPS[group][name].setting
    of_clients = name in ("noisy gradients", "exact gradients")
    who, problem, algorithm = setting.participation, setting.problem, setting.algorithm
    assert isinstance(who, Cyclic)
    cycles = IN_ROTATION if name == "in rotation" or of_clients else UNEQUAL
    assert (list(who.periods), list(who.offsets)) == cycles
    assert problem.hessians.ravel().tolist() == [1.0] * problem.hessians.size
    optima = [0.0] * 4 if name.endswith("equal clients") else [3.0, -1.0, 2.0, -4.0]
    assert problem.optima.ravel().tolist() == optima
    noise = 0.0 if name in ("psi hardly grows", "exact gradients") else 1.0
    assert float(problem.x_star[0]) == 0
    if group == "convex":
        assert isinstance(algorithm, Scheduled)
        # eta_t = 3/(mu K (t + 4)), K = 2
        assert [algorithm.step_sizes.at(t) for t in (1, 2)] == pytest.approx([3 / 10, 3 / 12])
        assert (setting.rounds, problem.sigma, float(setting.x0[0])) == (150, noise, 5.0)
        inner = algorithm.algorithm
    else:
        # eta = 1/(2 L K sqrt(T))
        assert algorithm.client_lr == pytest.approx(1 / (4 * math.sqrt(300)))
        assert (setting.rounds, problem.sigma) == (300, 0.3 * noise)
        assert float(setting.x0[0]) == pytest.approx(0.5)
        inner = algorithm
    assert isinstance(inner, FedAR)
    assert inner.local_steps == 2
    assert inner.cutoff == (3.0 if name == "cut off" else math.inf)
    growth = GROWTH.get(name, 0.05)
    psi = [min(1 + growth * inactive, 2.0) for inactive in range(50)]
    np.testing.assert_allclose(inner.weight(np.arange(50)), psi)


def test_which_regimes_there_are() -> None:
    kept = {"in rotation", "unequal cycles, psi = 1", "cut off"}
    assert set(fedar.THEOREM_1_REGIMES) == {*kept, "unequal cycles", "psi hardly grows"}
    assert set(fedar.THEOREM_2_REGIMES) == {
        *kept,
        "unequal cycles, equal clients",
        "psi grows faster",
    }
    assert set(fedar.OF_PSI) == {"unequal cycles", "in rotation"}
    assert set(fedar.IN_ROTATION) == {"in rotation"}


ABSENCES = {
    "p = 0.1, 100 rounds in a row allowed": (100, 0.1, 100),
    "p = 0.1, 50 rounds in a row allowed": (100, 0.1, 50),
    "p = 0.5, 10 rounds in a row allowed": (100, 0.5, 10),
    "Markov": (10, 0.5, 50),
    "everybody": (10, 1.0, 0),
    "in rotation": (4, 0.25, 3),
}


@pytest.mark.parametrize("name", fedar.ASSUMPTION_7_REGIMES)
def test_regimes_of_absences(name: str) -> None:
    setting = fedar.ASSUMPTION_7_REGIMES[name].setting
    n, p, limit = ABSENCES[name]
    who = setting.participation
    assert who.marginals.tolist() == pytest.approx([p] * n)
    if name == "Markov":
        assert isinstance(who, MarkovOnOff)
        # A stretch there ends with probability (1 - 0.8)/2 per round: ten rounds on average.
        assert who.correlation.tolist() == pytest.approx([0.8] * n)
    elif name == "in rotation":
        assert isinstance(who, Cyclic)
        assert (list(who.periods), list(who.offsets)) == IN_ROTATION
    else:
        assert isinstance(who, Bernoulli)
    assert isinstance(setting.algorithm, FedAR)
    assert (setting.rounds, setting.algorithm.cutoff) == (1000, limit)
    assert setting.problem.optima.ravel().tolist() == pytest.approx(
        [-1 + 2 * i / (n - 1) for i in range(n)]
    )
    assert setting.x0.tolist() == [0.0]
