"""The worth of stale updates: plain loops, closed form, sampling, and the experiment's symmetry."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, permutations

import numpy as np
import pytest

from docs.scripts.shapley import (
    AGGREGATES,
    StalePlan,
    contributions,
    last_round,
    quadratic_shapley_values,
    stale_problem,
    worths,
)
from fltheory.algorithms import Mifa
from fltheory.engines.clients.analytic_clients import GaussianNoise, SteppedClients
from fltheory.engines.simulation import simulate
from fltheory.participation import Trace

QUIET = StalePlan(4, rounds=6, dim=2, client_lr=0.1, local_steps=3, sigma_G=0.8, sigma=0.0)


def by_loops(plan: StalePlan, staleness: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x_T and the latest updates u_i of a noise-free run, step by step."""
    problem = stale_problem(plan)
    x = problem.x_star + plan.distance / np.sqrt(plan.dim)
    latest = np.zeros((plan.n_clients, plan.dim))
    before = x
    for t in range(plan.rounds):
        before = x
        for i in range(plan.n_clients):
            if i == plan.n_clients - 1 and t >= plan.rounds - staleness:
                continue
            y = x.copy()
            for _ in range(plan.local_steps):
                y = y - plan.client_lr * problem.hessians @ (y - problem.optima[i])
            latest[i] = y - x
        x = x + latest.mean(axis=0)
    return before, latest


def over_all_orders(plan: StalePlan, x: np.ndarray, updates: np.ndarray) -> np.ndarray:
    problem, n = stale_problem(plan), plan.n_clients

    def loss(members) -> float:
        divisor = n if plan.aggregate == "sum" else max(len(members), 1)
        return problem.loss(x + sum((updates[i] for i in members), np.zeros(x.size)) / divisor)

    values, orders = np.zeros(n), list(permutations(range(n)))
    for order in orders:
        for place, player in enumerate(order):
            values[player] += loss(order[:place]) - loss(order[: place + 1])
    return values / len(orders)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("staleness", [0, 1, 4, 5])
def test_noise_free_values_by_plain_loops_and_all_orders(aggregate: str, staleness: int) -> None:
    plan = replace(QUIET, aggregate=aggregate)
    (found,) = contributions(plan, [staleness])
    expected = over_all_orders(plan, *by_loops(plan, staleness))
    np.testing.assert_allclose(found.values, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("staleness", [0, 2, 5])
def test_sums_have_a_closed_form(staleness: int) -> None:
    """F(x) - F(x + sum u_i / N): l_i = -g'u_i/N and Q_ij = -u_i'H u_j / (2 N^2), in expectation."""
    plan = replace(QUIET, aggregate="sum", sigma=0.7)
    _, second = last_round(plan, staleness)
    blocks = second.reshape(5, 2, 5, 2).swapaxes(1, 2)
    hessian, n = stale_problem(plan).mean_hessian, plan.n_clients
    products = np.einsum("ab,ijab->ij", hessian, blocks)
    expected = quadratic_shapley_values(-products[0, 1:] / n, -products[1:, 1:] / (2 * n**2))
    (found,) = contributions(plan, [staleness])
    np.testing.assert_allclose(found.values, expected, rtol=1e-10, atol=1e-13)


def test_expected_worths_agree_with_sampled_runs() -> None:
    """No mean of 20 000 noisy runs is 8 standard errors off: 16 coalitions, two-sided 1.3e-15.

    Worths are quadratic in Gaussians; skewness below 3 inflates the tail by at most 10
    (Cramer's correction exp(3 * 8^3 / (6 sqrt(20 000)))). False alarm below 1e-12.
    """
    plan, staleness, replicas = replace(QUIET, sigma=1.0), 3, 20_000
    problem = stale_problem(plan)
    present = np.ones((plan.rounds, plan.n_clients), dtype=bool)
    present[plan.rounds - staleness :, -1] = False
    states = simulate(
        Mifa(plan.client_lr, plan.local_steps, start="zero"),
        SteppedClients(problem, GaussianNoise(np.random.default_rng(5))),
        Trace(present, start=0),
        np.tile(problem.x_star + plan.distance / np.sqrt(plan.dim), (replicas, 1)),
        participation_rng=np.random.default_rng(0),
        branch_rng=np.random.default_rng(0),
    )
    runs = [state for state, _ in islice(states, plan.rounds + 1)]
    x, updates = runs[-2]["x"], -plan.client_lr * runs[-1]["updates"]
    expected = worths(plan, last_round(plan, staleness)[1])
    for index, worth in enumerate(expected):
        members = [i for i in range(plan.n_clients) if index >> i & 1]
        after = x + updates[:, members].sum(axis=1) / max(len(members), 1)
        sample = problem.loss(x) - problem.loss(after)
        error = sample.std(ddof=1) / np.sqrt(replicas)
        assert abs(sample.mean() - worth) <= 8 * error + 1e-13


def test_values_add_up_to_the_whole_step() -> None:
    plan = replace(QUIET, sigma=0.5)
    for found in contributions(plan, [0, 3]):
        second = last_round(plan, found.staleness)[1]
        assert found.values.sum() == pytest.approx(worths(plan, second)[-1], rel=1e-12)


def test_alike_clients_share_alike_while_all_are_fresh() -> None:
    (found,) = contributions(replace(QUIET, sigma_G=0.0, sigma=0.5), [0])
    np.testing.assert_allclose(found.values, found.values.mean(), rtol=1e-10)


def test_the_last_client_is_the_extreme_one() -> None:
    problem = stale_problem(QUIET)
    gradients = np.linalg.norm(problem.gradients_at_optimum, axis=1)
    assert gradients.argmax() == QUIET.n_clients - 1
    assert gradients[-1] == pytest.approx(QUIET.sigma_G, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clients": 1}, "n_clients must be a whole number of at least 2"),
        ({"rounds": 0}, "rounds must be a whole number of at least 1"),
        ({"client_lr": 0.0}, "client_lr must be a finite number above 0"),
        ({"sigma": -1.0}, "sigma must be a finite number of at least 0"),
        ({"aggregate": "median"}, "aggregate must be one of 'mean', 'sum', got 'median'"),
    ],
)
def test_bad_plans(changes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(QUIET, **changes)


@pytest.mark.parametrize(
    ("staleness", "message"),
    [
        (6, "staleness must be below the 6 rounds, got 6"),
        (-1, "staleness must be a whole number of at least 0"),
    ],
)
def test_bad_staleness(staleness: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(contributions(QUIET, [staleness]))
