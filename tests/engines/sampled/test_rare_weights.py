"""What runs with large weights add, against every path of participants, each run by itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from fltheory.algorithms import AveragedIterate, FedAU, FedAvg, Harmonic, Scheduled
from fltheory.engines import Setting
from fltheory.engines.sampled.ceilings import ranges
from fltheory.engines.sampled.rare_weights import rare_weights
from fltheory.engines.sampled.reach import reach
from fltheory.participation import Bernoulli, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem

PAIR = QuadraticProblem([[[1.0]], [[0.5]]], [[-1.0], [1.0]])
WIDE = QuadraticProblem(
    [np.diag([1.0, 0.3]), np.diag([0.4, 0.9])], [[2.0, 0.0], [-1.0, 1.0]], target_weights=[0.3, 0.7]
)
COIN, RARE = Bernoulli([0.5, 0.7]), Bernoulli([0.95, 0.1])
CHAIN = MarkovOnOff([0.3, 0.6], [0.5, -0.2])
LATER = MarkovOnOff([0.3, 0.6], [0.5, -0.2], start=[1, 0])
SETTINGS = {
    "coins": Setting(FedAU(1.5, 1), PAIR, COIN, 5, [5.0]),
    "a rare client": Setting(FedAU(1.3, 2), PAIR, RARE, 5, [0.2]),
    "cut off": Setting(FedAU(1.6, 2, cutoff=3), PAIR, RARE, 5, [5.0]),
    "a server's factor": Setting(FedAU(0.9, 1, server_lr=1.8), PAIR, COIN, 5, [1.0]),
    "chains": Setting(FedAU(1.5, 2), PAIR, CHAIN, 5, [3.0]),
    "chains with a start": Setting(FedAU(1.5, 2), PAIR, LATER, 5, [3.0]),
    "long steps": Setting(FedAU(2.1, 2, server_lr=1.5), PAIR, CHAIN, 5, [0.1]),
    "two numbers": Setting(FedAU(1.4, 3), WIDE, RARE, 5, [3.0, -2.0]),
}


def chance_of(who: Bernoulli | MarkovOnOff, path: np.ndarray) -> float:
    """The probability of a path (rounds, N), from what the two processes are defined by."""
    p = who.availability
    nu = getattr(who, "correlation", np.zeros_like(p))
    start = getattr(who, "start", None)
    first = p if start is None else start
    chance = np.where(path[0], first, 1 - first).prod()
    for before, now in pairwise(path):
        comes = (1 - nu) * p + nu * before
        chance *= np.where(now, comes, 1 - comes).prod()
    return float(chance)


@cache
def every_run(name: str) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Return every path's probability, way from x*, and the weights of its rounds.

    FedAU by its paper: omega is the mean length of the intervals that have ended.
    """
    setting, found = SETTINGS[name], []
    problem, algorithm, n = setting.problem, setting.algorithm, setting.problem.n_clients
    hessians, optima = problem.hessians, problem.optima
    for bits in product((False, True), repeat=n * setting.rounds):
        path = np.array(bits).reshape(setting.rounds, n)
        x, ended, lasted = setting.x0.copy(), [[] for _ in range(n)], [0] * n
        far, weights = [x - problem.x_star], []
        for present in path:
            omega = [np.mean(lengths) if lengths else 1.0 for lengths in ended]
            weights.append(algorithm.server_lr * np.array(omega) / n * present)
            moved = np.zeros_like(x)
            for i in np.flatnonzero(present):
                y = x.copy()
                for _ in range(algorithm.local_steps):
                    y = y - algorithm.client_lr * hessians[i] @ (y - optima[i])
                moved += weights[-1][i] * (y - x)
            x = x + moved
            far.append(x - problem.x_star)
            for i in range(n):
                lasted[i] += 1
                if present[i] or lasted[i] == algorithm.cutoff:
                    ended[i].append(lasted[i])
                    lasted[i] = 0
        found.append((chance_of(setting.participation, path), np.array(far), np.array(weights)))
    return found


def most_moderate(setting: Setting, lr: float) -> np.ndarray:
    """2 beta_i / lambda_i, lambda_i being the largest of 1 - (1 - lr a)^K over curvatures a."""
    curvatures = np.linalg.eigvalsh(setting.problem.hessians)
    moves = (1 - (1 - lr * curvatures) ** setting.algorithm.local_steps).max(axis=1)
    usual = np.maximum(moves, 0) / np.maximum(
        setting.participation.availability, 1 / setting.rounds
    )
    return np.where(moves > 0, 2 * usual / usual.sum() / np.abs(moves), np.inf)


@pytest.mark.parametrize("name", SETTINGS)
def test_rare_runs_add_no_more_and_typical_ones_get_no_further(name: str) -> None:
    setting = SETTINGS[name]
    found, lr = rare_weights(setting), setting.algorithm.client_lr
    assert found is not None
    moderate = most_moderate(setting, lr)
    slopes = [(1.0, 0.0), (0.7, 2.0)]
    added = np.zeros((len(slopes), setting.rounds + 1))
    furthest, chances = np.zeros(setting.rounds + 1), 0.0
    for chance, far, weights in every_run(name):
        large = np.append(False, np.maximum.accumulate((weights > moderate).any(axis=1)))
        distance = np.linalg.norm(far, axis=1)
        furthest = np.maximum(furthest, np.where(large | (chance == 0), 0.0, distance))
        for row, (slope, level) in enumerate(slopes):
            added[row] += chance * (slope * distance + level) ** 2 * large
        chances += chance
    assert chances == pytest.approx(1)
    assert (furthest <= found.typical.distance).all()
    assert (added[:, -1] > 0).all()
    for row, (slope, level) in enumerate(slopes):
        bound = found.added(slope, level)
        assert (added[row] <= bound).all()
        assert np.isfinite(bound).all()
    # The expectation over all runs of what bounds a run is no more than its supremum.
    top = reach(setting).distance[-1]
    assert found.added(1.0, 0.0)[-1] < 0.5 * top**2


def test_the_chance_of_a_large_weight_is_what_counts() -> None:
    """No way to go and no pushes: what is left of ``(level G)^2`` is the growth of rare runs.

    Shares are 1/3 and 2/3, so that client 2's w = omega/2 is large beyond 4/3. It is in round 4
    alone: where the client was there in round 3, and not before, omega is 3.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    found = rare_weights(Setting(FedAU(1.0, 1), problem, Bernoulli([1.0, 0.5]), 4, [0.0]))
    assert found is not None
    growth = 1 + 3 / 2 - 4 / 3
    expected = [0, 0, 0, 0, growth**2 / 16]
    assert found.added(0.0, 1.0).tolist() == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert found.added(0.0, 2.0)[-1] == pytest.approx(4 * expected[-1], rel=1e-6)


@pytest.mark.parametrize("sigma", [0.0, 2.0])
@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_added_is_the_bound_of_each_path_and_its_chance(name: str, sigma: float) -> None:
    """``(slope (||x_0 - x*|| + sum w (push + 2 noise)) + level)^2 prod f^2``, summed over paths."""
    setting = SETTINGS[name]
    problem, lr, steps = (
        setting.problem, setting.algorithm.client_lr, setting.algorithm.local_steps,
    )  # fmt: skip
    found = rare_weights(replace(setting, problem=replace(problem, sigma=sigma)))
    assert found is not None
    kept = np.array(
        [np.linalg.matrix_power(np.eye(len(a)) - lr * a, steps) for a in problem.hessians]
    )
    pulls = np.eye(problem.dim) - kept
    least, largest = (ends(np.linalg.eigvalsh(pulls), 1) for ends in (np.min, np.max))
    away = problem.optima - problem.x_star
    push = np.linalg.norm(np.einsum("iab,ib->ia", pulls, away), axis=1)
    left = np.abs(1 - lr * np.linalg.eigvalsh(problem.hessians)).max()
    noise = sigma * lr * sum(left**k for k in range(steps))
    limit = most_moderate(setting, lr)
    expected = np.zeros(setting.rounds + 1)
    for chance, far, weights in every_run(name):
        over = np.where(weights > limit, largest * (weights - limit), 0.0)
        growth = (1 + weights * np.maximum(-least, 0.0) + over).prod(axis=1).cumprod()
        moved = (weights * (push + 2 * noise)).sum(axis=1).cumsum()
        distance = np.linalg.norm(far[0]) + moved
        rare = np.maximum.accumulate((weights > limit).any(axis=1))
        expected[1:] += chance * rare * (growth * (0.7 * distance + 2.0)) ** 2
    assert found.added(0.7, 2.0) == pytest.approx(expected, rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_beyond_a_ceiling_is_not_more_than_is_added(name: str) -> None:
    """With the ceiling that a check takes, whichever runs it leaves out."""
    setting = SETTINGS[name]
    limits = ranges(setting, (), left_open=0.02, given_path=False)["squared_distance"]
    cut = np.zeros(setting.rounds + 1)
    for chance, far, _ in every_run(name):
        cut += chance * np.maximum((far**2).sum(axis=1) - limits.ceiling, 0.0)
    assert (cut <= limits.beyond).all()


def test_step_sizes_that_change_and_averages() -> None:
    plain = Setting(FedAU(0.9, 1), PAIR, COIN, 8, [5.0])
    falling = Setting(Scheduled(FedAU(7.0, 1), Harmonic(0.9)), PAIR, COIN, 8, [5.0])
    averaged = Setting(AveragedIterate(FedAU(0.9, 1)), PAIR, COIN, 8, [5.0])
    rare = [rare_weights(setting) for setting in (plain, falling, averaged)]
    assert all(found is not None for found in rare)
    every, fewer, same = (found.added(1.0, 0.0)[-1] for found in rare if found is not None)
    assert 0 < fewer < every == same


class Heavier(FedAU):
    """Weighs ten times as much, and does not say so."""

    def round(self, state, clients, who, branch):
        heavy = {**state, "omega": 10 * state["omega"]}
        return {**super().round(heavy, clients, who, branch), **self.counted(state, who)}


class Stale(FedAU):
    """Says that its updates may be old ones."""

    def update_bounds(self, n_clients, round_index):
        found = super().update_bounds(n_clients, round_index)
        return {name: replace(bounds, stale=True) for name, bounds in found.items()}


class TwoWays(FedAU):
    """Says what bounds a server round, too."""

    def update_bounds(self, n_clients, round_index):
        (bounds,) = super().update_bounds(n_clients, round_index).values()
        return {"clients": bounds, "server": bounds}


@pytest.mark.parametrize(
    "setting",
    [
        Setting(Stale(0.9, 1), PAIR, COIN, 8, [5.0]),
        Setting(TwoWays(0.9, 1), PAIR, COIN, 8, [5.0]),
        Setting(Heavier(0.1, 1), PAIR, COIN, 8, [5.0]),
        Setting(FedAvg(0.9, 1), PAIR, COIN, 8, [5.0]),
        Setting(FedAU(0.9, 1), PAIR, UniformSubset(2, 1), 8, [5.0]),
        Setting(FedAU(0.9, 1), PAIR, COIN, 5000, [5.0]),
    ],
)
def test_where_nothing_is_known_nothing_is_said(setting: Setting) -> None:
    assert rare_weights(setting) is None
