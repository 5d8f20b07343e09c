"""Draws with replacement, against every sequence of draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms import FedAvg, Harmonic, LocalSgd
from fltheory.algorithms.contract import Algorithm, Array, Clients, State
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.participation import WithReplacement
from fltheory.problems import QuadraticProblem

P = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
CLIENTS = QuadraticProblem(
    np.array([np.diag([1.0, 0.5]), np.diag([0.3, 1.0]), np.array([[0.7, 0.1], [0.1, 0.6]])]),
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]],
    target_weights=[0.5, 0.25, 0.25],
)


def sequences(p: tuple[Fraction, ...], draws: int) -> dict[tuple[int, ...], Fraction]:
    """Return the law of counts, draw by draw."""
    found: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for drawn in product(range(len(p)), repeat=draws):
        chance = Fraction(1)
        for client in drawn:
            chance *= p[client]
        found[tuple(drawn.count(k) for k in range(len(p)))] += chance
    return {counts: chance for counts, chance in found.items() if chance > 0}


@given(weights=st.lists(st.integers(0, 5), min_size=2, max_size=4), draws=st.integers(1, 4))
def test_the_law_is_that_of_every_sequence_of_draws(weights: list[int], draws: int) -> None:
    if not any(weights):
        return
    p = tuple(Fraction(w, sum(weights)) for w in weights)
    process = WithReplacement([float(q) for q in p], draws)
    expected = sequences(p, draws)
    found = {tuple(counts.tolist()): float(chance) for chance, counts in process.outcomes()}
    assert found == pytest.approx({k: float(v) for k, v in expected.items()}, rel=1e-12)
    assert process.n_outcomes == len(expected)
    drawn = {counts: np.array(counts) > 0 for counts in expected}
    marginals = sum(float(chance) * drawn[counts] for counts, chance in expected.items())
    pairs = sum(float(c) * np.outer(drawn[n], drawn[n]) for n, c in expected.items())
    np.testing.assert_allclose(process.marginals, marginals, atol=1e-12)
    np.testing.assert_allclose(process.pair_inclusions, pairs, atol=1e-12)
    sizes = {int(mask.sum()) for mask in drawn.values()}
    assert process.fixed_size == (sizes.pop() if len(sizes) == 1 else None)


def test_draws_have_the_law() -> None:
    """40,000 rounds, 10 multisets, six deviations each: false alarms below 2e-8."""
    process = WithReplacement([float(q) for q in P], 3)
    drawn = next(islice(process.masks(np.random.default_rng(2), 40_000), 1, None))
    for counts, chance in sequences(P, 3).items():
        share = (drawn == np.array(counts)).all(axis=1).mean()
        assert abs(share - chance) < 6 * np.sqrt(float(chance * (1 - chance)) / 40_000)


def plain_error() -> float:
    """Nine steps, three to an average of two draws: a loop over all sequences of draws."""
    total = 0.0
    for path in product(product(range(3), repeat=2), repeat=3):
        models = np.tile([2.0, -1.0], (3, 1))
        for t in range(1, 10):
            pulls = np.einsum("kab,kb->ka", CLIENTS.hessians, models - CLIENTS.optima)
            models = models - 0.5 / (t + 2) * pulls
            if t % 3 == 0:
                models = np.tile(models[list(path[t // 3 - 1])].mean(axis=0), (3, 1))
        chance = np.prod([float(P[client]) for drawn in path for client in drawn])
        total += float(chance * ((models[0] - CLIENTS.x_star) ** 2).sum())
    return total


@pytest.mark.parametrize("engine", [exact, lambda setting: exact(setting, arithmetic="enclosed")])
def test_a_client_drawn_twice_counts_twice(engine: Callable[[Setting], Any]) -> None:
    method = LocalSgd(Harmonic(0.5, offset=2.0), 3, (0.5, 0.25, 0.25), sampled="average")
    setting = Setting(method, CLIENTS, WithReplacement([0.5, 0.25, 0.25], 2), 9, [2.0, -1.0])
    error = float(engine(setting).squared_distance[-1])
    assert error == pytest.approx(plain_error(), rel=1e-12)


def test_real_rounds_count_it_too() -> None:
    """Seven standard errors: a false alarm below 3e-12."""
    method = LocalSgd(Harmonic(0.5, offset=2.0), 3, (0.5, 0.25, 0.25), sampled="average")
    setting = Setting(method, CLIENTS, WithReplacement([0.5, 0.25, 0.25], 2), 9, [2.0, -1.0])
    run = monte_carlo(setting, replicas=4000, seed=7)
    assert run.standard_error is not None
    gap = abs(run.squared_distance[-1] - plain_error())
    assert gap < 7 * run.standard_error["squared_distance"][-1]


def test_an_algorithm_that_counts_nobody_twice_is_refused() -> None:
    drawn = WithReplacement([0.5, 0.25, 0.25], 2)
    with pytest.raises(ValueError, match=r"algorithm must weight a client by how often"):
        Setting(FedAvg(0.1, 1), CLIENTS, drawn, 1, [0.0, 0.0])
    stepping = LocalSgd(Harmonic(0.5), 1, (0.5, 0.25, 0.25))
    with pytest.raises(ValueError, match=r"algorithm must weight a client by how often"):
        Setting(stepping, CLIENTS, drawn, 1, [0.0, 0.0])


@pytest.mark.parametrize("p", [[0.5, 0.6], [1.5, -0.5], [0.0, 0.0]])
def test_probabilities_sum_to_one(p: list[float]) -> None:
    with pytest.raises(ValueError, match=r"probabilities must not be negative and must sum"):
        WithReplacement(p, 1)


def test_other_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"probabilities must have shape \(N,\)"):
        WithReplacement([[1.0]], 1)
    with pytest.raises(ValueError, match=r"draws must be a whole number of at least 1"):
        WithReplacement([1.0], 0)


@dataclass(frozen=True)
class MeanOfDraws(Algorithm):
    """A step of each client drawn, their mean over the draws."""

    lr: float
    draws: int
    counts_draws: bool = True

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        changes = clients.local_sgd(state["x"], who > 0, steps=1, lr=self.lr)
        return {"x": state["x"] + (who[:, :, None] * changes).sum(axis=1) / self.draws}


@pytest.mark.parametrize(("n_clients", "draws"), [(3, 2), (12, 2), (6, 4)])
def test_moments_where_sets_are_few_or_many(n_clients: int, draws: int) -> None:
    """With one Hessian, 1, ``x' = (1 - eta) x + eta mean(c)``: K independent draws of variance v.

    So means go to ``(1 - eta) m + eta E c`` and variances to ``(1 - eta)^2 V + eta^2 v/K``; 12
    clients have 78 multisets of two, more than are gone through at once.
    """
    p = np.arange(1.0, n_clients + 1) / (n_clients * (n_clients + 1) / 2)
    optima, lr, rounds = np.arange(n_clients) ** 2 / 7.0, 0.25, 5
    problem = QuadraticProblem([[1.0]], optima[:, None])
    setting = Setting(MeanOfDraws(lr, draws), problem, WithReplacement(p, draws), rounds, [3.0])
    mean, variance, expected = 3.0, 0.0, []
    for _ in range(rounds + 1):
        expected.append((mean - optima.mean()) ** 2 + variance)
        mean = (1 - lr) * mean + lr * (p @ optima)
        spread = p @ optima**2 - (p @ optima) ** 2
        variance = (1 - lr) ** 2 * variance + lr**2 * spread / draws
    np.testing.assert_allclose(exact(setting).squared_distance, expected, rtol=1e-12)


def test_more_multisets_than_can_be_gone_through_are_refused() -> None:
    problem = QuadraticProblem([[1.0]], np.arange(100.0)[:, None])
    setting = Setting(
        MeanOfDraws(0.25, 2), problem, WithReplacement(np.full(100, 0.01), 2), 3, [3.0]
    )
    with pytest.raises(NotAffineError, match=r"at most 4096 outcomes .* twice, got 5050"):
        exact(setting)
