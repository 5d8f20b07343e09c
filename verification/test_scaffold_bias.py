"""SCAFFOLD's stationary bias on its regimes, and its truths computed by other means.

These are the authors' own simulations, a function on a grid whose residual bounds the error, and a
plain loop of the algorithm.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import fmpq
from numpy.polynomial import chebyshev

from fltheory import theorems
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import StepOutcome
from fltheory.derivations.derivation_check import check_derivation, check_step
from fltheory.problems.skewed import SkewedProblem
from fltheory.testing import each_cell
from fltheory.testing.pytest_plugin import Recorder
from fltheory.theorems.atlas import scaffold_bias
from fltheory.theorems.atlas.scaffold_bias import (
    ORDER,
    OneLoss,
    Rest,
    bias,
    claim_on,
    stationary_moments,
)
from fltheory.verify import check

MEAN, SQUARE, CONTROL = (1, ()), (2, ()), (0, (2,))


@each_cell("scaffold-bias")
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    as_recorded(statement, regime)


def one_loss(local_steps: int, **shape: float) -> OneLoss:
    problem = SkewedProblem([[0.0]], **{"curvature": 1.0, "skew": 0.5, "width": 1.0} | shape)
    return OneLoss(problem.slopes(ORDER), problem.noise_moments(ORDER + 4), local_steps)


@pytest.mark.parametrize(
    ("n", "low", "high"),
    [
        (64, -0.575671, -0.568643),
        (96, -0.581447, -0.576848),
        (128, -0.584912, -0.580678),
        (192, -0.587794, -0.583958),
    ],
)
def test_the_mean_is_within_the_authors_intervals(n: int, low: float, high: float) -> None:
    """Table 3: (b + gamma/(8N))/gamma^2 for H = 4, gamma = 1/N = 1/n, by simulation."""
    [(mean, error)] = stationary_moments(one_loss(4, sigma=1.0), Fraction(1, n), n, [MEAN])
    normalised = (float(mean) + 1 / n**2 / 8) * n**2
    assert low < normalised < high
    assert error * n**2 < 1e-3


def slope(x: np.ndarray) -> np.ndarray:
    """Return the gradient of the paper's loss, (17)."""
    return x + np.log(np.cosh(x)) / 2


def after_a_round(x, xi, noise, step: float):
    """Two clients, two local steps each: noise is (2, 2); controls are xi and -xi."""
    ends = []
    for client, sign in ((0, 1), (1, -1)):
        theta = x
        for h in (0, 1):
            theta = theta - step * (slope(theta) + sign * xi + noise[client][h])
        ends.append(theta)
    mean = (ends[0] + ends[1]) / 2
    return mean, xi + (ends[0] - mean) / (2 * step)


@pytest.mark.parametrize(("steps", "place"), [(10, 0), (24, 0), (24, 1)])
def test_moments_of_two_clients_by_a_function_on_a_grid(steps: int, place: int) -> None:
    """Known but for the range of ``phi + h(state+) - h(state)``, which has the mean of phi.

    That holds for any bounded h, over states that no round leaves. Here h is a polynomial that
    makes it nearly constant, all 16 signs of noise are averaged over, and the range is taken on a
    fine grid; between its points what is smooth may change as much again.
    """
    step, widest = 1 / steps, (1.9, 1.35)
    degrees = (22, 10)

    def features(x, xi):
        one = chebyshev.chebvander(x / widest[0], degrees[0])
        other = chebyshev.chebvander(xi / widest[1], degrees[1])
        return (one[..., :, None] * other[..., None, :]).reshape(*x.shape, -1)

    def change(x, xi):
        total = -features(x, xi)
        for noise in product((-1.0, 1.0), repeat=4):
            there = after_a_round(x, xi, (noise[:2], noise[2:]), step)
            assert np.abs(there[0]).max() <= widest[0]
            assert np.abs(there[1]).max() <= widest[1]
            total = total + features(*there) / 16
        return total

    def grid(count: int, other: int):
        x = widest[0] * np.cos(np.pi * (np.arange(count) + 0.5) / count)
        xi = widest[1] * np.cos(np.pi * (np.arange(other) + 0.5) / other)
        return (one.ravel() for one in np.meshgrid(x, xi, indexing="ij"))

    def phi(x, xi):
        return (x, x**2)[place]

    x, xi = grid(40, 20)
    columns = np.concatenate([change(x, xi)[:, 1:], -np.ones((x.size, 1))], axis=1)
    fitted = np.linalg.lstsq(columns, -phi(x, xi), rcond=None)[0]
    x, xi = grid(101, 51)
    left = phi(x, xi) + change(x, xi)[:, 1:] @ fitted[:-1]
    low, high = left.min(), left.max()
    assert high - low < 1e-8
    moment = (MEAN, SQUARE)[place]
    [(found, error)] = stationary_moments(one_loss(2, sigma=1.0), Fraction(1, steps), 2, [moment])
    assert 2 * low - high - error < float(found) < 2 * high - low + error
    displayed = (-1 / steps / 16 - 3 / 16 / steps**2, 1 / steps / 4)[place]
    assert error < 0.02 * abs(low - displayed)


def test_moments_by_a_plain_loop() -> None:
    """SCAFFOLD as the paper writes it, with lopsided noise and a fourth derivative.

    Beside it runs the same with a x in place of f'(x) and the same noise, whose mean is zero: it
    takes most of the chance out of the mean's estimate. 20,000 independent runs are averaged: three
    means are off by more than 6.5 standard errors with probability 3e-10.
    """
    rng = np.random.default_rng(11)
    runs, clients, local, step, rounds, forgotten = 20_000, 3, 3, 0.05, 260, 60
    a = 1 + np.tanh(0.5) / 2

    def curved(x: np.ndarray) -> np.ndarray:
        return x + (np.log(np.cosh(x + 0.5)) - np.log(np.cosh(0.5))) / 2

    def straight(x: np.ndarray) -> np.ndarray:
        return a * x

    x, own = np.zeros((2, runs)), np.zeros((2, runs, clients))
    sums = np.zeros((3, runs))
    for t in range(rounds):
        noise = np.where(rng.random((local, runs, clients)) < 1 / 5, 2.0, -0.5)
        for place, gradient in enumerate((curved, straight)):
            theta = np.repeat(x[place][:, None], clients, axis=1)
            mean = own[place].mean(axis=1, keepdims=True)
            for h in range(local):
                theta = theta - step * (gradient(theta) + noise[h] + mean - own[place])
            own[place] = own[place] - mean + (x[place][:, None] - theta) / (step * local)
            x[place] = theta.mean(axis=1)
        if t >= forgotten:
            spread = (own[0] - own[0].mean(axis=1, keepdims=True)) ** 2
            sums += x[0] - x[1], x[0] ** 2, spread.mean(axis=1)
    estimates = sums / (rounds - forgotten)
    loss = one_loss(local, sigma=1.0, lean=2.0, shift=0.5)
    moments = stationary_moments(loss, Fraction(1, 20), clients, [MEAN, SQUARE, CONTROL])
    for estimate, (found, error) in zip(estimates, moments, strict=True):
        standard = estimate.std() / np.sqrt(runs)
        assert abs(estimate.mean() - float(found)) < 6.5 * standard + error
        assert 6.5 * standard + error < 0.05 * abs(float(found))


@pytest.mark.parametrize(
    ("slip", "change", "outcome"),
    [
        ("none", lambda a, tau, v, g, N, H: fmpq(0), "HOLDS"),
        ("a for a^2", lambda a, tau, v, g, N, H: tau * v * g / N * (1 - a) / a**2, "REFUTED"),
        ("5H + 1", lambda a, tau, v, g, N, H: tau * v / a * fmpq(H - 1, 6 * H) * g**2, "REFUTED"),
        (
            "without the controls' part, (14)",
            lambda a, tau, v, g, N, H: tau * v / a * fmpq((H - 1) * (2 * H - 1), 12 * H) * g**2,
            "REFUTED",
        ),
    ],
)
def test_a_wrong_coefficient_is_refuted(slip: str, change, outcome: str) -> None:
    """By the power of what is left then, on the way where N grows; a is not one where f bends."""
    wrong = claim_on(
        "own/bias",
        "slip",
        slip,
        Rest(MEAN, lambda *numbers: bias(*numbers) + change(*numbers)),
        text="|R|",
        unit=scaffold_bias.LENGTH,
        order=scaffold_bias.gamma**2 / scaffold_bias.N + scaffold_bias.gamma**3,
    )
    setting = theorems.get("scaffold-bias/4.1").regimes["a fourth derivative"].setting
    assert check(wrong, setting).outcome.name == outcome


def test_the_last_steps_follow_and_with_other_sums_do_not() -> None:
    derivation = theorems.get("scaffold-bias/4.1").derivation
    assert [one.outcome for one in check_derivation(derivation)] == [StepOutcome.FOLLOWS] * 4
    for step in derivation.steps:
        wrong = replace(step, claim=replace(step.claim, right=step.claim.right * scaffold_bias.H))
        assert check_step(wrong).outcome is StepOutcome.DIFFERS
