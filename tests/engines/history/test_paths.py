"""Paths of participants against plain recursions, the exact engine, fractions, and sampling."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import islice, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_problem

from fltheory.algorithms import (
    CAFed,
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
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.engines import Setting, exact, monte_carlo, paths
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.engines.history.paths import drawn_paths
from fltheory.participation import (
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Trace,
    UniformSubset,
    WaitingSubset,
)
from fltheory.problems import Ball, Problem, QuadraticProblem, nonconvex
from tests.engines.affine.test_probing import Alternating
from tests.engines.fedau_weights.test_weight_error import weights_of_algorithm_2

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
    found = paths(Setting(algorithm, problem, participation, 4, [1.0, -2.0]))
    expected = exact(Setting(algorithm, problem, participation, 4, [1.0, -2.0]))
    for field in FIELDS:
        np.testing.assert_allclose(found[field], expected[field], rtol=1e-11)
    assert found.standard_error is None


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
    found = paths(Setting(algorithm, problem, Bernoulli(p), 4, [1.0]))
    expected = [fedau_by_hand(p, optima, sigma, rounds, cutoff) for rounds in range(5)]
    np.testing.assert_allclose(found.squared_distance, expected, rtol=1e-12)


def test_drawn_paths_agree_with_all_and_with_plain_sampling() -> None:
    """Six standard errors at 18 numbers each: false alarm below 1e-7 (normal tails)."""
    problem = QuadraticProblem([[1.0, 0.0], [0.0, 0.5]], [[-1.0, 0.0], [1.0, 2.0]], sigma=1.0)
    setting = (FedAU(0.3, 2, cutoff=3), problem, Bernoulli([0.4, 0.8]), 5, [1.0, 1.0])
    every = paths(Setting(*setting))
    drawn = paths(Setting(*setting), draws=4000, seed=1)
    plain = monte_carlo(Setting(*setting), replicas=4000, seed=2)
    for field in FIELDS:
        for sample in (drawn, plain):
            error = np.maximum(sample.standard_error[field], 1e-12)
            assert (abs(sample[field] - every[field]) <= 6 * error).all()
        assert (drawn.standard_error[field][1:] < plain.standard_error[field][1:]).all()


def test_conditioning_saves_variance() -> None:
    """The noise averages out; what is left is who takes part, through the weights too."""
    problem = QuadraticProblem([[1.0]], [[-0.1], [0.1]], sigma=3.0)
    setting = (FedAU(0.3, 2), problem, Bernoulli([0.5, 0.9]), 10, [1.0])
    drawn = paths(Setting(*setting), draws=1000, seed=1)
    plain = monte_carlo(Setting(*setting), replicas=1000, seed=1)
    saved = plain.standard_error.squared_distance[-1] / drawn.standard_error.squared_distance[-1]
    assert saved**2 > 3


def test_the_same_seed_gives_the_same_paths() -> None:
    setting = (FedAU(0.3, 2), random_problem(2, 2, 1), Bernoulli([0.5, 0.9]), 6, [1.0])
    first, again, other = (paths(Setting(*setting), draws=50, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.squared_distance, again.squared_distance)
    assert (first.squared_distance[1:] != other.squared_distance[1:]).all()
    assert first.replicas == 50


def test_paths_without_states_can_be_drawn_but_not_all_followed() -> None:
    setting = (FedAU(0.3, 2), random_problem(2, 2, 1), Alternating(2), 3, [1.0])
    assert paths(Setting(*setting), draws=10).rounds == 3
    with pytest.raises(NotAffineError, match=r"at most 50000 histories to follow them all.*draw"):
        paths(Setting(*setting))


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
    found = paths(Setting(FedAU(0.25, 1, cutoff=3), problem, chains, 4, [1.0]))
    np.testing.assert_allclose(found.squared_distance, expected, rtol=1e-13)


@pytest.mark.parametrize(
    "participation", [MarkovOnOff([0.3, 0.6, 1.0], 0.5), Cyclic([3, 2, 5], [0, 1, 4], active=1)]
)
def test_all_paths_of_states_give_the_exact_engines_moments(participation) -> None:
    problem = random_problem(3, 3, 2)
    setting = (FedAvg(0.2, 3), problem, participation, 5, [1.0, -2.0])
    found, expected = paths(Setting(*setting)), exact(Setting(*setting))
    for field in FIELDS:
        allowed = found.rounding_error[field] + expected.rounding_error[field]
        assert (abs(found[field] - expected[field]) <= allowed).all()
        assert (found.rounding_error[field] <= 2e-10 * found[field]).all()


def test_cycles_have_one_path_however_long() -> None:
    cycles = Cyclic([3, 2], [0, 1])
    setting = (FedAU(0.1, 2, cutoff=4), random_problem(2, 2, 1), cycles, 300, [1.0])
    found = paths(Setting(*setting))
    plain = monte_carlo(Setting(*setting), replicas=64, seed=0)
    assert found.replicas is None
    assert found.standard_error is None
    error = np.maximum(plain.standard_error.squared_distance, 1e-12)
    assert (abs(found.squared_distance - plain.squared_distance) <= 7 * error).all()


def test_the_stated_rounding_covers_a_run_in_fractions() -> None:
    """Average all over a cycle, noise-free: x_t in exact arithmetic."""
    cycles = Cyclic([3, 2], [0, 1])
    problem = QuadraticProblem([[1.0]], [[-1.0], [2.0]])
    found = paths(Setting(WeightedFedAvg((0.5, 0.5), 0.3, 2), problem, cycles, 40, [5.0]))
    keep = (1 - Fraction(0.3)) ** 2
    x, masks = Fraction(5), cycles.masks(np.random.default_rng(0), 1)
    for t, (mask,) in enumerate(islice(masks, 41)):
        gap = abs((x - Fraction(1, 2)) ** 2 - Fraction(found.squared_distance[t]))
        assert gap <= found.rounding_error.squared_distance[t]
        moves = [(keep - 1) * (x - c) / 2 for here, c in zip(mask, (-1, 2), strict=True) if here]
        x += sum(moves)
    assert found.rounding_error.squared_distance.max() < 1e-10


def test_the_stated_rounding_adds_up_over_rounds() -> None:
    """Steps of just less than half the last place of x are lost in every round.

    Nothing contracts: the bound grows by what it allows for each round, less than 300 times that.
    """
    cycles, step, start = Cyclic([1], [0]), 0.93 * 2.0**-53, 4.1
    problem = QuadraticProblem([[1.0]], [[0.0]])
    found = paths(Setting(WeightedFedAvg((1.0,), step, 1), problem, cycles, 1500, [start]))
    with localcontext() as context:
        context.prec = 50
        expected = (Decimal(start) * (1 - Decimal(step)) ** 1500) ** 2
        gap = float(abs(Decimal(float(found.squared_distance[-1])) - expected))
    assert gap > 1.8 * 1500 * 2.0**-53 * start**2
    assert gap <= found.rounding_error.squared_distance[-1] < 300 * gap


def test_a_projection_that_may_move_a_model_is_refused() -> None:
    projected = Projected(WeightedFedAvg((0.5, 0.5), 0.1, 1), Ball([0.0], 100.0))
    problem = random_problem(2, 2, 1)
    with pytest.raises(NotAffineError, match="projection must provably never move a model"):
        paths(Setting(projected, problem, Bernoulli([0.5, 0.9]), 3, [1.0]))


CHAINS = {
    "on and off": MarkovOnOff([0.5, 0.3], [0.8, -0.2]),
    "a finite chain": FiniteChain([[0.9, 0.1], [0.4, 0.6]], [[True, False], [True, True]], start=0),
    "cycles": Cyclic([2, 3], [0, 1]),
    "waiting": WaitingSubset([0.5, 0.25], 1),
    "a trace from anywhere": Trace([[True, False], [False, True], [True, True]]),
}


@pytest.mark.parametrize("who", CHAINS)
def test_paths_along_states_give_the_exact_engines_moments(who: str) -> None:
    setting = (FedAvg(0.3, 2), random_problem(2, 2, 2), CHAINS[who], 5, [1.0, -1.0])
    found, expected = paths(Setting(*setting)), exact(Setting(*setting))
    for field in FIELDS:
        np.testing.assert_allclose(found[field], expected[field], rtol=1e-11)
    assert found.standard_error is None


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
    found, expected = paths(Setting(*setting)), exact(Setting(*setting))
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
    every = list(product(range(4), repeat=rounds))
    masks = np.array([[sets[i] for i in path] for path in every])
    weights = np.array([chance_of(participation, [sets[i] for i in path]) for path in every])
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    clients, algorithm = SteppedClients(problem, Silence()), AGES[name]
    state = algorithm.init(np.tile([1.5, -1.0], (len(every), 1)), 2)
    found = paths(Setting(algorithm, problem, participation, rounds, [1.5, -1.0]))
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
    run = paths(Setting(FedAR(0.25, 1, weight=weight), problem, cycle, 2, [1.0]))
    x1 = 0.75
    x2 = x1 - ((x1 - 4) + 1.5 * 1.0) / 8
    # x1 = .. - e0/4; x2 = 7/8 x1 - e1/8 - 1.5 e0/8, so that e0 has the factor -7/32 - 6/32.
    variance = sigma**2 * np.array([0, 1 / 16, (13 / 32) ** 2 + 1 / 64])
    expected = (np.array([1.0, x1, x2]) - 2) ** 2 + variance
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-12)
    assert run.replicas is None
    assert run.standard_error is None


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


def test_a_memory_of_steps_is_followed_too() -> None:
    setting = (Momentum(), random_problem(2, 2, 1), Bernoulli([0.5, 0.9]), 4, [1.0])
    found, expected = paths(Setting(*setting)), exact(Setting(*setting))
    np.testing.assert_allclose(found.squared_distance, expected.squared_distance, rtol=1e-11)


def test_a_memory_of_noise_alone_is_random_too() -> None:
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]], server_sigma=1.0)
    setting = (Echo(), problem, Bernoulli([0.5, 0.9]), 4, [1.0])
    found, expected = paths(Setting(*setting)), exact(Setting(*setting))
    np.testing.assert_allclose(found.squared_distance, expected.squared_distance, rtol=1e-11)


class Clipped(FedAvg):
    """FedAvg whose model is cut to [-1, 1]: not affine."""

    def round(self, state, clients, who, branch):
        after = super().round(state, clients, who, branch)
        return {**after, "x": np.clip(after["x"], -1.0, 1.0)}


REFUSED = {
    "clip": (Clipped(0.3, 1), "a clip"),
    "CA-Fed": (CAFed([0.5, 0.5], 0.3, 1), "the losses"),
}


@pytest.mark.parametrize("draws", [None, 5])
@pytest.mark.parametrize(
    "participation", [Bernoulli([0.5, 0.9]), Trace([[1, 1], [1, 0]], start=0)], ids=["p", "path"]
)
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_affine_given_the_path_is_refused(name: str, participation, draws) -> None:
    """CA-Fed excludes clients by their losses, and so by where the model is."""
    algorithm, what = REFUSED[name]
    setting = Setting(algorithm, random_problem(2, 2, 1), participation, 3, [1.0])
    with pytest.raises(
        NotAffineError,
        match=rf"{what} of a value that depends.*use "
        r"engines\.monte_carlo",
    ):
        paths(setting, draws=draws)


@pytest.mark.parametrize("name", REFUSED)
def test_without_noise_what_is_not_affine_is_followed_as_numbers(name: str) -> None:
    """Every path of 3 rounds, run step by step; such runs have no bound on their rounding."""
    algorithm, _ = REFUSED[name]
    problem = random_problem(2, 2, 1, sigma=0.0, server_sigma=0.0)
    found = paths(Setting(algorithm, problem, Bernoulli([0.5, 0.9]), 3, [1.5]))
    sets = [np.array(s, dtype=bool) for s in product((0, 1), repeat=2)]
    expected = np.zeros(4)
    for path in product(sets, repeat=3):
        chance = chance_of(Bernoulli([0.5, 0.9]), path)
        state = algorithm.init(np.array([[1.5]]), 2)
        expected[0] += chance * float((state["x"] - problem.x_star)[0, 0] ** 2)
        for t, mask in enumerate(path):
            state = algorithm.round(state, SteppedClients(problem, Silence()), mask[None], CLIENTS)
            expected[t + 1] += chance * float((state["x"] - problem.x_star)[0, 0] ** 2)
    np.testing.assert_allclose(found.squared_distance, expected, rtol=1e-12)
    assert found.rounding_error is None
    assert found.standard_error is None


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"problem": nonconvex(2, 1, L=1.0, sigma_G=1.0, sigma=0.1)},
            NotAffineError,
            "problem must be a QuadraticProblem, or have exact gradients, to follow paths",
        ),
        (
            {"participation": Bernoulli([0.5] * 17), "problem": random_problem(2, 17, 1)},
            NotAffineError,
            "participation must have at most 50000 histories to follow them all",
        ),
        (
            {"algorithm": FedAU(0.3, 2), "rounds": 60},
            NotAffineError,
            "participation must have at most 50000 histories to follow them all",
        ),
        ({"draws": 1}, ValueError, "draws must be a whole number of at least 2"),
        ({"draws": 5, "seed": -1}, ValueError, "seed must be a whole number"),
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
    parts = {**arguments, **changes}
    draws = {name: parts.pop(name) for name in ("draws", "seed") if name in parts}
    with pytest.raises(error, match=message):
        paths(Setting(**parts), **draws)


@pytest.mark.parametrize(
    "participation", [UniformSubset(2, 1), UniformSubset(2, 2), Bernoulli([0.3, 0.8])]
)
def test_branches_are_histories_too(participation) -> None:
    """SAFARI draws who steps, its clients or its server: with noise, and for 12 rounds."""
    algorithm = Safari(0.3, 0.2, 0.1, 2)
    setting = Setting(algorithm, random_problem(2, 2, 2), participation, 12, [1.0, -1.0])
    found, expected = paths(setting), exact(setting)
    for field in FIELDS:
        np.testing.assert_allclose(found[field], expected[field], rtol=1e-11)


def test_drawn_paths_repeat_with_the_seed() -> None:
    first, again, other = (drawn_paths(Bernoulli([0.5] * 3), 6, 20, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.shape == (20, 6, 3)


def test_drawn_paths_of_a_cycle_are_its_one_path() -> None:
    cycles = Cyclic([3, 4], [2, 0])
    drawn = drawn_paths(cycles, 500, 2, 0)
    present = [[(t + 2) % 3 == 0, t % 4 == 0] for t in range(500)]
    np.testing.assert_array_equal(drawn, [present, present])


@given(st.floats(0.05, 0.95), st.floats(0.0, 0.9), st.integers(1, 6))
def test_a_stationary_chain_has_its_marginals_in_every_round(p, nu, rounds: int) -> None:
    """FedAvg, steps of one, losses (x - c)^2 / 2: x_t is c_1 with probability p, or else c_2.

    Client 1 comes and goes, and 2 is there when 1 is not. So ``E (x_t - c_2)^2 = p (c_1 - c_2)^2``.
    """
    comes, stays = (1 - nu) * p, nu + (1 - nu) * p
    chain = FiniteChain([[1 - comes, comes], [1 - stays, stays]], [[False, True], [True, False]])
    problem = QuadraticProblem([[1.0]], [[3.0], [1.0]], target_weights=[1e-300, 1.0])
    found = paths(Setting(FedAvg(1.0, 1), problem, chain, rounds, [7.0]))
    np.testing.assert_allclose(found.squared_distance[1:], 4 * p, rtol=1e-11)


def test_a_long_cycle_is_one_path() -> None:
    """99,991 and 2 rounds: both, nobody, the second; steps of a half to 0 and to 4."""
    problem = QuadraticProblem([[1.0]], [[0.0], [4.0]])
    run = paths(Setting(FedAvg(0.5, 1), problem, Cyclic([99_991, 2], [0, 0]), 3, [1.0]))
    x = np.array([1.0, 1.5, 1.5, 2.75])
    np.testing.assert_allclose(run.squared_distance, (x - 2) ** 2, rtol=1e-13)


def test_one_round_on_losses_that_are_not_convex_by_hand() -> None:
    problem: Problem = nonconvex(2, 2, L=1.0, sigma_G=0.3, sigma=0.0, server_sigma=0.0)
    x0, q = np.array([2.0, -1.0]), 0.25
    safari = Safari(q, client_lr=0.2, assist_lr=0.1, local_steps=1)
    found = paths(Setting(safari, problem, UniformSubset(2, 1), 1, x0))
    own = problem.client_gradients(np.tile(x0, (2, 1)), np.arange(2))
    server = x0 - 0.1 * problem.gradient(x0)
    ends = [(q / 2, x0 - 0.2 * own[0]), (q / 2, x0 - 0.2 * own[1]), (1 - q, server)]
    expected = sum(chance * float((problem.gradient(x) ** 2).sum()) for chance, x in ends)
    assert found.squared_gradient[1] == pytest.approx(expected, rel=1e-13)


X0 = np.array([1.5, -1.0])
CYCLES = Cyclic([1, 2, 3], [0, 1, 0])
AFFINE = {
    "FedAvg": FedAvg(0.2, 3),
    "FedVARP": FedVarp(0.2, 2),
    "SCAFFOLD": Scaffold(0.2, 2),
    "MIFA from zero": Mifa(0.2, 2, start="zero"),
}


@pytest.mark.parametrize("name", AFFINE)
def test_it_agrees_with_the_engine_along_chains(name: str) -> None:
    """Algorithms that do not count have exact moments by the jump-linear recursion too."""
    problem = random_problem(6, 3, 2, sigma=0.7)
    chain = exact(Setting(AFFINE[name], problem, CYCLES, 20, X0))
    path = paths(Setting(AFFINE[name], problem, CYCLES, 20, X0))
    for field in FIELDS:
        assert path[field] == pytest.approx(chain[field], rel=1e-10)


def fedar_in_fractions(rounds: int) -> list[Fraction]:
    """E (w_t - w*)^2 of FedAR on a line, K = 1, one column a unit of noise, in fractions."""
    optima, sigma, start = [Fraction(1), Fraction(-3)], Fraction(1, 2), Fraction(2)
    centre, columns = sum(optima) / 2, 1 + 2 * rounds
    w = [start - centre] + [Fraction(0)] * (columns - 1)
    updates = [[Fraction(0)] * columns for _ in range(2)]
    tau, seen, used, squares = [0, 0], [False, False], 1, [w[0] ** 2]
    for t in range(rounds):
        eta = Fraction(1, t + 3)
        for i in range(2):
            tau[i] += 1
            if i == 1 or t % 3 == 1:
                tau[i], seen[i] = 0, True
                updates[i] = list(w)
                updates[i][0] -= optima[i] - centre
                updates[i][used] += sigma
                used += 1
        counted = [i for i in range(2) if seen[i] and tau[i] <= 1]
        w = [
            value
            - eta / len(counted) * sum((1 + Fraction(tau[i], 4)) * updates[i][c] for i in counted)
            for c, value in enumerate(w)
        ]
        squares.append(sum(value**2 for value in w))
    return squares


def test_fedar_in_fractions_and_the_bound_on_rounding() -> None:
    """First appearance, cut-off, weights and schedule, for 25 rounds."""
    problem = QuadraticProblem([[1.0]], [[1.0], [-3.0]], sigma=0.5)
    algorithm = Scheduled(
        FedAR(0.1, 1, weight=CappedLinear(0.25, 2.0), cutoff=1.0), Harmonic(1.0, offset=2.0)
    )
    run = paths(Setting(algorithm, problem, Cyclic([3, 1], [2, 0]), 25, [2.0]))
    assert run.rounding_error is not None
    for t, expected in enumerate(fedar_in_fractions(25)):
        error = abs(Fraction(run.squared_distance[t]) - expected)
        assert error <= Fraction(run.rounding_error.squared_distance[t])
        assert run.squared_distance[t] == pytest.approx(float(expected), rel=1e-11)
    assert run.rounding_error.squared_distance[-1] < 1e-9


@pytest.mark.parametrize(
    "algorithm", [FedAR(0.2, 2, cutoff=2.0), Mifa(0.2, 2)], ids=["FedAR", "waiting MIFA"]
)
def test_sampled_runs_agree(algorithm) -> None:
    """No mean of 20 000 noisy runs is 8 standard errors from its expectation.

    Given the path the model is Gaussian, its squares chi-square-like with skewness below 2.9, so
    the normal tail beyond 8, 1.3e-15, grows at most by exp(2.9 8^3/(6 sqrt(20 000))) < 6; for 2
    runs, 10 rounds and 3 quantities the false-alarm probability is below 1e-12. Detects 6% of a
    standard deviation.
    """
    problem = random_problem(6, 3, 2, sigma=0.7)
    truth = paths(Setting(algorithm, problem, CYCLES, 10, X0))
    run = monte_carlo(Setting(algorithm, problem, CYCLES, 10, X0), replicas=20_000, seed=3)
    assert run.standard_error is not None
    for field in FIELDS:
        slack = 8 * run.standard_error[field] + 1e-12 * (1 + truth[field])
        assert (np.abs(run[field] - truth[field]) <= slack).all()


def test_errors_stay_bounded_over_many_rounds() -> None:
    """1,000 rounds of a map whose slope has norm above one: the bound does not explode."""
    problem = QuadraticProblem([[1.0]], [[1.0], [-3.0]], sigma=0.5)
    run = paths(Setting(FedAR(0.01, 1), problem, Cyclic([3, 1], [2, 0]), 1000, [2.0]))
    assert run.rounding_error is not None
    assert run.rounding_error.squared_distance[-1] < 1e-3 * run.squared_distance[-1]
