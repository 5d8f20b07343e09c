"""SA-FL's regimes are what their names and descriptions say, number by number."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import Safari

EVERYBODY = {"i.i.d.", "unbiased sampling", "q = 1, i.i.d.", "different Hessians"}


@pytest.mark.parametrize("identifier", ["sa-fl/4", "sa-fl/5"])
def test_regimes_of_theorems(identifier: str) -> None:
    """Half of ten clients per round, five steps, half of the rounds clients', unless said."""
    regimes = theorems.get(identifier).regimes
    assert len(regimes) == (16 if identifier == "sa-fl/4" else 15)
    chances = {"q = 0": 0.0, "q = 1": 1.0, "q = 1, i.i.d.": 1.0, "q small": 0.05}
    chances |= {"long horizon": 0.75, "other units": 0.75}
    distances = {"near the optimum": 0.5, "other units": 0.2}
    lengths = {"long horizon": 400_000, "other units": 400_000, "nonconvex": 100}
    for name, regime in regimes.items():
        setting = regime.setting
        who, algorithm, problem = setting.participation, setting.algorithm, setting.problem
        assert isinstance(algorithm, Safari)
        assert (who.n_clients, who.size) == (10, 1 if name == "m = 1" else 5)
        assert who.excluded == (() if name in EVERYBODY else (0, 1))
        assert algorithm.q == chances.get(name, 0.5)
        assert algorithm.local_steps == (1 if name == "K = 1" else 5)
        assert setting.rounds == lengths.get(name, 300)
        assert np.linalg.norm(setting.x0) == pytest.approx(distances.get(name, 2.0))
        if identifier == "sa-fl/5":
            coupled = 4 * algorithm.assist_lr * problem.L / (problem.L + problem.mu)
            assert algorithm.client_lr * algorithm.local_steps == pytest.approx(coupled, rel=1e-9)
        else:
            twice = 2 * algorithm.assist_lr
            assert algorithm.client_lr * algorithm.local_steps == pytest.approx(twice, rel=1e-9)
        of_units = 10.0 if name == "other units" else 1.0
        noise = 0.0 if name == "noise-free" else 0.5 * of_units
        assert (problem.sigma, problem.server_sigma) == (noise, noise)
        smoothness = problem.L
        assert smoothness == pytest.approx(of_units**2)
        if name not in ("nonconvex", "different Hessians"):
            alike = "i.i.d." in name
            unlike = 10.0 if name == "sigma_G large" else of_units
            assert problem.sigma_G == pytest.approx(0.0 if alike else unlike)
            assert problem.mu == pytest.approx(smoothness / 4)


@pytest.mark.parametrize("identifier", ["sa-fl/corollary-1", "sa-fl/corollary-2"])
def test_regimes_of_corollaries(identifier: str) -> None:
    """Two of four clients per round; who is excluded is the first of them."""
    for name, regime in theorems.get(identifier).regimes.items():
        who = regime.setting.participation
        assert (who.n_clients, who.size) == (4, 2)
        assert who.excluded == ((0,) if "excluded" in name else ())
        assert regime.setting.rounds == 100_000
