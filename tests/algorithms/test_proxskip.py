"""ProxSkip: against a plain loop over all coins, and its fixed point."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fltheory.algorithms import ProxSkip
from fltheory.engines import Setting, exact, stationary
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

HESSIANS = np.array([np.diag([1.0, 0.5]), np.diag([0.3, 1.0]), np.diag([0.7, 0.6])])
OPTIMA = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]])
CLIENTS = QuadraticProblem(HESSIANS, OPTIMA)
EVERYBODY = UniformSubset(3, 3)
STEP, P = 0.3, 0.4


def test_a_plain_loop_over_all_coins() -> None:
    """The prox in the lifted space: all models become the mean of y_i - gamma/p h_i."""
    expected = np.zeros(7)
    for coins in product([True, False], repeat=6):
        models, controls = np.tile([2.0, -1.0], (3, 1)), np.zeros((3, 2))
        chance = float(np.prod([P if coin else 1 - P for coin in coins]))
        for t, coin in enumerate(coins):
            expected[t] += chance * ((models.mean(axis=0) - CLIENTS.x_star) ** 2).sum()
            gradients = np.einsum("kab,kb->ka", HESSIANS, models - OPTIMA)
            moved = models - STEP * (gradients - controls)
            models = np.tile((moved - STEP / P * controls).mean(axis=0), (3, 1)) if coin else moved
            controls = controls + P / STEP * (models - moved)
        expected[6] += chance * ((models.mean(axis=0) - CLIENTS.x_star) ** 2).sum()
    run = exact(Setting(ProxSkip(STEP, P), CLIENTS, EVERYBODY, 6, [2.0, -1.0]))
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-12)


def test_without_noise_it_ends_at_the_optimum_whatever_clients_want() -> None:
    limit = stationary(Setting(ProxSkip(STEP, P), CLIENTS, EVERYBODY, 1, [2.0, -1.0]))
    assert limit.squared_distance <= limit.rounding_error["squared_distance"] < 1e-9


def test_with_an_average_in_every_step_it_is_gradient_descent() -> None:
    run = exact(Setting(ProxSkip(STEP, 1.0), CLIENTS, EVERYBODY, 5, [2.0, -1.0]))
    x, expected = np.array([2.0, -1.0]), []
    for _ in range(6):
        expected.append(float(((x - CLIENTS.x_star) ** 2).sum()))
        x = x - STEP * np.einsum("kab,kb->ka", HESSIANS, x - OPTIMA).mean(axis=0)
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-12)


@pytest.mark.parametrize("chance", [0.0, 1.5, float("nan")])
def test_communication_is_a_probability_above_zero(chance: float) -> None:
    with pytest.raises(ValueError, match=r"communication must be"):
        ProxSkip(STEP, chance)
