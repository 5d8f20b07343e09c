"""Stationary limits along chains: rational fixed points, long runs, CA-Fed's biased optimum."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles import RawQuadratics, convert, random_problem, solve

from fltheory.algorithms import FedAvg, Safari, WeightedFedAvg
from fltheory.engines import Setting, exact, stationary
from fltheory.engines.history import jump_limits
from fltheory.engines.history.jump_map import JumpMap
from fltheory.engines.moments.stationary_limit import StationaryLimit
from fltheory.engines.trajectory import FIELDS
from fltheory.participation import FiniteChain, MarkovOnOff, Trace
from fltheory.problems import QuadraticProblem

WEIGHTS = (0.5, 1.25, 0.75)
CHAIN = FiniteChain(
    [[0.5, 0.25, 0.25], [0.0, 0.75, 0.25], [0.125, 0.0, 0.875]], [[1, 0, 1], [0, 0, 0], [1, 1, 1]]
)


@pytest.fixture(params=["direct", "Krylov"])
def _solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with elimination and with the iterative solver for large systems."""
    if request.param == "Krylov":
        monkeypatch.setattr(jump_limits, "_LARGEST_DIRECT_SYSTEM", 0)


def rational_limit(
    weights: tuple[float, ...], problem: QuadraticProblem, chain: FiniteChain, lr: float, steps: int
) -> tuple[dict[str, Any], np.ndarray]:
    """Solve for all ``E[x 1{i}]`` and ``E[x x' 1{i}]`` by elimination over the rationals.

    In raw coordinates, as one linear system on the stacked moments of all states.
    """
    raw = RawQuadratics(problem, Fraction)
    size = chain.n_states
    transition = convert(chain.transition, Fraction)
    ones = np.array([Fraction(1)] * size)
    balance = convert(np.eye(size), Fraction) - transition.T
    balance[-1] = ones
    right = 0 * ones
    right[-1] = Fraction(1)
    law = solve(balance, right)
    local = [raw.local_sgd(k, steps, lr) for k in range(raw.n_clients)]
    maps = []
    for mask in chain.state_masks:
        slope, offset, noise = raw.identity, 0 * raw.x_star, 0 * raw.identity
        for k in np.flatnonzero(mask):
            w = Fraction(weights[k])
            slope = slope + w * (local[k].slope - raw.identity)
            offset = offset + w * local[k].offset
            noise = noise + w**2 * local[k].noise
        maps.append((slope, offset, noise))

    def fixed_point(blocks: list[np.ndarray], inflow: list[np.ndarray]) -> np.ndarray:
        whole = np.block([[transition[i, j] * blocks[i] for i in range(size)] for j in range(size)])
        into = np.concatenate(
            [sum(transition[i, j] * inflow[i] for i in range(size)) for j in range(size)]
        )
        found = solve(convert(np.eye(len(into)), Fraction) - whole, into)
        return found.reshape(size, -1)

    firsts = fixed_point([m[0] for m in maps], [law[i] * m[1] for i, m in enumerate(maps)])
    inflows = []
    for i, (slope, offset, noise) in enumerate(maps):
        pushed = np.outer(slope @ firsts[i], offset)
        inflows.append((law[i] * (np.outer(offset, offset) + noise) + pushed + pushed.T).ravel())
    seconds = fixed_point([np.kron(m[0], m[0]) for m in maps], inflows)
    first, second = firsts.sum(axis=0), seconds.sum(axis=0)
    return raw.errors(second, first), first


@pytest.mark.usefixtures("_solver")
def test_limit_is_the_rational_fixed_point() -> None:
    """Three states, one of them empty, two dimensions, K = 2, noise."""
    problem = random_problem(5, 3, 2)
    limit = stationary(Setting(WeightedFedAvg(WEIGHTS, 0.25, 2), problem, CHAIN, 1, problem.x_star))
    expected, mean = rational_limit(WEIGHTS, problem, CHAIN, 0.25, 2)
    assert limit.converges
    for name in FIELDS:
        value = float(expected[name])
        np.testing.assert_allclose(getattr(limit, name), value, rtol=1e-11)
        gap = abs(getattr(limit, name) - value)
        assert gap <= limit.rounding_error[name] + 2e-16 * value
        assert limit.rounding_error[name] <= 1e-9 * value
    np.testing.assert_allclose(limit.mean, mean.astype(float), rtol=1e-11)
    x_star = RawQuadratics(problem, Fraction).x_star
    bias = np.linalg.norm((mean - x_star).astype(float))
    np.testing.assert_allclose(limit.bias, bias, rtol=1e-10)


@pytest.mark.parametrize(("correlation", "rounds"), [(-0.2, 800), (0.0, 800), (0.99, 4000)])
def test_limit_is_where_long_runs_end(correlation: float, rounds: int) -> None:
    """At nu = 0.99 a spell lasts for hundreds of rounds; the run takes thousands."""
    problem = random_problem(6, 3, 2)
    chains = MarkovOnOff([0.3, 0.5, 0.8], correlation, start=[1, 0, 0])
    arguments = (WeightedFedAvg(WEIGHTS, 0.25, 2), problem, chains)
    limit = stationary(Setting(*arguments, 1, [3.0, -2.0]))
    run = exact(Setting(*arguments, rounds, [3.0, -2.0]))
    for name in FIELDS:
        np.testing.assert_allclose(getattr(limit, name), run[name][-1], rtol=1e-9)


def test_strong_correlation_widens_the_limit() -> None:
    problem = random_problem(6, 3, 2)
    spreads = [
        stationary(
            Setting(
                WeightedFedAvg(WEIGHTS, 0.1, 2),
                problem,
                MarkovOnOff([0.5] * 3, nu),
                1,
                problem.x_star,
            )
        ).excess_loss
        for nu in (0.0, 0.5, 0.9, 0.99)
    ]
    assert spreads == sorted(spreads)
    assert spreads[-1] > 3 * spreads[0]


@pytest.mark.usefixtures("_solver")
def test_a_chain_that_forgets_agrees_with_the_model_alone() -> None:
    """A mark that depends on the state before, beside independent sets."""
    problem, independent = random_problem(7, 3, 2), MarkovOnOff([0.5, 0.25, 0.75], 0.0)
    law, masks = zip(*independent.outcomes(), strict=True)
    transition = np.repeat(np.kron([[0.75, 0.25], [0.5, 0.5]], [law]), len(law), axis=0)
    marked = FiniteChain(transition, np.vstack([masks, masks]))
    algorithm = Safari(0.7, 0.2, 0.1, 3)
    left, right = (
        stationary(Setting(algorithm, problem, process, 1, problem.x_star))
        for process in (marked, independent)
    )
    for name in (*FIELDS, "bias"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), rtol=1e-10)


def test_a_record_played_from_anywhere() -> None:
    """One noisy client, there in 1 round of 2: ``v / (1 - a^2)`` whatever the round."""
    problem = QuadraticProblem([[1.0]], [[0.0]], sigma=2.0)
    arguments = (FedAvg(0.5, 1), problem)
    limit = stationary(Setting(*arguments, Trace([[1], [0]]), 1, [0.0]))
    assert limit.squared_distance == pytest.approx(1.0 / (1 - 0.25), rel=1e-13)
    with pytest.raises(ValueError, match=r"a law that converges .*engines\.exact"):
        stationary(Setting(*arguments, Trace([[1], [0]], start=0), 1, [0.0]))


# --- CA-Fed's equation (4) -------------------------------------------------------------------


def seen_from(problem: QuadraticProblem, weights: np.ndarray) -> QuadraticProblem:
    return QuadraticProblem(
        problem.hessians, problem.optima, sigma=problem.sigma, target_weights=weights
    )


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_small_steps_end_at_the_biased_optimum(steps: int, correlation: float) -> None:
    """The mean is off w_B* in proportion to the step size, and off w* by a constant."""
    problem, pi = random_problem(8, 3, 2), [0.2, 0.5, 0.9]
    chains = MarkovOnOff(pi, correlation)
    biased = seen_from(problem, WeightedFedAvg(WEIGHTS, 1.0, 1).importance(pi))
    off = [
        stationary(
            Setting(WeightedFedAvg(WEIGHTS, lr, steps), biased, chains, 1, biased.x_star)
        ).bias
        for lr in (1e-3, 1e-4)
    ]
    if steps == 1 and correlation == 0:
        assert max(off) < 1e-12
    else:
        assert off[0] / off[1] == pytest.approx(10.0, rel=0.05)
    away = stationary(
        Setting(WeightedFedAvg(WEIGHTS, 1e-4, steps), problem, chains, 1, problem.x_star)
    ).bias
    distance = np.linalg.norm(biased.x_star - problem.x_star)
    assert away == pytest.approx(distance, rel=0.01)


def test_weights_over_availabilities_are_unbiased() -> None:
    """CA-Fed's guideline C, q_k = alpha_k / pi_k: p = alpha."""
    pi, alpha = np.array([0.2, 0.5, 0.9]), np.array([0.5, 0.3, 0.2])
    algorithm = WeightedFedAvg(tuple(alpha / pi), 0.1, 1)
    np.testing.assert_allclose(algorithm.importance(pi), alpha, rtol=1e-14)


@pytest.mark.parametrize(
    ("availability", "message"),
    [
        ([0.5], r"availability must be probabilities of shape \(3,\)"),
        ([0.5, 0.5, 1.5], r"availability must be probabilities of shape \(3,\)"),
        ([0.0, 0.0, 0.0], r"availability must be positive for a client with a positive weight"),
    ],
)
def test_bad_availability_is_named(availability: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WeightedFedAvg(WEIGHTS, 0.1, 1).importance(availability)


# --- no limit --------------------------------------------------------------------------------


def assert_infinite(limit: StationaryLimit) -> None:
    assert not limit.converges
    assert np.isposinf([*(getattr(limit, name) for name in FIELDS), limit.bias, *limit.mean]).all()


def two_states_on_one_client(nu: float, step: float) -> StationaryLimit:
    problem = QuadraticProblem([[1.0]], [[0.0]])
    return stationary(Setting(FedAvg(step, 1), problem, MarkovOnOff([0.5], nu), 1, problem.x_star))


@pytest.mark.usefixtures("_solver")
def test_one_client_is_stable_as_it_is_when_always_there() -> None:
    """``(1 - step)^2`` is 2 or 1/4 where the client is there, and 1 where it is not."""
    assert_infinite(two_states_on_one_client(0.5, 1 + np.sqrt(2)))
    assert two_states_on_one_client(0.5, 1.5).converges


@pytest.mark.usefixtures("_solver")
def test_long_spells_of_one_client_can_be_too_much() -> None:
    """Client 0 makes squares 2.25 times as large, client 1 0.09 times; one of them at a time.

    In one dimension the second moments of the states are multiplied by ``P' diag(gains)``.
    """
    problem = QuadraticProblem([[[2.5]], [[0.7]]], [[0.0], [0.0]])
    gains = np.array([(1 - 2.5) ** 2, (1 - 0.7) ** 2])
    for stay in (0.05, 0.2, 0.4, 0.5, 0.9):
        transition = np.array([[stay, 1 - stay], [1 - stay, stay]])
        radius = np.abs(np.linalg.eigvals(gains[:, None] * transition)).max()
        limit = stationary(
            Setting(FedAvg(1.0, 1), problem, FiniteChain(transition, np.eye(2)), 1, problem.x_star)
        )
        assert limit.converges == (radius < 1)


def test_a_model_that_never_moves_has_no_limit_of_its_own() -> None:
    """All weight on a client that is never there: the start is remembered for ever."""
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]])
    algorithm = WeightedFedAvg((1.0, 0.0), 0.5, 1)
    assert_infinite(
        stationary(Setting(algorithm, problem, MarkovOnOff([0.0, 0.5], 0.5), 1, problem.x_star))
    )


def test_a_round_beyond_floats_has_no_limit() -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0)
    assert_infinite(
        stationary(
            Setting(FedAvg(1e3, 120), problem, MarkovOnOff([0.5, 0.5], 0.5), 1, problem.x_star)
        )
    )


def test_what_rounds_too_much_is_not_answered() -> None:
    """One round in three makes squares 10^8 times as large, the next forgets the model.

    So X is 10^8 there, and an error of 1.1e-16 in it times 10^8 in the residual is not below 1/2
    after half a dozen operations.
    """
    problem = QuadraticProblem([[[1e4 + 1]], [[1.0]]], [[0.0], [1.0]])
    chain = FiniteChain([[0.0, 1.0], [0.5, 0.5]], np.eye(2))
    with pytest.raises(ArithmeticError, match="could not be solved for well enough"):
        stationary(Setting(FedAvg(1.0, 1), problem, chain, 1, problem.x_star))
    milder = QuadraticProblem([[[1e3 + 1]], [[1.0]]], [[0.0], [1.0]])
    assert stationary(Setting(FedAvg(1.0, 1), milder, chain, 1, milder.x_star)).converges


def test_what_an_error_adds_up_to_over_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that is halved in every round its square: 1 + 1/4 + 1/16 + ... = 4/3."""
    found: list[float | None] = []
    bound = jump_limits._dwell

    def kept(step: JumpMap) -> float | None:
        found.append(bound(step))
        return found[-1]

    monkeypatch.setattr(jump_limits, "_dwell", kept)
    chain = FiniteChain([[0.5, 0.5], [0.25, 0.75]], [[1, 0], [0, 1]])
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    stationary(Setting(FedAvg(0.5, 1), problem, chain, 1, problem.x_star))
    assert found == [pytest.approx(4 / 3, rel=1e-12)]
