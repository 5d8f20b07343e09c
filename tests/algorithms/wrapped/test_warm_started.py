"""The start of SCAFFOLD in which every client makes its control."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import FedAvg, Scaffold, WarmStarted
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines import Setting, exact
from fltheory.engines.clients.analytic_clients import GaussianNoise, QuadraticClients, Silence
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

X0 = np.array([[1.5, -1.0]])


def test_first_round_by_hand() -> None:
    """Whoever is there, c_i = H (x - c) for all, the model stays, and SCAFFOLD goes on."""
    problem = QuadraticProblem(np.diag([2.0, 1.0]), [[1.0, 0.0], [-1.0, 2.0], [0.0, 3.0]])
    start = WarmStarted(Scaffold(0.1, 3))
    first = start.at(1)
    state = first.init(X0, 3)
    nobody = np.zeros((1, 3), dtype=bool)
    after = first.round(state, QuadraticClients(problem, Silence()), nobody, CLIENTS)
    assert after["x"] == pytest.approx(X0)
    expected = np.array([[[1.0, -1.0], [5.0, -3.0], [3.0, -4.0]]])
    assert after["c_i"] == pytest.approx(expected)
    assert start.at(2) == start.at(7) == Scaffold(0.1, 3)


def test_controls_average_k_gradients() -> None:
    """Their variance is sigma^2/K: 40 000 draws of each, 12 entries.

    A sample variance's relative error is sqrt(2/40 000) = 0.0071; 8 of them, two-sided, have
    probability 1.3e-15 each under the normal limit, below 1e-9 for all with the chi-square's
    skewness. Detects a variance that is 6% off.
    """
    problem = random_problem(3, 3, 2, sigma=2.0)
    replicas, steps = 40_000, 4
    first = WarmStarted(Scaffold(0.1, steps)).at(1)
    x = np.repeat(X0, replicas, axis=0)
    clients = QuadraticClients(problem, GaussianNoise(np.random.default_rng(0)))
    state = first.round(first.init(x, 3), clients, np.ones((replicas, 3), dtype=bool), CLIENTS)
    variances = state["c_i"].var(axis=0)
    assert variances == pytest.approx(np.full((3, 2), 2.0**2 / 2 / steps), rel=8 * 0.0071)


def test_exact_moments_start_at_the_gradients() -> None:
    """Noise-free at x*: c_i = grad f_i(x*), so that the model never moves again."""
    problem = random_problem(3, 3, 2, sigma=0.0)
    arguments = (problem, UniformSubset(3, 1), 8, problem.x_star)
    warm = exact(Setting(WarmStarted(Scaffold(0.1, 3)), *arguments))
    cold = exact(Setting(Scaffold(0.1, 3), *arguments))
    assert warm.squared_distance == pytest.approx(0, abs=1e-15)
    assert cold.squared_distance[-1] > 1e-3


def test_only_scaffold_is_warm_started() -> None:
    with pytest.raises(ValueError, match=r"scaffold must be Scaffold, got FedAvg"):
        WarmStarted(FedAvg(0.1, 1))
