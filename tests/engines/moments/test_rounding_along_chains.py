"""Rounding errors along chains are within their bounds, against 60 digits."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import RawQuadratics, convert, many_digits, random_problem

from fltheory.algorithms import WeightedFedAvg
from fltheory.engines import Setting, exact, stationary
from fltheory.engines.trajectory import FIELDS
from fltheory.participation import FiniteChain, MarkovOnOff
from fltheory.problems import QuadraticProblem


class Digits:
    """Every state's moments in raw coordinates and 60 digits, by plain loops."""

    def __init__(
        self, algorithm: WeightedFedAvg, problem: QuadraticProblem, chain: FiniteChain
    ) -> None:
        self.raw = RawQuadratics(problem, many_digits)
        self.transition = convert(chain.transition, many_digits)
        self.law = convert(chain.initial, many_digits)
        local = [
            self.raw.local_sgd(k, algorithm.local_steps, algorithm.client_lr)
            for k in range(problem.n_clients)
        ]
        self.maps = []
        for mask in chain.state_masks:
            slope, offset = self.raw.identity, 0 * self.raw.x_star
            noise = 0 * self.raw.identity
            for k in np.flatnonzero(mask):
                w = many_digits(algorithm.aggregation_weights[k])
                slope = slope + w * (local[k].slope - self.raw.identity)
                offset = offset + w * local[k].offset
                noise = noise + w**2 * local[k].noise
            self.maps.append((slope, offset, noise))

    def moved(self, values: list[Any]) -> list[Any]:
        states = range(len(values))
        return [sum(self.transition[i, j] * values[i] for i in states) for j in states]

    def trajectory(self, x0: np.ndarray, rounds: int) -> dict[str, list[Any]]:
        start = convert(x0, many_digits)
        laws = list(self.law)
        firsts = [w * start for w in laws]
        seconds = [w * np.outer(start, start) for w in laws]
        history = [self.raw.errors(sum(seconds).ravel(), sum(firsts))]
        for _ in range(rounds):
            images, spreads = [], []
            for (slope, offset, noise), w, m, M in zip(
                self.maps, laws, firsts, seconds, strict=True
            ):
                pushed = np.outer(slope @ m, offset)
                spreads.append(
                    slope @ M @ slope.T + pushed + pushed.T + w * (np.outer(offset, offset) + noise)
                )
                images.append(slope @ m + w * offset)
            firsts, seconds, laws = self.moved(images), self.moved(spreads), self.moved(laws)
            history.append(self.raw.errors(sum(seconds).ravel(), sum(firsts)))
        return {name: [errors[name] for errors in history] for name in FIELDS}


def worst_share_of_bound(
    algorithm: WeightedFedAvg,
    problem: QuadraticProblem,
    chain: FiniteChain,
    rounds: int,
    x0: np.ndarray,
) -> tuple[float, float]:
    """Return the largest |error| / bound, and the largest bound / value."""
    run = exact(Setting(algorithm, problem, chain, rounds, x0))
    assert run.rounding_error is not None
    with mpmath.workdps(60):
        truth = Digits(algorithm, problem, chain).trajectory(x0, rounds)
        shares = [
            abs(mpmath.mpf(float(value)) - right) / mpmath.mpf(float(bound))
            for name, values in truth.items()
            for value, right, bound in zip(run[name], values, run.rounding_error[name], strict=True)
        ]
    width = max(float((run.rounding_error[name] / run[name]).max()) for name in FIELDS)
    return float(max(shares)), width


def chain_of(seed: int, n_states: int, n_clients: int, stays: float) -> FiniteChain:
    """Return a chain whose probabilities are multiples of 2^-20, and so add up to one exactly."""
    rng = np.random.default_rng(seed)
    fresh = rng.dirichlet(np.ones(n_states), size=n_states) + 0.01
    fresh /= fresh.sum(axis=1, keepdims=True)
    counts = rng.multinomial(2**20, stays * np.eye(n_states) + (1 - stays) * fresh)
    return FiniteChain(counts / 2**20, rng.random((n_states, n_clients)) < 0.5, start=0)


def far(problem: QuadraticProblem, shift: float) -> QuadraticProblem:
    return QuadraticProblem(problem.hessians, problem.optima + shift, sigma=problem.sigma)


WEIGHTS = (0.5, 1.25, 0.75)
BENIGN = {
    "a few states": (0.2, 3, random_problem(0, 3, 2), chain_of(0, 4, 3, 0.0), 60),
    "shared Hessian": (0.2, 2, random_problem(1, 3, 2, shared=True), chain_of(1, 4, 3, 0.5), 60),
    "long spells, long run": (0.2, 2, random_problem(2, 3, 1), chain_of(2, 3, 3, 0.99), 300),
    "small steps": (1e-4, 1, random_problem(3, 3, 2), chain_of(3, 3, 3, 0.5), 200),
}
HARD = {
    "ill-conditioned": (
        0.01,
        3,
        random_problem(4, 3, 2, curvatures=(1e-4, 60.0)),
        chain_of(4, 3, 3, 0.5),
        150,
    ),
    "far from the origin": (0.2, 3, far(random_problem(5, 3, 2), 1e7), chain_of(5, 3, 3, 0.5), 60),
    "some sets expand": (0.9, 1, random_problem(6, 3, 2), chain_of(6, 4, 3, 0.2), 60),
    "diverging": (1.5, 1, random_problem(7, 3, 2), chain_of(7, 4, 3, 0.5), 60),
    "many local steps": (
        0.1,
        200,
        random_problem(8, 3, 1, curvatures=(0.01, 10.0)),
        chain_of(8, 3, 3, 0.5),
        5,
    ),
}


@pytest.mark.parametrize("case", [*BENIGN, *HARD])
def test_rounding_error_is_within_its_bound(case: str) -> None:
    lr, steps, problem, chain, rounds = (BENIGN | HARD)[case]
    x0 = problem.x_star + np.linspace(1.0, 2.0, problem.dim)
    algorithm = WeightedFedAvg(WEIGHTS, lr, steps)
    share, width = worst_share_of_bound(algorithm, problem, chain, rounds, x0)
    assert share <= 1.0
    if case in BENIGN:
        assert width <= 1e-6


@given(
    seed=st.integers(0, 10**6),
    states=st.integers(2, 4),
    dim=st.integers(1, 2),
    shared=st.booleans(),
    step=st.floats(0.01, 1.2),
    steps=st.sampled_from([1, 2, 5, 50]),
    sigma=st.sampled_from([0.0, 1e-3, 1.0, 1e3]),
    stays=st.sampled_from([0.0, 0.5, 0.99]),
    start=st.sampled_from([1e-6, 1.0, 1e6]),
    size=st.sampled_from([0.01, 1.0, 3.0]),
)
def test_rounding_error_is_within_its_bound_on_random_settings(
    seed: int,
    states: int,
    dim: int,
    shared: bool,
    step: float,
    steps: int,
    sigma: float,
    stays: float,
    start: float,
    size: float,
) -> None:
    problem = random_problem(seed, 3, dim, shared=shared, sigma=sigma)
    x0 = problem.x_star + start * np.linspace(-1.0, 1.5, dim)
    algorithm = WeightedFedAvg(tuple(size * w for w in WEIGHTS), step, steps)
    chain = chain_of(seed, states, 3, stays)
    share, _ = worst_share_of_bound(algorithm, problem, chain, 6, x0)
    assert share <= 1.0


@pytest.mark.parametrize(("correlation", "rounds"), [(0.5, 200), (0.99, 4000)])
def test_limit_and_long_run_differ_by_no_more_than_their_bounds(
    correlation: float, rounds: int
) -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [2.0]], sigma=0.5)
    arguments = (WeightedFedAvg((0.5, 1.0), 0.5, 1), problem)
    chains = MarkovOnOff([0.5, 0.25], correlation)
    limit, run = (
        stationary(Setting(*arguments, chains, 1, [1.0])),
        exact(Setting(*arguments, chains, rounds, [1.0])),
    )
    assert run.rounding_error is not None
    for name in FIELDS:
        gap = abs(getattr(limit, name) - run[name][-1])
        assert gap <= limit.rounding_error[name] + run.rounding_error[name][-1]


def test_the_limits_bound_is_useful_under_strong_correlation() -> None:
    """nu = 0.9999, spells of ten thousand rounds."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [2.0]], sigma=0.5)
    algorithm = WeightedFedAvg((0.5, 1.0), 0.5, 1)
    limit = stationary(
        Setting(algorithm, problem, MarkovOnOff([0.5, 0.25], 0.9999), 1, problem.x_star)
    )
    for name in FIELDS:
        assert limit.rounding_error[name] <= 1e-4 * getattr(limit, name)
