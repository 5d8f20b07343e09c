"""Bounds on rounding errors that do not grow where the moments converge."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms import Scaffold
from fltheory.engines import exact
from fltheory.engines.steady_norm import SteadyNorm, steady_norm
from fltheory.participation import UniformSubset
from fltheory.problems import quadratic


def spread_of(matrices: np.ndarray) -> np.ndarray:
    """Return the matrix of M -> mean of A M A', entry by entry."""
    n = matrices.shape[1]
    columns = []
    for index in range(n * n):
        unit = np.zeros(n * n)
        unit[index] = 1.0
        m = unit.reshape(n, n)
        columns.append(np.mean([a @ m @ a.T for a in matrices], axis=0).ravel())
    return np.array(columns).T


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_it_bounds_every_power_of_a_stable_map(seed: int, n: int) -> None:
    """tr(X M) of a positive M never grows by more than the gain, and X is at least I."""
    rng = np.random.default_rng(seed)
    matrices = rng.normal(size=(3, n, n))
    spread = spread_of(matrices)
    spread *= 0.9 / np.abs(np.linalg.eigvals(spread)).max()
    norm = steady_norm(spread)
    assert norm is not None
    assert norm.gain < 1
    root = rng.normal(size=(n, n))
    moment, bound = root @ root.T, norm.weight * float(np.trace(root @ root.T))
    for _ in range(20):
        moment = (spread @ moment.ravel()).reshape(n, n)
        bound *= norm.gain
        assert np.trace(moment) <= bound * (1 + 1e-9)


def test_there_is_none_where_moments_do_not_converge() -> None:
    assert steady_norm(spread_of(np.array([[[1.1]]]))) is None
    assert steady_norm(spread_of(np.array([np.diag([0.5, 1.0])]))) is None


def test_gain_and_weight_of_one_number() -> None:
    """A = 1/2: X = 1/(1 - 1/4), and E[A'XA]/X = 1/4."""
    norm = steady_norm(np.array([[0.25]]))
    assert norm is not None
    assert norm.weight == pytest.approx(1.0, rel=1e-12)  # over X's least eigenvalue
    assert norm.gain == pytest.approx(0.25, rel=1e-12)


def test_propagation_by_hand() -> None:
    seconds, firsts = SteadyNorm(weight=4.0, gain=0.25).propagate(
        1.0, 2.0, [0.5, 0.0], [0.1, 0.0], 3.0
    )
    assert firsts == pytest.approx([0.5 * 4 + 2 * 0.1, 0.5 * 2.2])
    first = 0.25 * 4 + 2 * 0.5 * 2 * 3 * 4 + 4 * 0.5
    assert seconds == pytest.approx([first, 0.25 * first + 6 * 2.2])


def test_errors_of_scaffold_are_bounded_and_the_bound_is_true() -> None:
    """300 rounds in fractions, one client in one dimension, option II, exact gradients.

    One client: y_K - x = ((1 - lr)^K - 1)(x - 1), as c_1 = c, so its control does not matter;
    two clients make the state grow in the trace.
    """
    problem = quadratic(2, 1, L=1.0, mu=1.0, sigma_G=0.5)
    run = exact(Scaffold(0.125, 2), problem, UniformSubset(2, 1), 300, [2.0])
    moments = in_fractions(problem.optima.ravel(), 300)
    assert run.rounding_error is not None
    errors = run.rounding_error.squared_distance
    for r in (1, 10, 100, 300):
        assert abs(Fraction(run.squared_distance[r]) - moments[r]) <= Fraction(errors[r])
    assert errors[300] < 1e-9


def in_fractions(optima: np.ndarray, rounds: int) -> list[Fraction]:
    """E (x_r - x*)^2 of SCAFFOLD II at lr = 1/8, K = 2, one of two clients, from x = 2."""
    centres = [Fraction(float(value)) for value in optima]
    x_star = sum(centres) / 2
    a = Fraction(7, 8) ** 2
    maps = []
    for i in range(2):
        # x - x* moves to a (x - x*) + (1 - a)(c_i - x*) - (1 - a)(c - c_i) in controls.
        move = [a, *(-(1 - a) / 2 for _ in range(2)), (1 - a) * (centres[i] - x_star)]
        move[1 + i] += 1 - a
        control = [(1 - a) * 4, Fraction(0), Fraction(0), -(1 - a) * 4 * (centres[i] - x_star)]
        for j in range(2):
            control[1 + j] += ((1 - a) / 2 - (1 - a) * (i == j)) * 4 - (Fraction(1, 2) - (i == j))
        rows = [move, [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
        rows[1 + i] = control
        maps.append(np.array([[Fraction(entry) for entry in row] for row in rows], dtype=object))
    start = np.array([Fraction(2) - x_star, Fraction(0), Fraction(0), Fraction(1)], dtype=object)
    moment = np.outer(start, start)
    seen = [moment[0, 0]]
    for _ in range(rounds):
        moment = sum(m.dot(moment).dot(m.T) for m in maps) / 2
        # Fractions grow fast: 200 bits are kept, far more than float64's 53.
        moment = np.vectorize(lambda f: Fraction(round(f * 2**200), 2**200), otypes=[object])(
            moment
        )
        seen.append(moment[0, 0])
    return seen
