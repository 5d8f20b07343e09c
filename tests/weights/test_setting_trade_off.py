"""The trade-off of a setting: by hand, and as the registered bound sees it."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.participation import FiniteChain, MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.weights import for_setting
from fltheory.weights.optimum import solve

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


def test_by_clients_the_states_are_those_that_tell_of_one() -> None:
    """On-off clients: one entry of their own chain; two of three states have client 1 away."""
    arguments = {"local_steps": 4, "x0": [1.5, 2.0], "total": 2.0, "chain": "clients"}
    found = for_setting(CLIENTS, CHAINS, STEPS, **arguments)
    assert found.b == pytest.approx(2 / 4 * 5 + 1 * 2 / 4 * (21 / 64 + 49 / 36), rel=1e-14)
    three = FiniteChain(np.full((3, 3), 1 / 3), [[1, 0], [1, 0], [0, 1]])
    found = for_setting(CLIENTS, three, STEPS, **arguments)
    assert found.b == pytest.approx(2 / 4 * 5 + 1 * 2 / 4 * (21 / 64 + 49 / 36), rel=1e-14)
    four = FiniteChain(np.full((4, 4), 1 / 4), [[1, 0], [1, 1], [0, 1], [0, 0]])
    found = for_setting(CLIENTS, four, STEPS, **arguments)
    assert found.b == pytest.approx(2 / 4 * 5 + 2 * 2 / 4 * (21 / 64 + 49 / 36), rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_what_a_client_sums_bounds_the_step_of_the_proof(seed: int) -> None:
    """(24) by enumeration: for every state the weighted deviation is at most M Q C_P rate^t."""
    rng = np.random.default_rng(seed)
    onoff = MarkovOnOff(rng.uniform(0.1, 0.9, 3), rng.uniform(0.0, 0.9, 3))
    chain = FiniteChain(rng.dirichlet(np.ones(5), size=5), rng.random((5, 3)) < 0.5)
    q = rng.dirichlet(np.ones(3))
    for process, states in ((onoff, onoff.as_chain()), (chain, chain)):
        mixing = process.mixing
        power = np.eye(states.n_states)
        for t in range(1, 12):
            power = power @ states.transition
            if t < mixing.onset:
                continue
            there = power @ states.state_masks - states.marginals
            entry = mixing.factor * mixing.rate**t
            assert (np.abs(there) @ q).max() <= process.n_presence_states * entry * (1 + 1e-9)


@pytest.mark.parametrize("n_clients", [24, 1030, 20_000])
def test_a_joint_chain_that_outweighs_everything_is_refused(n_clients: int) -> None:
    """2^N states; by clients nobody takes almost all, as one does by a joint M."""
    problem = QuadraticProblem([[1.0]], np.linspace(-1, 1, n_clients)[:, None], sigma=1.0)
    pi = np.linspace(0.1, 0.9, n_clients)
    arguments = (problem, MarkovOnOff(pi, 0.9), [0.1] * 100)
    with pytest.raises(ValueError, match=rf"4096 joint .*2\^{n_clients}: .*chain="):
        for_setting(*arguments, local_steps=1, x0=[3.0])
    found = solve(for_setting(*arguments, local_steps=1, x0=[3.0], chain="clients"))
    assert found.kkt_residual < 1e-9
    assert found.p.max() < 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chain": "all"}, "chain must be one of joint, clients, got 'all'"),
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
