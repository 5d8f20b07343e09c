"""The trade-off of a setting: by hand, and as the registered bound sees it."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.participation import FiniteChain, MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.weights import for_setting, solve

CLIENTS = QuadraticProblem(
    np.diag([2.0, 0.5]), [[-1.0, 0.0], [1.0, 0.0]], sigma=3.0, target_weights=[0.25, 0.75]
)
STEPS = [0.5, 0.25, 0.125]
CHAINS = MarkovOnOff([0.5, 0.8], 0.9)


def test_by_hand() -> None:
    """x* = (1/2, 0); squares of steps sum to 21/64, 1/t^2 to 49/36, steps to 7/8; M = 4."""
    found = for_setting(CLIENTS, CHAINS, STEPS, local_steps=4, x0=[1.5, 2.0], total=2.0)
    assert found.a == pytest.approx([9 * 0.5 * 21 / 64, 9 * 0.8 * 21 / 64], rel=1e-14)
    assert found.b == pytest.approx(2 / 4 * 5 + 4 * 2 / 4 * (21 / 64 + 49 / 36), rel=1e-14)
    gamma = 0.5 * 2.0 * 1.5**2
    assert found.bias == pytest.approx((2.0 / 0.5) ** 2 * gamma * 7 / 8, rel=1e-14)
    assert found.target_weights.tolist() == [0.25, 0.75]
    assert found.total == 2.0


def bound_of_theorems_1_and_2(q, problem, pi, states, steps, local_steps, x0) -> float:
    """The part of (10) with (12) that depends on the weights, typed from the paper."""
    steps, total = np.array(steps), q.sum()
    t = np.arange(1, steps.size + 1)
    kappa = problem.L / problem.mu
    p = pi * q / (pi @ q)
    upsilon = 2 / local_steps * ((np.array(x0) - problem.x_star) ** 2).sum()
    upsilon += states * total / 4 * (steps**2 + 1.0 / t**2).sum()
    quadratic = 0.5 * (problem.sigma**2 * pi * (steps**2).sum() * q**2).sum()
    chi_square = ((problem.alpha - p) ** 2 / p).sum()
    optimization = 2 * kappa**2 * (quadratic + upsilon) / (pi @ q) / steps.sum()
    return optimization + 2 * kappa**4 * chi_square * problem.Gamma


@pytest.mark.parametrize("seed", range(5))
def test_its_minimiser_minimises_the_papers_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = QuadraticProblem([[1.5]], rng.normal(size=(4, 1)), sigma=2.0)
    pi = rng.uniform(0.1, 0.9, 4)
    steps, x0 = rng.uniform(0.01, 0.2, 30), [2.0]
    trade_off = for_setting(problem, MarkovOnOff(pi, 0.5), steps, local_steps=3, x0=x0)
    best = solve(trade_off)
    arguments = (problem, pi, 16, steps, 3, x0)
    least = bound_of_theorems_1_and_2(best.q, *arguments)
    scale = 2 * (problem.L / problem.mu) ** 2 / steps.sum()
    assert least == pytest.approx(scale * best.error, rel=1e-9)
    for _ in range(200):
        other = rng.dirichlet(np.ones(4))
        assert bound_of_theorems_1_and_2(other, *arguments) >= least * (1 - 1e-9)


def test_a_general_chains_states_are_counted() -> None:
    chain = FiniteChain([[0.9, 0.1], [0.2, 0.8]], [[1, 0], [1, 1]])
    found = for_setting(CLIENTS, chain, [1.0], local_steps=1, x0=[0.5, 0.0])
    assert found.b == pytest.approx(2 / 4 * 2)
    assert found.availability == pytest.approx([1, 1 / 3])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step_sizes": [0.1, 0.0]}, "step_sizes must be positive"),
        ({"step_sizes": []}, "step_sizes must be positive"),
        ({"local_steps": 0}, "local_steps must be a whole number"),
        ({"x0": [1.0]}, r"x0 must have shape \(2,\)"),
        ({"total": 0.0}, "total must be a finite number above 0"),
        ({"participation": MarkovOnOff([0.5], 0.1)}, "participation must have the problem's 2"),
        ({"participation": MarkovOnOff([0.0, 0.5], 0.1)}, "availability"),
    ],
)
def test_bad_arguments(changes, message: str) -> None:
    arguments = {
        "problem": CLIENTS,
        "participation": CHAINS,
        "step_sizes": STEPS,
        "local_steps": 1,
        "x0": [0.0, 0.0],
    }
    with pytest.raises(ValueError, match=message):
        for_setting(**{**arguments, **changes})
