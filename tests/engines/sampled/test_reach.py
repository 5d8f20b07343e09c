"""No run leaves its reach, and some runs get as far."""

from __future__ import annotations

import math
from itertools import islice, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from fltheory.algorithms import (
    AveragedIterate,
    F3ast,
    FedAR,
    FedAU,
    FedAvg,
    Harmonic,
    Mifa,
    Projected,
    Safari,
    Scaffold,
    Scheduled,
    WarmStarted,
    WeightedFedAvg,
)
from fltheory.algorithms.wrapped import ServerMomentum
from fltheory.engines import Setting, monte_carlo, paths
from fltheory.engines.clients.analytic_clients import (
    GaussianNoise,
    QuadraticClients,
    Silence,
    SteppedClients,
)
from fltheory.engines.observables import ParticipantGradientSum
from fltheory.engines.sampled.ceilings import ranges
from fltheory.engines.sampled.reach import reach
from fltheory.engines.simulation import simulate
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.problems import Ball, LogCoshProblem, QuadraticProblem, nonconvex

WIDE = QuadraticProblem(
    [np.diag([1.0, 0.3]), np.diag([0.4, 0.9]), np.eye(2)], [[2.0, 0.0], [-1.0, 1.0], [0.0, -3.0]]
)
BOWL = LogCoshProblem([[0.5], [-0.5]], curvature=1.0, width=2.0, x_star=[0.0])
RARE = Bernoulli([0.3, 0.05, 0.02])


def distances(setting: Setting, clients, replicas: int = 400) -> np.ndarray:
    """Distances of runs from x*, (rounds + 1, replicas)."""
    rngs = (np.random.default_rng(seed) for seed in (1, 2))
    states = simulate(
        setting.algorithm,
        clients,
        setting.participation,
        np.tile(setting.x0, (replicas, 1)),
        participation_rng=next(rngs),
        branch_rng=next(rngs),
    )
    runs = islice(states, setting.rounds + 1)
    star = setting.problem.x_star
    return np.array([np.linalg.norm(state["x"] - star, axis=1) for state, _ in runs])


MOVERS = {
    "FedAU": FedAU(0.3, 2),
    "FedAU, large steps": FedAU(1.2, 3, server_lr=1.5, cutoff=4),
    "weights": WeightedFedAvg((1.5, 1.0, 0.7), 0.9, 2),
    "FedAvg": FedAvg(1.9, 1, server_lr=1.4),
    "F3AST": F3ast([1 / 3] * 3, 2, 0.2, 2, smoothing=0.3),
    "FedAR": FedAR(0.2, 2),
    "MIFA": Mifa(0.3, 2),
    "SAFARI": Safari(0.5, 0.4, 1.5, 3),
    "SCAFFOLD": Scaffold(0.3, 2),
    "SCAFFOLD I": Scaffold(0.3, 2, option=1),
    "scheduled": Scheduled(FedAU(0.3, 2), Harmonic(3.0, offset=2.0)),
    "averaged": AveragedIterate(FedAvg(1.2, 2)),
    "projected": Projected(FedAU(1.5, 3), Ball([1.0, 0.0], 4.0)),
}


@pytest.mark.parametrize("name", MOVERS)
def test_no_exact_run_leaves_its_reach(name: str) -> None:
    setting = Setting(MOVERS[name], WIDE, RARE, 25, [3.0, -2.0])
    found = reach(setting)
    assert np.isfinite(found.distance).all()
    assert not found.spread.any()
    runs = distances(setting, QuadraticClients(WIDE, Silence()))
    assert (runs <= found.distance[:, None]).all()


@pytest.mark.parametrize("problem", [BOWL, nonconvex(2, 1, L=1.0, sigma_G=0.5)])
@pytest.mark.parametrize(
    "algorithm",
    [FedAU(0.6, 3), Mifa(0.3, 2), Safari(0.5, 0.4, 1.5, 3), WarmStarted(Scaffold(0.3, 3))],
)
def test_no_exact_run_on_other_losses_leaves_its_reach(problem, algorithm) -> None:
    setting = Setting(algorithm, problem, Bernoulli([0.3, 0.1]), 25, [2.0])
    runs = distances(setting, SteppedClients(problem, Silence()))
    assert (runs <= reach(setting).distance[:, None]).all()


@pytest.mark.parametrize(
    "algorithm", [FedAU(0.6, 3), FedAR(0.3, 2), Safari(0.5, 0.4, 0.5, 3), Scaffold(0.3, 3)]
)
def test_noise_leaves_its_reach_as_rarely_as_stated(algorithm) -> None:
    """With s at which a run leaves with a chance of 1e-12: false alarm below 2e-8 in all."""
    problem = nonconvex(2, 2, L=1.0, sigma_G=0.5, sigma=1.0, server_sigma=0.7)
    setting = Setting(algorithm, problem, Bernoulli([0.9, 0.4]), 12, [2.0, 0.0])
    found = reach(setting)
    assert (found.spread[1:] > 0).all()
    runs = distances(setting, SteppedClients(problem, GaussianNoise(np.random.default_rng(3))))
    reserve = np.sqrt(2 * np.log(1e12)) * found.spread
    assert (runs <= (found.distance + found.noise + reserve)[:, None]).all()


@pytest.mark.parametrize("algorithm", [FedAU(0.4, 2), FedAR(0.3, 2), F3ast([0.5, 0.5], 1, 0.3, 2)])
def test_no_path_has_a_larger_second_moment(algorithm) -> None:
    """Of all paths of four rounds: the largest, and so the mean of any participation."""
    problem = QuadraticProblem(np.diag([1.0, 0.4]), [[1.0, 0.0], [-1.0, 2.0]], sigma=2.0)
    for p in ([0.5, 0.5], [0.99, 0.99], [0.01, 0.99], [0.01, 0.01]):
        setting = Setting(algorithm, problem, Bernoulli(p), 4, [1.0, -1.0])
        limits = ranges(setting, (), left_open=1e-7, given_path=True)
        truth = paths(setting)
        for name, limit in limits.items():
            assert (truth[name] <= limit.ceiling).all()


def test_who_is_there_at_each_round_decides_how_far_it_gets() -> None:
    """One client, 3 x 0.9 of the way to its optimum: x - x* is multiplied by -1.7 in a round."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    run = Setting(FedAvg(0.9, 1, server_lr=3.0), problem, Bernoulli([0.5]), 10, [2.0])
    np.testing.assert_allclose(reach(run).distance, 2 * 1.7 ** np.arange(11), rtol=1e-8)


def test_the_farthest_optimum_is_reached() -> None:
    """Two clients at -1 and 3, x* = 1: whoever starts at x* gets to within any distance of 2."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [3.0]])
    run = Setting(WeightedFedAvg((1.0, 1.0), 0.5, 1), problem, Bernoulli([0.5, 0.5]), 60, [1.0])
    far = reach(run).distance
    np.testing.assert_allclose(far[[0, 60]], [0.0, 2.0], rtol=1e-8)


def test_a_stale_update_is_taken_again_and_again() -> None:
    """MIFA, lr 1: x = 1, 0, -1, ..., 2 - r while the one client is away after the first round."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    run = Setting(Mifa(1.0, 1, start="zero"), problem, Bernoulli([0.1]), 8, [1.0])
    runs = distances(run, QuadraticClients(problem, Silence()))
    assert runs[8].max() >= 5
    assert (runs <= reach(run).distance[:, None]).all()


def test_a_remembered_gradient_pushes_beyond_the_start() -> None:
    """SCAFFOLD, lr 1, factor 2, clients 1, 2, 2 of equal losses: x = 1, -1, 0, -2 by hand."""
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    run = Setting(Scaffold(1.0, 1, server_lr=2.0), problem, UniformSubset(2, 1), 3, [1.0])
    runs = distances(run, QuadraticClients(problem, Silence()))
    assert runs[3].max() >= 2
    assert (runs <= reach(run).distance[:, None]).all()


def test_noise_alone_has_the_variance_of_its_steps() -> None:
    """One client at its optimum, L lr = 1: x is the step's noise, of 3/sqrt(4) a coordinate."""
    problem = QuadraticProblem(np.eye(4), np.zeros((1, 4)), sigma=3.0)
    run = Setting(FedAvg(1.0, 1), problem, Bernoulli([1.0]), 1, np.zeros(4))
    found = reach(run)
    assert found.spread[1] == pytest.approx(3.0 / 2, rel=1e-8)
    assert found.noise[1] == pytest.approx(3.0, rel=1e-8)
    limits = ranges(run, (), left_open=1e-7, given_path=True)
    assert limits["squared_distance"].ceiling[1] == pytest.approx(9.0, rel=1e-7)


def test_gradient_sums_stay_below_their_ceiling() -> None:
    """One of 400 runs and 12 rounds is above with a chance of 4,800 x 1e-12: false alarm 5e-9."""
    problem = nonconvex(3, 2, L=1.0, sigma_G=0.5, sigma=1.0)
    item = ParticipantGradientSum(4, 0.4)
    setting = Setting(FedAvg(0.4, 4), problem, UniformSubset(3, 2), 12, [3.0, 0.0])
    limits = ranges(setting, (item,), left_open=1e-10, given_path=False)
    run = monte_carlo(setting, replicas=400, seed=1, observe=(item,))
    limit = limits[item.name]
    assert (run[item.name] <= limit.ceiling).all()
    clients = SteppedClients(problem, GaussianNoise(np.random.default_rng(5)))
    for radius, angle in product((0.0, 1.0, 3.0), (0.0, 1.0, 2.0)):
        x = problem.x_star + radius * np.array([np.cos(angle), np.sin(angle)])
        drawn = item.sample(problem, clients, np.tile(x, (100, 1)), np.ones((100, 3), dtype=bool))
        shape = item.envelope(problem)
        top = shape.slope * radius + shape.level + shape.noise
        assert (np.sqrt(drawn) <= top + np.sqrt(2 * np.log(1e12)) * shape.spread).all()


def test_far_away_gradient_sums_are_as_large_as_their_envelope_says() -> None:
    """Ripples do not count there: a r (1 + (1 - lr a) + (1 - lr a)^2) at a distance of r."""
    problem = nonconvex(3, 2, L=1.0, sigma_G=0.5)
    item, radius = ParticipantGradientSum(3, 0.4), 1e5
    x = problem.x_star + np.array([[radius, 0.0]])
    clients = SteppedClients(problem, Silence())
    (square,) = item.sample(problem, clients, x, np.ones((1, 3), dtype=bool))
    shape = item.envelope(problem)
    assert 0.999 < np.sqrt(square) / (shape.slope * radius + shape.level) <= 1


@pytest.mark.parametrize("exceeded", [0.05, 1e-3])
def test_what_a_ceiling_cuts_off_is_not_more_than_is_added(exceeded: float) -> None:
    """One step of lr 1 from the optimum is its noise, V = sigma^2 z^2: by quadrature."""
    problem = QuadraticProblem([[1.0]], [[0.0]], sigma=2.0)
    run = Setting(FedAvg(1.0, 1), problem, Bernoulli([1.0]), 1, [0.0])
    limit = ranges(run, (), left_open=100 * exceeded, given_path=False)["squared_distance"]
    top = float(limit.ceiling[1])
    assert 2 * norm.sf(np.sqrt(top) / 2) <= exceeded
    cut, _ = quad(lambda z: 2 * (4 * z * z - top) * norm.pdf(z), np.sqrt(top) / 2, 40)
    assert 0 < cut <= limit.beyond[1]


@pytest.mark.parametrize(
    ("algorithm", "problem"),
    [
        (ServerMomentum(FedAvg(0.1, 1), 0.5), WIDE),
        (Scheduled(FedAR(0.1, 1), Harmonic(1.0, offset=1.0)), WIDE),
    ],
)
def test_of_others_nothing_is_known(algorithm, problem) -> None:
    setting = Setting(algorithm, problem, RARE, 3, [3.0, 4.0])
    found = reach(setting)
    start = np.linalg.norm(setting.x0 - problem.x_star)
    assert found.distance[0] == pytest.approx(start, rel=1e-8)
    assert np.isinf(found.distance[1:]).all()
    assert np.isinf(
        ranges(setting, (), left_open=10.0, given_path=False)["excess_loss"].ceiling[1:]
    ).all()


def test_a_ball_reaches_its_radius_beyond_its_centres_distance() -> None:
    """x* = 2, a ball of 4 around 1 and the start 3 away: 3, and then 4 + 1."""
    problem = QuadraticProblem([[1.0]], [[1.0], [3.0]])
    projected = Projected(FedAU(0.5, 1), Ball([1.0], 4.0))
    found = reach(Setting(projected, problem, UniformSubset(2, 1), 2, [5.0]))
    assert found.distance.tolist() == pytest.approx([3.0, 5.0, 5.0], rel=1e-8)
    assert found.noise.tolist() == [0.0] * 3


def test_nothing_is_known_without_a_split_of_gradients() -> None:
    class Plain:
        x_star, n_clients, dim = np.zeros(1), 2, 1

    setting: Any = SimpleNamespace(
        algorithm=FedAU(0.5, 1), problem=Plain(), rounds=2, x0=np.array([3.0])
    )
    found = reach.__wrapped__(setting)
    assert found.distance.tolist() == pytest.approx([3.0, math.inf, math.inf])
