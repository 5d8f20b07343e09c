"""Exact and sampled trajectories agree on every regime.

In each regime's first rounds, every number of the sampled trajectory is compared with the exact
one. Under Student's distribution, each comparison gets an equal share of a false-alarm probability
of 1e-8 for all regimes together. The means are over 2,048 skewed numbers (squares of Gaussians):
the Edgeworth correction at that distance, a factor exp(z^3 skewness / (6 sqrt(n))) < 1e2 for z < 8
and skewness < 3, keeps the total below 1e-6. A difference of 8 standard errors, one part in ten at
the noise floor, is detected.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.special import stdtrit

from fltheory import theorems
from fltheory.algorithms import FedAU
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.setting import without_idle_projection
from fltheory.problems import QuadraticProblem
from fltheory.theorems import Theorem
from tests.drawn import a_tenth

REPLICAS = 2048
ROUNDS = 120
FALSE_ALARM = 1e-8
# Papers on algorithms with memory have many similar regimes.
OF_MEMORY = {
    ("scaffold/nonconvex", "uniform sampling"),
    ("scaffold/convex", "different Hessians"),
    ("scaffold/convex", "rare client"),
}


@cache
def is_affine(setting: Setting) -> bool:
    """Whether clients are quadratic, weights known, and no projection can move a model.

    FedAU's weights depend on the past; see `tests/engines/history/test_paths.py`.
    """
    if not isinstance(setting.problem, QuadraticProblem) or isinstance(setting.algorithm, FedAU):
        return False
    try:
        without_idle_projection(setting, setting.problem)
    except NotAffineError:
        return False
    return True


def is_chosen(identifier: str, regime: str) -> bool:
    """Whether a regime is compared: all regimes of papers on FedAvg's variants, few of others."""
    return identifier.startswith(("sa-fl", "ca-fed")) or (identifier, regime) in OF_MEMORY


def quadratic_settings() -> dict[str, tuple[Setting, Theorem | None]]:
    found: dict[str, tuple[Setting, Theorem | None]] = {}
    for statement in theorems.registered():
        for name, regime in statement.regimes.items():
            key = f"{statement.id.replace('-submission', '')}: {name}"
            chosen = is_chosen(statement.id, name) and isinstance(regime.setting, Setting)
            if chosen and key not in found and is_affine(regime.setting):
                theorem = statement if isinstance(statement, Theorem) else None
                found[key] = (regime.setting, theorem)
    return found


SETTINGS = quadratic_settings()


@pytest.mark.parametrize("name", a_tenth(SETTINGS, of=5))
def test_sampled_trajectory_agrees_with_the_exact_one(name: str) -> None:
    setting, theorem = SETTINGS[name]
    rounds = min(setting.rounds, ROUNDS)
    observe = theorem.observe(setting) if theorem else ()
    arguments = (
        setting.algorithm,
        setting.problem,
        setting.participation,
        rounds,
        setting.x0,
    )
    truth = exact(Setting(*arguments), observe=observe)
    sample = monte_carlo(Setting(*arguments), replicas=REPLICAS, seed=20, observe=observe)
    fields = ["squared_distance", "squared_gradient", "excess_loss", *truth.observed]
    tests = len(SETTINGS) * len(fields) * (rounds + 1)
    quantile = -float(stdtrit(REPLICAS - 1, FALSE_ALARM / tests / 2))
    for field in fields:
        rounding = truth.rounding_error[field] + 1e-12 * np.abs(truth[field])
        allowed = quantile * sample.standard_error[field] + rounding
        excess = np.abs(sample[field] - truth[field]) / allowed
        assert excess.max() <= 1, f"{field} in round {excess.argmax()}"
