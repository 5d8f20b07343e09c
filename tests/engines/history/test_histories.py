"""Moments kept apart by history, against runs along every history in fractions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from fltheory.algorithms import F3ast, FedAR, FedAU, FedAvg, FedNova, FedProx, Mifa, Scaffold
from fltheory.algorithms.contract import EVERY_ROUND_CLIENTS
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.engines import Setting, exact, monte_carlo, paths
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.history.histories import Ways, follow
from fltheory.engines.history.history_rounds import AffineRounds
from fltheory.evidence.truths import Sampling, truth
from fltheory.evidence.verdict import Grade
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset, WaitingSubset
from fltheory.problems import QuadraticProblem
from tests.drawn import a_tenth, in_turn
from tests.engines import fraction_runs as runs

TENTH = Fraction(1, 10)
ALPHA = [Fraction(3, 10), Fraction(7, 10)]


def half_more(age: int) -> Fraction:
    """Return 1 + age / 2, at most 1.75."""
    return min(1 + Fraction(age, 2), Fraction(7, 4))


ALGORITHMS = {
    "FedAvg": (FedAvg(0.1, 2), runs.fedavg(TENTH, 2)),
    "FedProx": (
        FedProx(0.1, 2, 0.7, client_weights=(1, 3)),
        runs.fedprox(TENTH, 2, Fraction(7, 10), [1, 3]),
    ),
    "FedNova": (
        FedNova(0.1, (3, 1), client_weights=(1, 3)),
        runs.fednova(TENTH, [3, 1], [1, 3]),
    ),
    "FedAU": (FedAU(0.1, 2, cutoff=3), runs.fedau(TENTH, 2, 3)),
    "FedAR": (
        FedAR(0.1, 2),
        runs.fedar(
            TENTH, 2, lambda age: min(1 + Fraction(age, 20), Fraction(2)), lambda t: Fraction(99)
        ),
    ),
    "FedAR, weights and a cut-off": (
        FedAR(0.1, 2, weight=CappedLinear(0.5, 1.75), cutoff=1),
        runs.fedar(TENTH, 2, half_more, lambda t: Fraction(1)),
    ),
    "FedAR, a cut-off that grows": (
        FedAR(0.1, 2, weight=CappedLinear(0.5, 1.75), cutoff=lambda t: t / 2),
        runs.fedar(TENTH, 2, half_more, lambda t: Fraction(t, 2)),
    ),
    "MIFA that waits": (Mifa(0.1, 2), runs.mifa(TENTH, 2)),
    "F3AST": (
        F3ast([0.3, 0.7], 1, 0.1, 2, smoothing=0.1),
        runs.f3ast(TENTH, 2, ALPHA, 1, TENTH),
    ),
    "SCAFFOLD": (Scaffold(0.1, 2), runs.scaffold(TENTH, 2)),
}
PROCESSES = {
    "Bernoulli": (
        Bernoulli([0.3, 0.8]),
        runs.bernoulli([Fraction(3, 10), Fraction(4, 5)]),
        4,
    ),
    "on and off": (
        MarkovOnOff([0.3, 0.8], [0.6, -0.2]),
        runs.on_and_off([Fraction(3, 10), Fraction(4, 5)], [Fraction(3, 5), Fraction(-1, 5)]),
        4,
    ),
    "cycle": (Cyclic([3, 2], [1, 0]), runs.cycle([3, 2], [1, 0]), 14),
    "waiting": (
        WaitingSubset([0.3, 0.8], 1),
        runs.waiting([Fraction(3, 10), Fraction(4, 5)], 1),
        5,
    ),
    "waiting for both": (
        WaitingSubset([0.3, 0.8], 2),
        runs.waiting([Fraction(3, 10), Fraction(4, 5)], 2),
        6,
    ),
}


@pytest.mark.parametrize(("name", "who", "power"), in_turn(ALGORITHMS, PROCESSES, [-6, 0, 6]))
def test_every_history_in_fractions(name: str, who: str, power: int) -> None:
    """Values err by less than their bounds, which are small; noise is as large as all else.

    Fails if a history's probability, count or noise is wrong, if two histories with different
    futures are merged, or if a bound leaves out a source of rounding.
    """
    algorithm, by_hand = ALGORITHMS[name]
    participation, law, rounds = PROCESSES[who]
    curvatures, sigma, x0 = [0.9, 0.6], float(f"0.7e{power}"), float(f"3.1e{power}")
    optima = [float(f"-1.3e{power}"), float(f"2.7e{power}")]
    problem = QuadraticProblem([[[h]] for h in curvatures], [[c] for c in optima], sigma=sigma)
    line = runs.Line(
        [runs.decimal(h) for h in curvatures],
        [runs.decimal(c) for c in optima],
        runs.decimal(sigma),
    )
    expected = runs.squared_distances(by_hand, line, law, rounds, runs.decimal(x0))
    found = paths(Setting(algorithm, problem, participation, rounds, [x0]))
    assert found.rounding_error is not None
    assert found.standard_error is None
    bounds = found.rounding_error.squared_distance
    for value, right, bound in zip(found.squared_distance, expected, bounds, strict=True):
        assert abs(Fraction(float(value)) - right) <= Fraction(float(bound))
        assert bound <= 1e-6 * value


def test_mifa_that_waits_is_not_affine_in_its_table() -> None:
    """One of four clients per round: nothing moves before the fourth, and then it does.

    `exact` once saw maps that leave the model where it is and said 12.25 for ever. Fails if the
    question whether everybody has appeared is answered at probe states rather than refused.
    """
    optima = [[0.0], [1.0], [2.0], [3.0]]
    problem = QuadraticProblem([[1.0]], optima)
    setting = Setting(Mifa(0.5, 1), problem, UniformSubset(4, 1), 6, [5.0])
    with pytest.raises(
        NotAffineError,
        match=r"affine.*a minimum of a value that "
        r"depends.*engines\.paths",
    ):
        exact(setting)
    line = runs.Line([Fraction(1)] * 4, [Fraction(c) for c in range(4)], Fraction(0))
    by_hand = runs.mifa(Fraction(1, 2), 1)
    expected = runs.squared_distances(by_hand, line, runs.one_of(4), 6, Fraction(5))
    found = paths(setting).squared_distance
    np.testing.assert_allclose(found, [float(value) for value in expected], rtol=1e-13)
    assert [round(float(value), 1) for value in expected[4:]] == [11.4, 9.8, 8.1]


@pytest.mark.parametrize("seed", a_tenth(range(15)))
def test_mifa_that_waits_is_refused_whatever_its_clients(seed: int) -> None:
    """Fails if any of N = 4 to 50 clients, sets and steps gives a number."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 51))
    problem = QuadraticProblem([[1.0]], rng.standard_normal((n, 1)), sigma=float(seed % 2))
    size = int(rng.integers(1, n + 1))
    participation = Bernoulli([0.4] * n) if n < 12 and seed % 3 else UniformSubset(n, size)
    algorithm = Mifa(float(rng.uniform(0.05, 0.9)), int(rng.integers(1, 4)))
    with pytest.raises(NotAffineError, match="a minimum of a value that depends on the model"):
        exact(Setting(algorithm, problem, participation, 6, [5.0]))


ALONE = {
    "Bernoulli": (Bernoulli([0.4]), runs.bernoulli([Fraction(2, 5)])),
    "on and off": (MarkovOnOff([0.4], 0.5), runs.on_and_off([Fraction(2, 5)], [Fraction(1, 2)])),
    "cycle": (Cyclic([3], [1]), runs.cycle([3], [1])),
}


@pytest.mark.parametrize("who", ALONE)
@pytest.mark.parametrize("name", ["FedAR, weights and a cut-off", "MIFA that waits"])
@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_one_client_that_comes_and_goes(name: str, who: str, sigma: float) -> None:
    """Fails if a single client's table, or whether it has appeared, is taken for a constant."""
    algorithm, by_hand = ALGORITHMS[name]
    participation, law = ALONE[who]
    problem = QuadraticProblem([[1.0]], [[0.5]], sigma=sigma)
    setting = Setting(algorithm, problem, participation, 7, [2.0])
    with pytest.raises(NotAffineError):
        exact(setting)
    line = runs.Line([Fraction(1)], [Fraction(1, 2)], runs.decimal(sigma))
    expected = runs.squared_distances(by_hand, line, law, 7, Fraction(2))
    found = paths(setting).squared_distance
    np.testing.assert_allclose(found, [float(value) for value in expected], rtol=1e-12)


def test_mifa_in_a_cycle_has_a_bound_that_is_of_use() -> None:
    """50 rounds, one bound: below 1e-6 of the value, above the error against fractions.

    Fails if rounding is bounded by a product of norms of single rounds.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]], sigma=0.5)
    found = paths(Setting(Mifa(0.1, 2), problem, Cyclic([2, 3], [0, 1]), 50, [3.0]))
    line = runs.Line([Fraction(1)] * 2, [Fraction(0), Fraction(1)], Fraction(1, 2))
    law = runs.cycle([2, 3], [0, 1])
    truth = runs.squared_distances(runs.mifa(TENTH, 2), line, law, 50, Fraction(3))
    assert found.rounding_error is not None
    bounds = found.rounding_error.squared_distance
    for value, expected, bound in zip(found.squared_distance, truth, bounds, strict=True):
        assert abs(Fraction(float(value)) - expected) <= Fraction(float(bound))
        assert bound <= 1e-6 * value


def jumping(rounds):
    """A cut-off that lets old updates in from round 5 on."""
    return np.where(np.asarray(rounds) <= 4, 0.0, 5.0)


def fedar_with_a_jumping_cutoff(rounds: int) -> list[float]:
    """Plain floats: two clients by turns, with optima 0 and 1."""
    x, table, ages, found = 3.0, [0.0, 0.0], [None, None], [6.25]
    for t in range(1, rounds + 1):
        here = 0 if (t - 1) % 2 == 0 else 1
        ages = [None if age is None else age + 1 for age in ages]
        table[here], ages[here] = x - here, 0
        limit = 0 if t <= 4 else 5
        counted = [i for i in (0, 1) if ages[i] is not None and ages[i] <= limit]
        x -= 0.3 * sum(min(1 + 0.05 * ages[i], 2.0) * table[i] for i in counted) / len(counted)
        found.append((x - 0.5) ** 2)
    return found


def test_a_map_is_not_used_again_when_the_cutoff_has_changed() -> None:
    """FedAR's cut-off jumps after round 4: 0.02824 after round 7, where 0.01218 was said once.

    Fails if a round's map is kept by participants and ages without the count of rounds.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]])
    setting = Setting(FedAR(0.3, 1, cutoff=jumping), problem, Cyclic([2, 2], [0, 1]), 7, [3.0])
    expected = fedar_with_a_jumping_cutoff(7)
    assert round(expected[-1], 5) == 0.02824
    np.testing.assert_allclose(paths(setting).squared_distance, expected, rtol=1e-12)
    computed = truth(setting, (), Sampling(replicas=400, seed=3))
    assert computed.grade is Grade.FLOAT64
    np.testing.assert_allclose(computed.trajectory.squared_distance, expected, rtol=1e-12)


@dataclass(frozen=True)
class Quartering:
    """A gradient step that is a quarter as long after round 5."""

    branches = EVERY_ROUND_CLIENTS

    def init(self, x0, n_clients):
        return {"x": x0, "rounds": 0 * x0[:, :1]}

    def round(self, state, clients, who, branch):
        rounds = state["rounds"] + 1
        step = 0.4 - 0.3 * (rounds > 5)
        weights = who / clients.n_clients
        moved = clients.summed_local_sgd(state["x"], who, weights, steps=1, lr=1.0)
        return {"x": state["x"] + step * moved, "rounds": rounds}


def test_a_users_own_count_of_rounds_is_a_count() -> None:
    """Everybody there, 8 rounds, optimum 0: factors 0.6, five times, and then 0.9.

    Fails if an entry is a count by name, or a map is kept without it.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    setting = Setting(Quartering(), problem, UniformSubset(2, 2), 8, [1.0])
    factors = [0.6] * 5 + [0.9] * 3
    expected = np.cumprod([1.0, *factors]) ** 2
    np.testing.assert_allclose(paths(setting).squared_distance, expected, rtol=1e-12)
    with pytest.raises(NotAffineError, match="a comparison of a value that depends on the model"):
        exact(setting)
    computed = truth(setting, (), Sampling(replicas=400, seed=3))
    np.testing.assert_allclose(computed.trajectory.squared_distance, expected, rtol=1e-12)


@dataclass(frozen=True)
class Renewed:
    """A schedule that makes an algorithm afresh in every round, and keeps none."""

    def at(self, round_index):
        return FedAvg(0.5 / round_index, 1)


def test_maps_of_a_schedule_are_its_rounds_own() -> None:
    """x_t = x_{t-1} (1 - 1 / (2 t)), 40 rounds.

    Fails if a map is found by the id of an algorithm that is gone, and that another has now.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    found = paths(Setting(Renewed(), problem, UniformSubset(2, 2), 40, [1.0]))
    expected = np.cumprod([1.0, *(1 - 0.5 / t for t in range(1, 41))]) ** 2
    np.testing.assert_allclose(found.squared_distance, expected, rtol=1e-12)


@pytest.mark.parametrize("sigma", [0.0, 0.5])
@pytest.mark.parametrize(
    "algorithm",
    [
        FedAvg(1e3, 40),
        FedAU(1e3, 40, cutoff=3),
        FedAR(1e3, 40),
        Mifa(1e3, 40),
        F3ast([0.5, 0.5], 1, 1e3, 40),
        Scaffold(1e3, 40),
    ],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_a_run_that_overflows_says_when(algorithm, sigma: float) -> None:
    """A round multiplies distances by 999^40 = 1e120: squares of 1e480 after the second.

    With 120 steps the first round overflows. Fails if infinities or nans in a map are refused as
    not affine, or drawn paths go on with nans.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]], sigma=sigma)
    for steps, first in ((40, 2), (120, 1)):
        bigger = replace(algorithm, local_steps=steps)
        setting = Setting(bigger, problem, UniformSubset(2, 2), 5, [3.0])
        found = [
            paths(setting),
            paths(setting, draws=4),
            truth(setting, (), Sampling(replicas=400, seed=3)).trajectory,
        ]
        if isinstance(algorithm, FedAvg | Scaffold):
            found.append(exact(setting))
        sampled = monte_carlo(setting, replicas=4, seed=0).diverged_at
        # With noise the spread of a sample of squares overflows a round before they do.
        assert sampled == first or (sigma and sampled == 1)
        for run in found:
            assert run.diverged_at == first
            assert np.isinf(run.squared_distance[first:]).all()
            assert np.isfinite(run.squared_distance[:first]).all()


def test_histories_are_merged_where_they_have_the_same_future() -> None:
    """FedAvg counts nothing: two states of a chain are two histories, of 2^12 paths."""
    problem = QuadraticProblem([[1.0]], [[0.5]], sigma=0.5)
    setting = Setting(FedAvg(0.1, 1), problem, MarkovOnOff([0.4], 0.5), 12, [2.0])
    rounds = AffineRounds(setting, problem, Ways.of(setting.participation))
    for histories, _ in follow(rounds, ("x",)):
        assert len(histories.weights) == 2
        assert histories.weights.sum() == pytest.approx(1, rel=1e-14)
        np.testing.assert_allclose(histories.weights, [0.6, 0.4], rtol=1e-14)


def test_transitions_are_the_chains() -> None:
    ways = Ways.of(MarkovOnOff([0.25], 0.2))
    stays, comes = 0.4, 0.2
    rows, states, steps = ways.onward(np.array([0, 1]))
    found = {
        (int(row), int(state)): float(step)
        for row, state, step in zip(rows, states, steps, strict=True)
    }
    expected = {(0, 0): 1 - comes, (0, 1): comes, (1, 0): 1 - stays, (1, 1): stays}
    assert found == pytest.approx(expected, rel=1e-14)


def test_independent_rounds_draw_every_set() -> None:
    participation = Bernoulli([0.3, 1.0])
    ways = Ways.of(participation)
    rows, masks, chance = ways.who(ways.first)
    assert set(rows.tolist()) == {0}
    assert chance.sum() == pytest.approx(1, rel=1e-14)
    np.testing.assert_allclose(chance @ masks, [0.3, 1.0], rtol=1e-14)
