"""SCAFFOLD's regimes are what their names and descriptions say, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import Scaffold, WarmStarted
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems.scaffold import CONVEX_REGIMES, NONCONVEX_REGIMES

REGIMES = {"convex": CONVEX_REGIMES, "nonconvex": NONCONVEX_REGIMES}
CONVEX = [("convex", name) for name in CONVEX_REGIMES]
NONCONVEX = [("nonconvex", name) for name in NONCONVEX_REGIMES]

# Participants of how many, where they are a uniform subset of another size than two of six.
SUBSETS = {"everybody": (6, 6), "one participant": (6, 1), "few of many": (11, 1)}
SUBSETS |= {"one gradient as control": (5, 1), "cold start": (4, 2)}
NOISE_FREE = (
    *("noise-free", "small server step", "excluded client", "rare client", "long stretches"),
    *("in rotation", "started at the optimum", "cold start"),
)
NOISE = dict.fromkeys(NOISE_FREE, 0.0) | {"one gradient as control": 10.0, "nonconvex": 0.5}
STEPS = {"small steps": 0.1, "too large a step": 165.0}
LOCAL = {"K = 1": 1, "too large a step": 1, "one gradient as control": 300}
SERVER = {"large server step": 10.0, "one gradient as control": 10.0, "small server step": 0.001}
AT_X_STAR = ("one gradient as control", "started at the optimum", "cold start")


@pytest.mark.parametrize(("group", "name"), CONVEX + NONCONVEX)
def test_regimes(group: str, name: str) -> None:
    setting = REGIMES[group][name].setting
    problem, who, algorithm = setting.problem, setting.participation, setting.algorithm
    warm = group == "nonconvex" and name != "cold start"
    assert isinstance(algorithm, WarmStarted if warm else Scaffold)
    scaffold = algorithm.scaffold if isinstance(algorithm, WarmStarted) else algorithm
    assert isinstance(scaffold, Scaffold)
    assert setting.rounds == (60 if name == "nonconvex" else 1500) + warm
    assert scaffold.option == (1 if name in ("option I", "one gradient as control") else 2)
    assert scaffold.local_steps == LOCAL.get(name, 4)
    assert scaffold.server_lr == SERVER.get(name, 1.0)
    # h = eta_l K eta_g is at most 1/(81 L), or (S/N)^(2/3)/(24 L).
    limit = 1 / 81 if group == "convex" else (who.marginals.mean()) ** (2 / 3) / 24
    h = scaffold.client_lr * scaffold.local_steps * scaffold.server_lr
    assert abs(problem.L - 1) < 1e-12
    assert h == pytest.approx(STEPS.get(name, 1.0) * limit, rel=1e-9)
    assert h < STEPS.get(name, 1.0) * limit
    distance = 0.0 if name in AT_X_STAR else 3.0
    assert np.linalg.norm(setting.x0 - problem.x_star) == pytest.approx(distance, abs=1e-12)
    assert problem.sigma == NOISE.get(name, 1.0)
    if name == "nonconvex":
        assert problem.sigma_G == pytest.approx(1.0)
    elif name == "cold start":
        assert problem.optima.tolist() == [[2, 0], [-2, 0], [1, 4], [-1, -4]]
        assert problem.hessians.reshape(-1, 2, 2)[0].tolist() == [[1, 0], [0, 0.25]]
    elif name == "different Hessians":
        assert isinstance(problem, QuadraticProblem)
        largest = np.linalg.eigvalsh(problem.hessians).max(axis=1)
        np.testing.assert_allclose(largest, [0.3, 0.44, 0.58, 0.72, 0.86, 1.0])
    else:
        alike = name in ("i.i.d.", "one gradient as control")
        assert problem.sigma_G == pytest.approx(0.0 if alike else 2.0, abs=1e-12)
        mu = {"few of many": 0.9, "one gradient as control": 1.0}.get(name, 0.25)
        assert problem.mu == pytest.approx(mu)
        assert problem.dim == (1 if name == "one gradient as control" else 2)


@pytest.mark.parametrize(("group", "name"), CONVEX + NONCONVEX)
def test_who_takes_part(group: str, name: str) -> None:
    who = REGIMES[group][name].setting.participation
    if name == "Bernoulli":
        assert isinstance(who, Bernoulli)
        assert who.marginals.tolist() == pytest.approx([1 / 3] * 6)
    elif name == "rare client":
        assert isinstance(who, Bernoulli)
        assert who.marginals.tolist() == pytest.approx([1 / 2000, 1, 1, 1, 1, 1])
    elif name == "long stretches":
        # A stretch ends with probability (1 - nu)/2 per round: after 1000 rounds on average.
        assert isinstance(who, MarkovOnOff)
        assert who.marginals.tolist() == [0.5] * 4
        assert ((1 - who.correlation) / 2).tolist() == pytest.approx([1 / 1000] * 4)
    elif name == "in rotation":
        assert isinstance(who, Cyclic)
        assert (list(who.periods), list(who.offsets)) == ([6] * 6, list(range(6)))
    else:
        assert isinstance(who, UniformSubset)
        assert (who.n_clients, who.size) == SUBSETS.get(name, (6, 2))
        assert tuple(who.excluded) == ((0,) if name == "excluded client" else ())


def test_regimes_that_break_a_limit_do() -> None:
    """h 165 times 1/(81 beta) is above 2/beta, and eta_l above it with eta_g = 1/1000."""
    assert 164 / 81 > 2
    small = CONVEX_REGIMES["small server step"].setting.algorithm
    assert isinstance(small, Scaffold)
    assert small.client_lr > 2
    few = CONVEX_REGIMES["few of many"].setting
    assert few.problem.mu / 81 > 1 / (15 * 11)
    assert math.isclose(few.problem.mu, 0.9)


def test_every_regime_is_named_in_a_statement() -> None:
    found = {
        name for s in theorems.registered() if s.id.startswith("scaffold/") for name in s.regimes
    }
    assert found == {name for _, name in CONVEX + NONCONVEX}
