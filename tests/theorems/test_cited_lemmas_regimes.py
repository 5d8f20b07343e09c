"""The cited lemmas' regimes are what their names and descriptions say, number by number."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.participation import UniformSubset
from fltheory.theorems import cited_lemmas

# K, eta L K, sigma, sigma_G and distance, where they are not 10, 1/8, 1, 1/2 and 2.
OF_RUNS = {
    "SUMS": {
        "ten steps": {},
        "two steps": {"K": 2},
        "a hundred steps": {"K": 100},
        "long steps": {"step": 10},
        "noise only": {"sigma_G": 0, "distance": 0},
        "little noise": {"sigma": 0.01},
        "as much noise as gradient": {"K": 100, "sigma": 10, "distance": 0.5},
        "expanding steps": {"step": 30},
    },
    "DRIFT_REGIMES": {
        "at the limit": {},
        "one step": {"K": 1},
        "two steps": {"K": 2},
        "a hundred steps": {"K": 100},
        "almost noise only": {"sigma_G": 0, "distance": 0.01},
        "gradient only": {"sigma": 0, "sigma_G": 0},
        "gradients of one length": {"sigma": 0, "sigma_G": 1, "distance": 1.001},
        "small steps": {"step": 1 / 800},
        "eight times the limit": {"K": 100, "step": 1},
        "twenty times the limit": {"K": 100, "step": 2.5, "sigma_G": 0, "distance": 0.01},
    },
    "CURVATURES": {
        "kappa = 1.001": {"mu": 1 / 1.001},
        "kappa = 2": {"mu": 1 / 2},
        "kappa = 10": {"mu": 1 / 10},
        "kappa = 10000": {"mu": 1 / 10000},
    },
}
CELLS = [(group, name) for group, found in OF_RUNS.items() for name in found]


def test_every_regime_is_listed() -> None:
    assert {group: set(getattr(cited_lemmas, group)) for group in OF_RUNS} == {
        group: set(found) for group, found in OF_RUNS.items()
    }


@pytest.mark.parametrize(("group", "name"), CELLS)
def test_regimes(group: str, name: str) -> None:
    setting = getattr(cited_lemmas, group)[name].setting
    given = {"K": 10, "step": 1 / 8, "sigma": 1, "sigma_G": 0.5, "distance": 2, "mu": 0.25}
    given |= OF_RUNS[group][name]
    problem, algorithm, who = setting.problem, setting.algorithm, setting.participation
    assert (problem.n_clients, problem.dim, setting.rounds) == (4, 3, 1)
    assert isinstance(who, UniformSubset)
    assert (who.n_clients, who.size, tuple(who.excluded)) == (4, 2, ())
    assert algorithm.local_steps == given["K"]
    # Just below the limit, so that a hypothesis eta L K <= 1/8 is met.
    step = algorithm.client_lr * given["K"]
    assert step == pytest.approx(given["step"], rel=1e-11)
    assert step < given["step"]
    assert abs(problem.L - 1) < 1e-12
    assert problem.mu == pytest.approx(given["mu"])
    assert problem.sigma == given["sigma"]
    assert problem.sigma_G == pytest.approx(given["sigma_G"], abs=1e-12)
    # Along the largest curvature, 1: the gradient of F is as long as the distance.
    slope = problem.mean_hessian @ (setting.x0 - problem.x_star)
    assert np.linalg.norm(slope) == pytest.approx(given["distance"], abs=1e-9)
    assert np.linalg.norm(setting.x0) == pytest.approx(given["distance"], abs=1e-9)
