"""Rounding bounds with memory: against many digits, useful, and never below what errors do."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import FedVarp, Mifa, ProxSkip, Scaffold
from fltheory.algorithms.contract import EVERY_ROUND_CLIENTS, Algorithm
from fltheory.engines import Setting, exact, paths
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.moments.moment_map import (
    _FEW,
    _accumulated,
    gains,
    grown_errors,
    steady_errors,
)
from fltheory.engines.trajectory import Trajectory
from fltheory.participation import Bernoulli, FiniteChain, MarkovOnOff, Participation, UniformSubset
from fltheory.problems import QuadraticProblem
from tests.drawn import in_turn

Engine = Callable[[Setting], Trajectory]

ROUNDS, LR, HESSIANS, OPTIMA, SIGMA = 150, 0.25, (1.0, 0.5), (3.0, -1.0), 0.75
PROBLEM = QuadraticProblem([[[h]] for h in HESSIANS], [[c] for c in OPTIMA], sigma=SIGMA)


def maps_of_one_client(algorithm: Algorithm, client: int):
    """Return A, b and the noise's column of (x, y_0, y_1) with only this client there, K = 1.

    FedVARP and SCAFFOLD II with one step: the model goes along g_i - y_i + mean y, and y_i
    becomes g_i + noise. MIFA: y_i becomes g_i + noise, then the model goes along mean y.
    """
    lr, h, c = (mpmath.mpf(v) for v in (LR, HESSIANS[client], OPTIMA[client]))
    a, b, column = mpmath.eye(3), mpmath.zeros(3, 1), mpmath.zeros(3, 1)
    place = 1 + client
    a[place, place], a[place, 0], b[place], column[place] = 0, h, -h * c, 1
    if isinstance(algorithm, Mifa):
        other = 2 - client
        a[0, 0], a[0, other], b[0], column[0] = 1 - lr * h / 2, -lr / 2, lr * h * c / 2, -lr / 2
        return a, b, column
    a[0, 0], b[0], column[0] = 1 - lr * h, lr * h * c, -lr
    a[0, place] += lr
    for memory in (1, 2):
        a[0, memory] -= lr / 2
    return a, b, column


def digits(algorithm: Algorithm, stays: float) -> list:
    """Return E (x - x*)^2 of every round in 60 digits; the same client again with ``stays``."""
    star = sum(mpmath.mpf(h) * c for h, c in zip(HESSIANS, OPTIMA, strict=True)) / sum(HESSIANS)
    maps = [maps_of_one_client(algorithm, client) for client in (0, 1)]
    half, variance = mpmath.mpf(1) / 2, mpmath.mpf(SIGMA) ** 2
    firsts = [half * mpmath.matrix([1, 0, 0]) for _ in maps]
    seconds = [half * mpmath.matrix([[1, 0, 0], [0, 0, 0], [0, 0, 0]]) for _ in maps]
    found = []
    for _ in range(ROUNDS + 1):
        second, first = seconds[0] + seconds[1], firsts[0] + firsts[1]
        found.append(second[0, 0] - 2 * star * first[0] + star**2)
        images = []
        for (a, b, column), m, mm in zip(maps, firsts, seconds, strict=True):
            push = a * m * b.T
            fresh = half * (b * b.T + variance * column * column.T)
            images.append((a * m + half * b, a * mm * a.T + push + push.T + fresh))
        firsts, seconds = (
            [stays * i + (1 - stays) * j for i, j in (pair, pair[::-1])]
            for pair in zip(*images, strict=True)
        )
    return found


@pytest.mark.parametrize(
    "algorithm",
    [FedVarp(LR, 1), Scaffold(LR, 1), Mifa(LR, 1, start="zero")],
    ids=["FedVARP", "SCAFFOLD", "MIFA"],
)
@pytest.mark.parametrize("stays", [0.5, 0.75])
def test_errors_with_memory_are_within_bounds_that_are_useful(
    algorithm: Algorithm, stays: float
) -> None:
    """One of two clients per round, drawn afresh or kept for a while.

    MIFA's limit is 2e-9: memory is measured in powers of two (`StateLayout.units`), and its factor
    lies halfway between two of them, so that the last place decides which.
    """
    chain = FiniteChain([[stays, 1 - stays], [1 - stays, stays]], np.eye(2, dtype=bool))
    participation: Participation = UniformSubset(2, 1) if stays == 0.5 else chain
    run = exact(Setting(algorithm, PROBLEM, participation, ROUNDS, [1.0]))
    assert run.rounding_error is not None
    with mpmath.workdps(60):
        for value, truth, bound in zip(
            run.squared_distance,
            digits(algorithm, stays),
            run.rounding_error.squared_distance,
            strict=True,
        ):
            assert abs(mpmath.mpf(float(value)) - truth) <= bound
            assert bound <= (2e-9 if isinstance(algorithm, Mifa) else 1e-9) * value


@pytest.mark.parametrize(
    ("participation", "lr"),
    in_turn(
        [UniformSubset(3, 2), Bernoulli([0.3, 0.6, 0.9]), MarkovOnOff([0.4] * 3, 0.6)],
        [0.3, 0.003],
        of=2,
    ),
)
def test_bounds_stay_useful_in_long_runs(lr: float, participation: Participation) -> None:
    problem = random_problem(6, 3, 2, sigma=0.7)
    for algorithm in (Mifa(lr, 2, start="zero"), FedVarp(lr, 2), Scaffold(lr, 2, option=1)):
        run = exact(Setting(algorithm, problem, participation, 500, [1.5, -1.0]))
        assert run.rounding_error is not None
        assert (run.rounding_error.squared_distance <= 1e-4 * run.squared_distance).all()


def test_gains_are_norms_of_powers() -> None:
    slope = np.array([[0.5, 4.0], [0.0, 0.25]])
    source = gains(lambda x: slope.T @ x @ slope, np.eye(2))
    power = np.eye(2)
    for _ in range(6):
        assert next(source) == pytest.approx(np.linalg.norm(power, 2) ** 2, rel=1e-12)
        power = power @ slope


def test_errors_add_up_with_their_growth_since() -> None:
    """Gains 1, 3, 2, .4: 2 + 3 + 4 = 9 after two rounds of fresh 1 and 4; then all is forgotten."""
    growth = iter([1.0, 3.0, 2.0, 0.4, 0.1]), iter([1.0, 0.0, 0.0, 0.0, 0.0])
    fresh = np.array([1.0, 4.0, 0.0, 0.0]), np.zeros(4)
    second, first = grown_errors(growth, 0.0, (1.0, 0.0), fresh)
    expected = [3 * 1 + 1, 2 * 1 + 3 * 1 + 4, 0.4 + 2 * 1 + 3 * 4, 3 * 14.4]
    assert second == pytest.approx(expected)
    assert first == [0.0] * 4


def test_steady_growth_is_the_plain_recursion() -> None:
    fresh = np.array([3.0, 0.0]), np.array([1.0, 0.5])
    second, first = steady_errors((0.5, 0.25), 2.0, (1.0, 4.0), fresh)
    assert (second[0], first[0]) == (0.5 + 8 + 3, 1 + 1)
    assert (second[1], first[1]) == (0.5 * 11.5 + 2 * 2, 0.25 * 2 + 0.5)


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 40])
def test_errors_of_m_push_those_of_the_next_m(rounds: int) -> None:
    """Term by term, all errors being taken together every three rounds, when .4 is reached."""
    rng = np.random.default_rng(0)
    fresh, coupling = rng.uniform(0, 1, (2, rounds)), 0.3
    gain = [1.0, 1.5, 0.8, 0.4], [1.0, 0.7, 0.6, 0.5]
    found = grown_errors((iter(gain[0]), iter(gain[1])), coupling, (1.0, 2.0), tuple(fresh))
    begun, since = [1.0, 2.0], 0
    added: list[list[float]] = [[], []]
    now = list(begun)
    for index in range(rounds):
        push = fresh[0, index] + coupling * now[1]
        added[0].append(push)
        added[1].append(fresh[1, index])
        since += 1
        now = [
            gain[k][since] * begun[k]
            + sum(gain[k][since - 1 - j] * added[k][j] for j in range(since))
            for k in (0, 1)
        ]
        assert [found[0][index], found[1][index]] == pytest.approx(now, rel=1e-13)
        if since == 3:
            begun, since, added = now, 0, [[], []]


def test_memory_is_measured_in_powers_of_two_and_the_model_as_it_is() -> None:
    problem = random_problem(6, 3, 2)
    units = StateLayout.of(Mifa(0.01, 2, start="zero"), problem).units
    assert (units[:2] == 1).all()
    assert (units[2:] > 1).all()
    assert (np.log2(units) == np.rint(np.log2(units))).all()


@pytest.mark.parametrize(
    "participation", [Bernoulli([0.5]), FiniteChain(np.full((2, 2), 0.5), [[0], [1]])]
)
def test_memory_that_moves_nothing_is_measured_as_the_model_makes_it(
    participation: Participation,
) -> None:
    """One client's control cancels: a coin decides whether (x - x*)^2 shrinks by (1 - lr h)^2.

    The control is seven times as large as the model; in the model's units each round would let
    its rounding grow by 49.
    """
    problem = QuadraticProblem([[7.0]], [[1.0]])
    run = exact(Setting(Scaffold(0.125, 1), problem, participation, rounds=8, x0=[3.0]))
    assert run.rounding_error is not None
    expected = 4 * (0.5 + 0.5 * 0.125**2) ** np.arange(9)
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-13)
    assert (run.rounding_error.squared_distance <= 1e-12 * expected[0]).all()


@pytest.mark.parametrize("engine", [exact, paths])
@pytest.mark.parametrize("n_clients", [2, 3])
def test_bounds_hardly_depend_on_the_unit_of_losses(engine: Engine, n_clients: int) -> None:
    """Losses 2^16 times as steep, with steps 2^16 times as short, make the same models.

    ProxSkip's controls are gradients, and its model is an output that moves no other entry.
    """
    rng = np.random.default_rng(5)
    hessians, optima = rng.uniform(1, 2, (n_clients, 1, 1)), rng.normal(size=(n_clients, 1))
    participation, relative = Bernoulli(rng.uniform(0.3, 0.9, n_clients)), []
    for scale in (1.0, 2.0**16):
        problem = QuadraticProblem(hessians * scale, optima, sigma=0.1 * scale)
        algorithm = ProxSkip(0.4 / scale, 0.1)
        run = engine(Setting(algorithm, problem, participation, 8, [3.0]))
        assert run.rounding_error is not None
        relative.append(run.rounding_error.squared_distance / run.squared_distance)
    assert relative[0].max() < 1e-9
    assert (relative[1] <= 3 * relative[0]).all()


@pytest.mark.parametrize("more", [0, 1, 300])
@pytest.mark.parametrize("gain", [0.0, 0.75, 1.0, 1.01])
def test_errors_are_added_up_round_by_round(gain: float, more: int) -> None:
    """One after the other, or as a system of equations; exact sums in fractions."""
    fresh = [Fraction(3 * k % 7 + 1, 8) for k in range(_FEW + more)]
    held, expected = Fraction(5, 2), []
    for one in fresh:
        held = Fraction(gain) * held + one
        expected.append(float(held))
    found = _accumulated(gain, np.array([float(one) for one in fresh]), 2.5)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


class FarScales:
    """Two memories a scale of 1e90 above the model: their ratios in turn are no floats."""

    branches = EVERY_ROUND_CLIENTS

    def init(self, x0, n_clients):
        return {"x": x0, "a": 0 * x0, "b": 0 * x0}

    def round(self, state, clients, who, branch):
        step = clients.summed_local_sgd(state["x"], who, who / clients.n_clients, steps=1, lr=0.5)
        b = state["b"] / 2 + state["a"] * 1e90
        return {"x": state["x"] + b / 1e90 / 1e90 * 0.1, "a": step * 1e90, "b": b}


def test_memories_of_scales_far_apart_leave_the_run_as_it_is() -> None:
    """One client at 1 that is always there, from 0: the steps add up by hand."""
    problem = QuadraticProblem([[[1.0]]], [[1.0]])
    run = exact(Setting(FarScales(), problem, Bernoulli([1.0]), 4, np.zeros(1)))
    x = a = b = 0.0
    for _ in range(4):
        x, a, b = x + 0.1 * (b / 2 + a), 0.5 * (1 - x), b / 2 + a
    assert run.diverged_at is None
    assert run.squared_distance[-1] == pytest.approx((x - 1) ** 2, rel=1e-12)
