"""Closed forms of a client's local steps, against steps taken one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms import FedAvg, Mifa, Safari
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex
from fltheory.theorems.cited_lemmas import LocalRun


def by_steps(problem: QuadraticProblem, x: np.ndarray, lr: float, steps: int, i: int):
    """Means and covariances of (y_k, all noises so far), a unit impulse at a time."""
    hessian = problem.hessians if problem.hessians.ndim == 2 else problem.hessians[i]
    dim, level = problem.dim, problem.sigma / np.sqrt(problem.dim)
    runs = []
    for impulse in [None, *np.ndindex(steps, dim)]:
        y, noisy, exact, last = x.copy(), np.zeros(dim), np.zeros(dim), None
        for k in range(steps):
            noise = np.zeros(dim)
            if impulse is not None and impulse[0] == k:
                noise[impulse[1]] = level
            gradient = hessian @ (y - problem.optima[i])
            exact, noisy, last = exact + gradient, noisy + gradient + noise, gradient + noise
            y = y - lr * (gradient + noise)
        runs.append((noisy, exact, last))
    silent = runs[0]
    columns = [[run[q] - silent[q] for run in runs[1:]] for q in range(3)]
    return silent, [sum(float(c @ c) for c in each) for each in columns]


@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
def test_every_number_against_steps(seed: int, steps: int, shared: bool) -> None:
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(2, 2)) if shared else rng.normal(size=(3, 2, 2))
    hessians = roots @ np.swapaxes(roots, -1, -2) + 0.1 * np.eye(2)
    problem = QuadraticProblem(hessians, rng.normal(size=(3, 2)), sigma=0.8)
    x, lr = rng.normal(size=2), 0.3 / problem.L
    run = LocalRun(Setting(FedAvg(lr, steps), problem, UniformSubset(3, 1), 1, x))
    for i in range(3):
        silent, variances = by_steps(problem, x, lr, steps, i)
        mean = float(silent[0] @ silent[0])
        assert run.summed_mean[i] == pytest.approx(mean, rel=1e-9)
        assert run.summed_noisy[i] == pytest.approx(mean + variances[0], rel=1e-9)
        assert run.summed_exact[i] == pytest.approx(mean + variances[1], rel=1e-9)
        assert run.largest_variance[i] == pytest.approx(variances[2], rel=1e-9)
    assert run.gradient_of_mean == pytest.approx(float(np.linalg.norm(problem.gradient(x))))


def test_safari_runs_the_same_local_steps() -> None:
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]])
    run = LocalRun(Setting(Safari(0.5, 0.1, 0.2, 7), problem, UniformSubset(2, 1), 3, [2.0]))
    assert (run.steps, run.lr) == (7, 0.1)


def test_settings_of_another_kind_are_named() -> None:
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]])
    with pytest.raises(ValueError, match=r"algorithm must be FedAvg or Safari .* got Mifa"):
        LocalRun(Setting(Mifa(0.1, 2), problem, UniformSubset(2, 1), 1, [0.0]))
    rippled = nonconvex(2, 1, L=1.0, sigma_G=0.1)
    with pytest.raises(ValueError, match="problem must be a QuadraticProblem"):
        LocalRun(Setting(FedAvg(0.1, 2), rippled, UniformSubset(2, 1), 1, [0.0]))
