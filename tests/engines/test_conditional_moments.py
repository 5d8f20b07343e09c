"""Conditional moments against plain recursions over all paths, the exact engine, and sampling."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import islice, pairwise, product

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import (
    CAFed,
    CappedLinear,
    ClusterFedVarp,
    FedAR,
    FedAU,
    FedAvg,
    FedVarp,
    Harmonic,
    Mifa,
    Projected,
    Safari,
    Scaffold,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import CLIENTS, EVERY_ROUND_CLIENTS
from fltheory.engines import NotAffineError, conditional, exact, monte_carlo
from fltheory.engines.noise import Silence
from fltheory.engines.stepped_clients import SteppedClients
from fltheory.participation import (
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Trace,
    UniformSubset,
    WaitingSubset,
)
from fltheory.problems import Ball, QuadraticProblem, nonconvex
from tests.engines.test_weight_error import weights_of_algorithm_2

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")


@pytest.mark.parametrize(
    "algorithm",
    [
        FedAvg(0.2, 3),
        WeightedFedAvg((0.5, 0.75, 1.0), 0.2, 2),
        Scheduled(FedAvg(0.1, 2), Harmonic(0.5, offset=2.0)),
    ],
)
@pytest.mark.parametrize("participation", [Bernoulli([0.3, 0.9, 0.5]), UniformSubset(3, 2)])
def test_all_paths_give_the_exact_engines_moments(algorithm, participation) -> None:
    problem = random_problem(3, 3, 2)
    found = conditional(algorithm, problem, participation, 4, [1.0, -2.0])
    expected = exact(algorithm, problem, participation, 4, [1.0, -2.0])
    for field in FIELDS:
        np.testing.assert_allclose(found[field], expected[field], rtol=1e-11)
        assert not found.standard_error[field].any()


def fedau_by_hand(p, optima, sigma, rounds, cutoff, x0=1.0, lr=0.25, server_lr=1.5):
    """E x_R^2 of FedAU on losses (x - c_n)^2 / 2, one local step, over all paths of presence."""
    total = 0.0
    for path in product(product((0, 1), repeat=len(p)), repeat=rounds):
        chance, mean, variance = 1.0, x0, 0.0
        for t, present in enumerate(path):
            slope, moved, noise = 1.0, mean, 0.0
            for n, here in enumerate(present):
                chance *= p[n] if here else 1 - p[n]
                if not here:
                    continue
                past = tuple(earlier[n] for earlier in path[:t])
                step = server_lr * lr * float(weights_of_algorithm_2(past, cutoff)) / len(p)
                slope -= step
                moved -= step * (mean - optima[n])
                noise += (step * sigma) ** 2
            mean, variance = moved, slope**2 * variance + noise
        total += chance * (mean**2 + variance)
    return total


@pytest.mark.parametrize("cutoff", [1, 2, float("inf")])
def test_fedau_over_all_paths_by_hand(cutoff: float) -> None:
    p, optima, sigma = [0.4, 0.7], [-1.0, 1.0], 0.5
    problem = QuadraticProblem([[1.0]], [[c] for c in optima], sigma=sigma)
    algorithm = FedAU(0.25, 1, cutoff=cutoff, server_lr=1.5)
    found = conditional(algorithm, problem, Bernoulli(p), 4, [1.0])
    expected = [fedau_by_hand(p, optima, sigma, rounds, cutoff) for rounds in range(5)]
    np.testing.assert_allclose(found.squared_distance, expected, rtol=1e-12)


def test_drawn_paths_agree_with_all_and_with_plain_sampling() -> None:
    """Six standard errors at 18 numbers each: false alarm below 1e-7 (normal tails)."""
    problem = QuadraticProblem([[1.0, 0.0], [0.0, 0.5]], [[-1.0, 0.0], [1.0, 2.0]], sigma=1.0)
    setting = (FedAU(0.3, 2, cutoff=3), problem, Bernoulli([0.4, 0.8]), 5, [1.0, 1.0])
    every = conditional(*setting)
    drawn = conditional(*setting, paths=4000, seed=1)
    plain = monte_carlo(*setting, replicas=4000, seed=2)
    for field in FIELDS:
        for sample in (drawn, plain):
            error = np.maximum(sample.standard_error[field], 1e-12)
            assert (abs(sample[field] - every[field]) <= 6 * error).all()
        assert (drawn.standard_error[field][1:] < plain.standard_error[field][1:]).all()


def test_conditioning_saves_variance() -> None:
    """The noise averages out; what is left is who takes part, through the weights too."""
    problem = QuadraticProblem([[1.0]], [[-0.1], [0.1]], sigma=3.0)
    setting = (FedAU(0.3, 2), problem, Bernoulli([0.5, 0.9]), 10, [1.0])
    drawn = conditional(*setting, paths=1000, seed=1)
    plain = monte_carlo(*setting, replicas=1000, seed=1)
    saved = plain.standard_error.squared_distance[-1] / drawn.standard_error.squared_distance[-1]
    assert saved**2 > 3


def test_the_same_seed_gives_the_same_paths() -> None:
    setting = (FedAU(0.3, 2), random_problem(2, 2, 1), Bernoulli([0.5, 0.9]), 6, [1.0])
    first, again, other = (conditional(*setting, paths=50, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.squared_distance, again.squared_distance)
    assert (first.squared_distance[1:] != other.squared_distance[1:]).all()
    assert first.replicas == 50


def test_paths_without_states_can_be_drawn_but_not_enumerated() -> None:
    waiting = WaitingSubset([0.5, 0.5], 1)
    setting = (FedAU(0.3, 2), random_problem(2, 2, 1), waiting, 3, [1.0])
    assert conditional(*setting, paths=10).rounds == 3
    with pytest.raises(ValueError, match="at most 50000 paths to enumerate them"):
        conditional(*setting)


def along_chain(transition, initial, masks, rounds):
    """Every path of states with its probability, and who takes part on it."""
    for path in product(range(len(initial)), repeat=rounds):
        chance = initial[path[0]]
        for before, after in pairwise(path):
            chance *= transition[before][after]
        if chance > 0:
            yield chance, [masks[state] for state in path]


def test_all_paths_of_a_chain_by_hand() -> None:
    """FedAU on (x - c_n)^2/2 without noise, one client a chain: x_R by its own arithmetic."""
    p, nu, optima = 0.4, 0.5, [-1.0, 1.0]
    stays, comes = nu + (1 - nu) * p, (1 - nu) * p
    expected = np.zeros(5)
    expected[0] = 1.0
    for rounds in range(1, 5):
        every = along_chain([[1 - comes, comes], [1 - stays, stays]], [1 - p, p], [0, 1], rounds)
        for chance, first in every:
            x = 1.0
            for t, here in enumerate(first):
                omega = float(weights_of_algorithm_2(tuple(first[:t]), 3))
                x += 0.125 * (here * omega * (optima[0] - x) + optima[1] - x)
            expected[rounds] += chance * x * x
    problem = QuadraticProblem([[1.0]], [[c] for c in optima])
    chains = MarkovOnOff([p, 1.0], [nu, 0.0])
    found = conditional(FedAU(0.25, 1, cutoff=3), problem, chains, 4, [1.0])
    np.testing.assert_allclose(found.squared_distance, expected, rtol=1e-13)


@pytest.mark.parametrize(
    "participation", [MarkovOnOff([0.3, 0.6, 1.0], 0.5), Cyclic([3, 2, 5], [0, 1, 4], active=1)]
)
def test_all_paths_of_states_give_the_exact_engines_moments(participation) -> None:
    problem = random_problem(3, 3, 2)
    setting = (FedAvg(0.2, 3), problem, participation, 5, [1.0, -2.0])
    found, expected = conditional(*setting), exact(*setting)
    for field in FIELDS:
        allowed = found.rounding_error[field] + expected.rounding_error[field]
        assert (abs(found[field] - expected[field]) <= allowed).all()
        assert (found.rounding_error[field] <= 1e-10 * found[field]).all()


def test_cycles_have_one_path_however_long() -> None:
    cycles = Cyclic([3, 2], [0, 1])
    setting = (FedAU(0.1, 2, cutoff=4), random_problem(2, 2, 1), cycles, 300, [1.0])
    found = conditional(*setting)
    plain = monte_carlo(*setting, replicas=64, seed=0)
    assert found.replicas == 1
    assert not found.standard_error.squared_distance.any()
    error = np.maximum(plain.standard_error.squared_distance, 1e-12)
    assert (abs(found.squared_distance - plain.squared_distance) <= 7 * error).all()


def test_the_stated_rounding_covers_a_run_in_fractions() -> None:
    """Average all over a cycle, noise-free: x_t in exact arithmetic."""
    cycles = Cyclic([3, 2], [0, 1])
    problem = QuadraticProblem([[1.0]], [[-1.0], [2.0]])
    found = conditional(WeightedFedAvg((0.5, 0.5), 0.3, 2), problem, cycles, 40, [5.0])
    keep = (1 - Fraction(0.3)) ** 2
    x, masks = Fraction(5), cycles.masks(np.random.default_rng(0), 1)
    for t, (mask,) in enumerate(islice(masks, 41)):
        gap = abs((x - Fraction(1, 2)) ** 2 - Fraction(found.squared_distance[t]))
        assert gap <= found.rounding_error.squared_distance[t]
        moves = [(keep - 1) * (x - c) / 2 for here, c in zip(mask, (-1, 2), strict=True) if here]
        x += sum(moves)
    assert found.rounding_error.squared_distance.max() < 1e-10


def test_the_stated_rounding_adds_up_over_rounds() -> None:
    """Steps of just less than half the last place of x are lost in every round."""
    cycles, step, start = Cyclic([1], [0]), 0.93 * 2.0**-53, 4.1
    problem = QuadraticProblem([[1.0]], [[0.0]])
    found = conditional(WeightedFedAvg((1.0,), step, 1), problem, cycles, 1500, [start])
    with localcontext() as context:
        context.prec = 50
        expected = (Decimal(start) * (1 - Decimal(step)) ** 1500) ** 2
        gap = float(abs(Decimal(float(found.squared_distance[-1])) - expected))
    assert gap > 1.8 * 1500 * 2.0**-53 * start**2
    assert gap <= found.rounding_error.squared_distance[-1] < 1e-8


def test_a_projection_that_may_move_a_model_is_refused() -> None:
    projected = Projected(WeightedFedAvg((0.5, 0.5), 0.1, 1), Ball([0.0], 100.0))
    problem = random_problem(2, 2, 1)
    with pytest.raises(NotAffineError, match="projection must provably never move a model"):
        conditional(projected, problem, Bernoulli([0.5, 0.9]), 3, [1.0])


CHAINS = {
    "on and off": MarkovOnOff([0.5, 0.3], [0.8, -0.2]),
    "a finite chain": FiniteChain([[0.9, 0.1], [0.4, 0.6]], [[True, False], [True, True]], start=0),
    "cycles": Cyclic([2, 3], [0, 1]),
    "a trace from anywhere": Trace([[True, False], [False, True], [True, True]]),
}


@pytest.mark.parametrize("who", CHAINS)
def test_paths_along_states_give_the_exact_engines_moments(who: str) -> None:
    setting = (FedAvg(0.3, 2), random_problem(2, 2, 2), CHAINS[who], 5, [1.0, -1.0])
    found, expected = conditional(*setting), exact(*setting)
    for field in FIELDS:
        np.testing.assert_allclose(found[field], expected[field], rtol=1e-11)
        assert not found.standard_error[field].any()


WITH_MEMORY = {
    "MIFA from zero": Mifa(0.3, 2, start="zero"),
    "FedVARP": FedVarp(0.3, 2, server_lr=0.8),
    "ClusterFedVARP": ClusterFedVarp((0, 1, 0), 0.3, 2),
    "SCAFFOLD I": Scaffold(0.2, 2, option=1),
    "SCAFFOLD II": Scaffold(0.2, 2, server_lr=1.2),
}


@pytest.mark.parametrize("participation", [Bernoulli([0.3, 0.9, 0.5]), UniformSubset(3, 2)])
@pytest.mark.parametrize("name", WITH_MEMORY)
def test_remembered_updates_follow_the_exact_engine(name: str, participation) -> None:
    """Mean and covariance of model and memory together, noise and all."""
    setting = (WITH_MEMORY[name], random_problem(3, 3, 2), participation, 4, [1.0, -2.0])
    found, expected = conditional(*setting), exact(*setting)
    for field in FIELDS:
        np.testing.assert_allclose(found[field], expected[field], rtol=1e-11)
        allowed = found.rounding_error[field] + expected.rounding_error[field]
        assert (abs(found[field] - expected[field]) <= allowed).all()


AGES = {
    "FedAR": FedAR(0.3, 2, weight=CappedLinear(0.5, 1.75), cutoff=2),
    "FedAR, cut-off that grows": FedAR(0.3, 2, cutoff=lambda rounds: 1 + rounds / 2),
    "MIFA that waits": Mifa(0.3, 2),
}


@pytest.mark.parametrize(
    "participation", [Bernoulli([0.3, 0.9]), UniformSubset(2, 1), MarkovOnOff([0.4, 0.6], 0.5)]
)
@pytest.mark.parametrize("name", AGES)
def test_noise_free_rounds_that_depend_on_ages_over_all_paths(name: str, participation) -> None:
    """Every sequence of presence, its chance multiplied up round by round, run step by step."""
    problem, rounds = random_problem(6, 2, 2, sigma=0.0), 5
    sets = [np.array(s, dtype=bool) for s in product((0, 1), repeat=2)]
    paths = list(product(range(4), repeat=rounds))
    masks = np.array([[sets[i] for i in path] for path in paths])
    weights = np.array([chance_of(participation, [sets[i] for i in path]) for path in paths])
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    clients, algorithm = SteppedClients(problem, Silence()), AGES[name]
    state = algorithm.init(np.tile([1.5, -1.0], (len(paths), 1)), 2)
    found = conditional(algorithm, problem, participation, rounds, [1.5, -1.0])
    for index in range(rounds + 1):
        squares = ((state["x"] - problem.x_star) ** 2).sum(axis=1)
        assert found.squared_distance[index] == pytest.approx(weights @ squares, rel=1e-11)
        if index < rounds:
            state = algorithm.round(state, clients, masks[:, index], CLIENTS)


def chance_of(participation, path) -> float:
    """Return a path's probability from what the process says of itself."""
    if isinstance(participation, UniformSubset):
        return float(np.prod([0.5 * (mask.sum() == 1) for mask in path]))
    p = participation.availability
    nu = getattr(participation, "correlation", np.zeros(2))
    chance = float(np.where(path[0], p, 1 - p).prod())
    for before, now in pairwise(path):
        comes = nu * before + (1 - nu) * p
        chance *= float(np.where(now, comes, 1 - comes).prod())
    return chance


def test_one_path_where_nothing_is_random() -> None:
    """FedAR in a cycle, two clients by turns, one local step: by hand, with the noise's variance.

    Losses (x - c)^2 / 2, lr 1/4, psi = 1 + tau/2. 1: G = (1 - 0, .). x = 1 - 1/4. 2: client 1,
    G_1 = x - 4; x' = x - 1/8 (G_1 + 1.5 G_0).
    """
    sigma, weight = 0.5, CappedLinear(0.5, 2.0)
    problem = QuadraticProblem([[1.0]], [[0.0], [4.0]], sigma=sigma)
    cycle = Cyclic([2, 2], [0, 1])
    run = conditional(FedAR(0.25, 1, weight=weight), problem, cycle, 2, [1.0])
    x1 = 0.75
    x2 = x1 - ((x1 - 4) + 1.5 * 1.0) / 8
    # x1 = .. - e0/4; x2 = 7/8 x1 - e1/8 - 1.5 e0/8, so that e0 has the factor -7/32 - 6/32.
    variance = sigma**2 * np.array([0, 1 / 16, (13 / 32) ** 2 + 1 / 64])
    expected = (np.array([1.0, x1, x2]) - 2) ** 2 + variance
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-12)
    assert run.replicas == 1
    assert not run.standard_error.squared_distance.any()


@dataclass(frozen=True)
class Momentum:
    """Heavy ball: its memory is the last step, which depends on the model."""

    branches = EVERY_ROUND_CLIENTS

    def init(self, x0, n_clients):
        return {"x": x0, "velocity": 0 * x0}

    def round(self, state, clients, who, branch):
        weights = who / clients.n_clients
        step = clients.summed_local_sgd(state["x"], who, weights, steps=1, lr=0.1)
        velocity = 0.5 * state["velocity"] + step
        return {"x": state["x"] + velocity, "velocity": velocity}


@dataclass(frozen=True)
class Echo:
    """Its memory is the server's last noise alone: on losses x^2 / 2 the rest is x, exactly."""

    branches = EVERY_ROUND_CLIENTS

    def init(self, x0, n_clients):
        return {"x": x0, "noise": 0 * x0}

    def round(self, state, clients, who, branch):
        weights = who / clients.n_clients
        moved = clients.summed_local_sgd(state["x"], who, weights, steps=1, lr=0.25)
        noise = clients.server_gradient(state["x"]) - state["x"]
        return {"x": state["x"] + moved + state["noise"], "noise": noise}


@dataclass(frozen=True)
class Clipped:
    """A step that is not affine."""

    branches = EVERY_ROUND_CLIENTS

    def init(self, x0, n_clients):
        return {"x": x0}

    def round(self, state, clients, who, branch):
        return {"x": np.clip(state["x"], -0.5, 0.5)}


def test_a_memory_of_steps_is_followed_too() -> None:
    setting = (Momentum(), random_problem(2, 2, 1), Bernoulli([0.5, 0.9]), 4, [1.0])
    found, expected = conditional(*setting), exact(*setting)
    np.testing.assert_allclose(found.squared_distance, expected.squared_distance, rtol=1e-11)


def test_a_memory_of_noise_alone_is_random_too() -> None:
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]], server_sigma=1.0)
    setting = (Echo(), problem, Bernoulli([0.5, 0.9]), 4, [1.0])
    found, expected = conditional(*setting), exact(*setting)
    np.testing.assert_allclose(found.squared_distance, expected.squared_distance, rtol=1e-11)


@pytest.mark.parametrize(
    "algorithm", [Clipped(), CAFed([0.5, 0.5], 0.3, 1)], ids=["clip", "CA-Fed"]
)
def test_what_is_not_affine_given_the_path_is_refused(algorithm) -> None:
    """CA-Fed excludes clients by their losses, and so by where the model is."""
    with pytest.raises(NotAffineError, match=r"affine in its state given who takes part.*monte"):
        conditional(algorithm, random_problem(2, 2, 1), Bernoulli([0.5, 0.9]), 3, [1.0])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"algorithm": Safari(0.5, 0.1, 0.1, 1)}, ValueError, "algorithm must have one branch"),
        ({"problem": nonconvex(2, 1, L=1.0, sigma_G=1.0)}, NotAffineError, "QuadraticProblem"),
        ({"rounds": 20}, ValueError, "participation must have at most 50000 paths"),
        ({"paths": 1}, ValueError, "paths must be a whole number of at least 2"),
        ({"paths": 5, "seed": -1}, ValueError, "seed must be a whole number"),
    ],
)
def test_bad_arguments(changes, error, message: str) -> None:
    arguments = {
        "algorithm": FedAU(0.3, 2),
        "problem": random_problem(2, 2, 1),
        "participation": Bernoulli([0.5, 0.9]),
        "rounds": 3,
        "x0": [1.0],
    }
    with pytest.raises(error, match=message):
        conditional(**{**arguments, **changes})
