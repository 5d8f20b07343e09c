"""Draws with replacement, against every sequence of draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import islice, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms import FedAvg, Harmonic, LocalSgd
from fltheory.engines import Setting, exact, monte_carlo
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
    with pytest.raises(ValueError, match=r"algorithm must weigh a client by how often"):
        Setting(FedAvg(0.1, 1), CLIENTS, drawn, 1, [0.0, 0.0])
    stepping = LocalSgd(Harmonic(0.5), 1, (0.5, 0.25, 0.25))
    with pytest.raises(ValueError, match=r"algorithm must weigh a client by how often"):
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
