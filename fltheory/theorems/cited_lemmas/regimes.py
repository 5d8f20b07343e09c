"""The named settings on which the cited lemmas are checked: constants, and local runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.grammar.regime import Regime
from fltheory.participation import UniformSubset
from fltheory.problems import quadratic

_CLIENTS, _DIM = 4, 3


def _setting(
    *,
    mu: float = 0.25,
    sigma: float = 1.0,
    sigma_G: float = 0.5,
    distance: float = 2.0,
    local_steps: int = 10,
    step: float = 1 / 8,
) -> Setting:
    """Four clients, L = 1; ``step`` is eta L K."""
    problem = quadratic(_CLIENTS, _DIM, L=1.0, mu=mu, sigma_G=sigma_G, sigma=sigma)
    x0 = np.zeros(_DIM)
    x0[0] = distance  # along the largest curvature: ||grad F(x)|| is the distance
    algorithm = FedAvg(step / local_steps * (1 - 1e-12), local_steps)
    return Setting(algorithm, problem, UniformSubset(_CLIENTS, 2), 1, x0)


def _regimes(named: Mapping[str, tuple[str, Callable[[], Setting]]]) -> Mapping[str, Regime]:
    return {name: Regime(about, make) for name, (about, make) in named.items()}


CURVATURES = _regimes(
    {
        "kappa = 1.001": ("mu almost L", partial(_setting, mu=1 / 1.001)),
        "kappa = 2": ("mu = L/2", partial(_setting, mu=0.5)),
        "kappa = 10": ("mu = L/10", partial(_setting, mu=0.1)),
        "kappa = 10000": ("mu = L/10000", partial(_setting, mu=1e-4)),
    }
)

SUMS = _regimes(
    {
        "ten steps": ("eta at the drift lemma's limit", _setting),
        "two steps": ("K = 2", partial(_setting, local_steps=2)),
        "a hundred steps": ("K = 100", partial(_setting, local_steps=100)),
        "long steps": ("eta L = 1, K = 10", partial(_setting, step=10.0)),
        "noise only": (
            "at x*, equal clients",
            partial(_setting, sigma_G=0.0, distance=0.0),
        ),
        "little noise": ("sigma = 0.01", partial(_setting, sigma=0.01)),
        "as much noise as gradient": (
            "100 steps, E||sum xi||^2 about K sigma^2",
            partial(_setting, local_steps=100, sigma=10.0, distance=0.5),
        ),
        "expanding steps": ("eta L = 3: local SGD diverges", partial(_setting, step=30.0)),
    }
)

_NEAR = partial(_setting, sigma_G=0.0, distance=0.01)
DRIFT = _regimes(
    {
        "at the limit": ("eta = 1/(8LK), K = 10", _setting),
        "one step": ("K = 1", partial(_setting, local_steps=1)),
        "two steps": ("K = 2", partial(_setting, local_steps=2)),
        "a hundred steps": ("K = 100", partial(_setting, local_steps=100)),
        "almost noise only": ("close to x*, equal clients", _NEAR),
        "gradient only": (
            "exact gradients, equal clients",
            partial(_setting, sigma=0.0, sigma_G=0.0),
        ),
        "gradients of one length": (
            "exact gradients, sigma_G almost ||grad F(x)||",
            partial(_setting, sigma=0.0, sigma_G=1.0, distance=1.001),
        ),
        "small steps": ("a hundredth of the limit", partial(_setting, step=1 / 800)),
        "eight times the limit": ("eta = 1/(LK)", partial(_setting, step=1.0, local_steps=100)),
        "twenty times the limit": (
            "eta = 2.5/(LK), almost noise only",
            partial(_NEAR, step=2.5, local_steps=100),
        ),
    }
)
