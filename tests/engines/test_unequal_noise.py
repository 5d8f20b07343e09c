"""Clients of unequal noise: every engine against moments that are followed state by state."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import fltheory as fl
from fltheory.algorithms import WeightedFedAvg
from fltheory.engines.clients.analytic_clients import (
    GaussianNoise,
    QuadraticClients,
    SteppedClients,
)
from fltheory.engines.enclosure.enclosed import enclosed_trajectory
from fltheory.participation import MarkovOnOff
from fltheory.problems import QuadraticProblem

SHARED = [[1.0, 0.2], [0.2, 0.5]]
OWN = [np.diag([1.0, 0.5]), np.diag([0.4, 0.9]), np.diag([0.7, 0.7])]
SIGMAS = (1.0, 4.0, 0.0)
PI, WEIGHTS, LR, STEPS, ROUNDS = (0.9, 0.5, 0.3), (0.5, 0.3, 0.4), 0.1, 2, 5
START = np.array([2.0, 1.0])


def clients(hessians: Any) -> QuadraticProblem:
    return QuadraticProblem(
        hessians, [[1.0, 0.0], [0.0, -2.0], [3.0, 1.0]], sigma=4.0, noise_shares=[0.25, 1.0, 0.0]
    )


def by_states(problem: QuadraticProblem, nu: float) -> float:
    """Follow E[w; state] and E[ww'; state] over the eight states of who is there."""
    hessians = np.broadcast_to(problem.hessians, (3, 2, 2))
    states = list(product((0, 1), repeat=3))
    chances = [[p if s else 1 - p for s, p in zip(a, PI, strict=True)] for a in states]
    weight = np.prod(chances, axis=1)

    def goes(a: tuple[int, ...], b: tuple[int, ...]) -> float:
        here = [p + nu * (s - p) for s, p in zip(a, PI, strict=True)]
        return float(np.prod([p if t else 1 - p for t, p in zip(b, here, strict=True)]))

    onward = np.array([[goes(a, b) for b in states] for a in states])
    first = weight[:, None] * START
    second = weight[:, None, None] * np.outer(START, START)
    for _ in range(ROUNDS):
        after_first, after_second = [], []
        for n, state in enumerate(states):
            slope, push, noise = np.eye(2), np.zeros(2), np.zeros((2, 2))
            for k in np.flatnonzero(state):
                step = np.eye(2) - LR * hessians[k]
                moved = WEIGHTS[k] * (np.linalg.matrix_power(step, STEPS) - np.eye(2))
                slope, push = slope + moved, push - moved @ problem.optima[k]
                for j in range(STEPS):
                    power = LR * WEIGHTS[k] * SIGMAS[k] * np.linalg.matrix_power(step, j)
                    noise += power @ power.T / 2
            mean = slope @ first[n]
            crossed = np.outer(mean, push)
            after_first.append(mean + weight[n] * push)
            added = weight[n] * (np.outer(push, push) + noise)
            after_second.append(slope @ second[n] @ slope.T + crossed + crossed.T + added)
        first = onward.T @ np.array(after_first)
        second = np.einsum("ab,aij->bij", onward, np.array(after_second))
        weight = weight @ onward
    star = problem.x_star
    crossed = np.outer(first.sum(axis=0), star)
    spread = second.sum(axis=0) - crossed - crossed.T + np.outer(star, star)
    return float(np.trace(problem.mean_hessian @ spread)) / 2


@pytest.mark.parametrize("hessians", [SHARED, OWN], ids=["shared", "own"])
@pytest.mark.parametrize("nu", [0.0, 0.5])
def test_exact_and_enclosed_moments(hessians: Any, nu: float) -> None:
    problem = clients(hessians)
    setting = fl.Setting(
        WeightedFedAvg(WEIGHTS, LR, STEPS), problem, MarkovOnOff(PI, nu), ROUNDS, START
    )
    expected = by_states(problem, nu)
    assert fl.exact(setting).excess_loss[-1] == pytest.approx(expected, rel=1e-12)
    assert float(enclosed_trajectory(setting).excess_loss[-1]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("hessians", [SHARED, OWN], ids=["shared", "own"])
@pytest.mark.parametrize("kind", [QuadraticClients, SteppedClients])
def test_drawn_changes(hessians: Any, kind: Any) -> None:
    """Variances of each client's change, and of their weighted sum, from 20,000 draws.

    Their relative standard error is 1%; 6% is six of them.
    """
    problem = clients(hessians)
    drawn = kind(problem, GaussianNoise(np.random.default_rng(7)))
    replicas = 20_000
    x, who = np.tile(START, (replicas, 1)), np.ones((replicas, 3), dtype=bool)
    alone = drawn.local_sgd(x, who, steps=STEPS, lr=LR).var(axis=0)
    summed = drawn.summed_local_sgd(x, who, np.tile(WEIGHTS, (replicas, 1)), steps=STEPS, lr=LR)
    each = []
    for hessian, sigma in zip(np.broadcast_to(problem.hessians, (3, 2, 2)), SIGMAS, strict=True):
        step = np.eye(2) - LR * hessian
        each.append(np.diag((np.eye(2) + step @ step) * (LR * sigma) ** 2 / 2))
    np.testing.assert_allclose(alone, each, rtol=0.06, atol=1e-20)
    together = np.square(WEIGHTS) @ np.array(each)
    np.testing.assert_allclose(summed.var(axis=0), together, rtol=0.06)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([0.5, 1.0], r"noise_shares must have shape \(3,\), got \(2,\)"),
        ([0.5, 0.5, 0.5], r"noise_shares must be in \[0, 1\], the largest of them 1"),
        ([-0.5, 1.0, 0.0], r"noise_shares must be in \[0, 1\], the largest of them 1"),
    ],
)
def test_shares_out_of_range(shares: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QuadraticProblem(SHARED, np.zeros((3, 2)), sigma=1.0, noise_shares=shares)
