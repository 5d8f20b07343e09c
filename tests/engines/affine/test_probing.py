"""Reading affine maps off functions: enumeration against swaps, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import FedAvg, Safari, WeightedFedAvg
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines import Setting, exact, stationary
from fltheory.engines.affine import probing
from fltheory.engines.affine.probe import DependentRoundsError
from fltheory.engines.affine.probing import random_affine_map
from fltheory.engines.affine.random_affine_map import RandomAffineMap
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.analytic_clients import QuadraticClients
from fltheory.engines.observables import ParticipantGradientSum
from fltheory.participation import MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem


class Coins:
    """Each client takes part when its own fair coin says so: 2^N sets of varying size."""

    fixed_size = None
    independent = True

    def __init__(self, n_clients: int) -> None:
        self.n_clients = n_clients
        self.n_outcomes = 2**n_clients
        self.marginals = np.full(n_clients, 0.5)
        self.pair_inclusions = np.full((n_clients, n_clients), 0.25) + 0.25 * np.eye(n_clients)

    def outcomes(self) -> Iterator[tuple[float, np.ndarray]]:
        for mask in product([False, True], repeat=self.n_clients):
            yield 0.5**self.n_clients, np.array(mask)

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[np.ndarray]:
        while True:
            yield rng.random((replicas, self.n_clients)) < 0.5


def law_of(
    algorithm: FedAvg, problem: QuadraticProblem, participation: UniformSubset
) -> RandomAffineMap:
    def run(x: np.ndarray, clients: QuadraticClients, who: np.ndarray) -> np.ndarray:
        return algorithm.round({"x": x}, clients, who, CLIENTS)["x"]

    return random_affine_map(run, problem, participation, problem.x_star, problem.x_star)


def second_moments(law: RandomAffineMap) -> np.ndarray:
    """Return ``E[T (x) T]`` for the stacked T = (A, b), from its factors."""
    maps = np.concatenate([law.slopes, law.offsets[..., None]], axis=2)
    flat = maps.reshape(maps.shape[0], -1)
    return flat.T @ flat


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("excluded", [(), (0, 5)])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_swaps_agree_with_enumeration(
    shared: bool, excluded: tuple[int, ...], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = random_problem(0, 7, 3, shared=shared)
    arguments = (FedAvg(0.3, 3), problem, UniformSubset(7, size, excluded=excluded))
    monkeypatch.setattr(probing, "_ENUMERATION_LIMIT", 10**6)
    enumerated = law_of(*arguments)
    monkeypatch.setattr(probing, "_ENUMERATION_LIMIT", 0)
    monkeypatch.setattr(probing, "law_of_sums", lambda *arguments: None)
    swapped = law_of(*arguments)
    for field in ("mean_slope", "mean_offset", "noise"):
        np.testing.assert_allclose(
            getattr(swapped, field), getattr(enumerated, field), rtol=1e-10, atol=1e-13
        )
    np.testing.assert_allclose(
        second_moments(swapped), second_moments(enumerated), rtol=1e-10, atol=1e-13
    )


@pytest.mark.parametrize("size", [1, 3, 5])
def test_trajectories_by_swaps_agree_with_enumeration(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, participation = random_problem(1, 6, 2), UniformSubset(6, size)
    algorithm, observe = Safari(0.6, 0.3, 0.2, 2), [ParticipantGradientSum(2, 0.3)]
    runs = []
    monkeypatch.setattr(probing, "law_of_sums", lambda *arguments: None)
    for limit in (10**6, 0):
        monkeypatch.setattr(probing, "_ENUMERATION_LIMIT", limit)
        runs.append(
            exact(Setting(algorithm, problem, participation, 30, [2.0, -1.0]), observe=observe)
        )
    for name in ("squared_distance", "squared_gradient", "excess_loss", observe[0].name):
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=1e-10)


def test_law_of_two_scalar_clients() -> None:
    """lr h = 1/2 and 1/4 on client optima -1 and 3: maps of x - x*, each with probability 1/2.

    F' = (2 (x + 1) + (x - 3)) / 2 vanishes at x* = 1/3; x -> x/2 - 1/2 or 3/4 x + 3/4.
    """
    problem = QuadraticProblem([[[2.0]], [[1.0]]], [[-1.0], [3.0]], sigma=2.0)
    law = law_of(FedAvg(0.25, 1), problem, UniformSubset(2, 1))
    offsets = np.array([0.5 / 3 - 0.5 - 1 / 3, 0.75 / 3 + 0.75 - 1 / 3])
    slopes = np.array([0.5, 0.75])
    np.testing.assert_allclose(law.mean_slope, [[slopes.mean()]], rtol=1e-13)
    np.testing.assert_allclose(law.mean_offset, [offsets.mean()], atol=1e-13)
    maps = np.stack([slopes, offsets])
    np.testing.assert_allclose(second_moments(law), maps @ maps.T / 2, rtol=1e-13)
    np.testing.assert_allclose(law.noise, [[(0.25 * 2.0) ** 2]], rtol=1e-13)


def test_sets_of_varying_size_are_enumerated_when_few() -> None:
    """Nobody present: nothing moves. FedAvg on coins, N = 2, against the four sets by hand."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    run = exact(Setting(FedAvg(0.5, 1), problem, Coins(2), 1, [1.0]))
    after = [1.0, 0.0, 1.0, 0.5]
    np.testing.assert_allclose(run.squared_distance[1], np.mean(np.square(after)), rtol=1e-14)


def test_many_sets_of_varying_size_are_refused() -> None:
    problem = QuadraticProblem([[1.0]], np.zeros((13, 1)))
    with pytest.raises(NotAffineError, match=r"got 8192 outcomes of varying size.*monte_carlo"):
        exact(Setting(FedAvg(0.5, 1), problem, Coins(13), 1, [1.0]))


def test_hundreds_of_sets_of_varying_size_are_enumerated() -> None:
    """Eight coins: ``x - 1/2 sum_k q_k b_k (x - c_k)`` with c = 0, slope 1 - sum_k q_k b_k / 2."""
    problem = QuadraticProblem([[1.0]], np.zeros((8, 1)))
    q = tuple(0.05 * k for k in range(1, 9))
    run = exact(Setting(WeightedFedAvg(q, 0.5, 1), problem, Coins(8), 1, [1.0]))
    mean, variance = 1 - sum(q) / 4, sum(w**2 for w in q) / 16
    np.testing.assert_allclose(run.squared_distance[1], mean**2 + variance, rtol=1e-13)


class Alternating(Coins):
    """Memory, and nothing said of its states."""

    independent = False


def test_memory_without_states_is_refused() -> None:
    problem = QuadraticProblem([[1.0]], np.zeros((2, 1)))
    message = r"independent across rounds, or follow a finite chain.*got Alternating.*monte_carlo"
    with pytest.raises(DependentRoundsError, match=message):
        exact(Setting(FedAvg(0.5, 1), problem, Alternating(2), 1, [1.0]))
    with pytest.raises(DependentRoundsError, match=message):
        stationary(Setting(FedAvg(0.5, 1), problem, Alternating(2), 1, problem.x_star))


def test_a_chain_without_memory_is_exact() -> None:
    """Independent coins written as chains, one of clients and one of sets, agree with coins."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    coins = MarkovOnOff([0.5, 0.5], 0.0)
    expected = exact(Setting(FedAvg(0.5, 1), problem, Coins(2), 3, [1.0])).squared_distance
    for participation in (coins, coins.as_chain()):
        run = exact(Setting(FedAvg(0.5, 1), problem, participation, 3, [1.0]))
        np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-13)


class Clipped(FedAvg):
    """Not affine in the model."""

    def round(self, state: dict, clients: object, who: np.ndarray, branch: str) -> dict:
        return {"x": np.clip(super().round(state, clients, who, branch)["x"], -1.0, 1.0)}


def meetings(who: np.ndarray) -> np.ndarray:
    """Count the pairs among the even-numbered participants: not additive over participants."""
    count = who[:, ::2].sum(axis=1, keepdims=True)
    return count * (count - 1) / 2


class MeetingBonus(FedAvg):
    """Affine in the model, but participants who meet do something of their own."""

    def round(self, state: dict, clients: object, who: np.ndarray, branch: str) -> dict:
        return {"x": super().round(state, clients, who, branch)["x"] + meetings(who)}


class MeetingNoise(FedAvg):
    """Affine, but the noise is louder when participants meet."""

    def round(self, state: dict, clients: object, who: np.ndarray, branch: str) -> dict:
        noise = clients.server_gradient(state["x"]) - state["x"]
        return {"x": super().round(state, clients, who, branch)["x"] + meetings(who) * noise}


class PairBonus(FedAvg):
    """Affine in the model, with an interaction of the first two clients only."""

    def round(self, state: dict, clients: object, who: np.ndarray, branch: str) -> dict:
        together = (who[:, 0] & who[:, 1])[:, None]
        return {"x": super().round(state, clients, who, branch)["x"] + together}


@pytest.mark.parametrize(
    ("algorithm", "n_clients", "size", "message"),
    [
        (Clipped(0.1, 1), 4, 2, r"round must be affine in its state.*use engines\.monte_carlo"),
        (Clipped(0.1, 1), 12, 6, r"round must be affine in its state.*use engines\.monte_carlo"),
        (
            MeetingBonus(0.1, 1),
            16,
            8,
            r"sum of the participants' contributions.*use engines\.monte_carlo",
        ),
        (
            MeetingNoise(0.1, 1),
            16,
            8,
            r"sum of the participants' contributions.*use engines\.monte_carlo",
        ),
    ],
)
def test_what_is_not_affine_is_refused(
    algorithm: FedAvg, n_clients: int, size: int, message: str
) -> None:
    optima = np.random.default_rng(0).standard_normal((n_clients, 2))
    optima -= optima.mean(axis=0)
    problem = QuadraticProblem(np.eye(2), optima, sigma=0.5, server_sigma=0.5)
    with pytest.raises(NotAffineError, match=message):
        exact(Setting(algorithm, problem, UniformSubset(n_clients, size), 2, [0.5, 0.5]))


def test_an_interaction_of_one_pair_is_refused() -> None:
    """Swaps predict s_0 + s_1 - 1 for s_0 s_1: wrong only where both are absent."""
    problem = QuadraticProblem([[1.0]], np.zeros((16, 1)))
    with pytest.raises(NotAffineError, match="selects some of the participants"):
        exact(Setting(PairBonus(0.1, 1), problem, UniformSubset(16, 8), 2, [0.5]))


def test_interactions_are_fine_where_sets_are_enumerated() -> None:
    """PairBonus with N = 3, m = 2: one of three sets adds 1 to x, from x* = 0 without descent."""
    problem = QuadraticProblem([[1.0]], np.zeros((3, 1)))
    run = exact(Setting(PairBonus(0.1, 1), problem, UniformSubset(3, 2), 1, [0.0]))
    np.testing.assert_allclose(run.squared_distance[1], 1 / 3, rtol=1e-14)
