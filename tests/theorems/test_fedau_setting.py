"""What FedAU's statements read off a setting, against every history of a small one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import fmpq

from fltheory.algorithms import FedAU, FedAvg, WeightedFedAvg
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines import Setting
from fltheory.engines.affine.numbers import Balls
from fltheory.engines.clients.analytic_clients import QuadraticClients, Silence
from fltheory.engines.enclosure.exact_setting import exact_setting
from fltheory.engines.fedau_weights.dependent_weight_error import recorded_weights
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset
from fltheory.problems import LogCoshProblem, QuadraticProblem
from fltheory.theorems.fedau.setting import F_0, FedAUSetting, G_in_run, Q, W, delta, e_max, tau
from tests.engines.fedau_weights.test_weight_error import over_all_paths

P = (0.8, 0.3)
PROBLEM = QuadraticProblem(np.diag([1.0, 0.4]), [[1.0, -2.0], [-3.0, 0.5]])


def fedau(participation, rounds: int, cutoff: float = 3, **changes) -> FedAUSetting:
    arguments = {
        "algorithm": FedAU(0.1, 2, cutoff=cutoff, server_lr=1.5),
        "problem": PROBLEM,
        "participation": participation,
        "rounds": rounds,
        "x0": [2.0, 1.0],
    }
    return FedAUSetting(Setting(**{**arguments, **changes}))


@pytest.mark.parametrize("cutoff", [1, 2, 3, math.inf])
@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
@pytest.mark.parametrize("participation", [Bernoulli(P), MarkovOnOff(P, 0.5), Bernoulli([1, 0.4])])
def test_what_may_happen_over_every_history(participation, rounds: int, cutoff: float) -> None:
    p = participation.marginals
    squares, errors = [], []
    options = [(0, 1) if each < 1 else (1,) for each in p]
    for history in product(product(*options), repeat=max(rounds - 1, 1)):
        weights = recorded_weights(np.array(history, bool), cutoff, np.ones(len(p)))[:, :rounds]
        squares.append((p[:, None] * weights**2).mean(axis=0).max())
        errors.append(((p[:, None] * weights - 1) ** 2).mean(axis=0).max())
    of = fedau(participation, rounds, cutoff)
    assert of.largest_square == pytest.approx(max(squares), rel=1e-12)
    assert of.largest_error == pytest.approx(max(errors), rel=1e-12)


def test_a_client_that_comes_back_at_once_has_short_intervals() -> None:
    """Its correlation is -(1-p)/p: after an absence it is there for sure."""
    of = fedau(MarkovOnOff([0.8, 0.3], [-0.25, 0.0]), 6, 5)
    assert of.largest_weights.ravel().tolist() == [2.0, 5.0]


def test_cycles_leave_nothing_to_chance() -> None:
    cycles = Cyclic([3, 4], [1, 2], active=[1, 2])
    of = fedau(cycles, 9, 2)
    history = [next(iter(mask)) for mask, _ in zip(cycles.masks(None, 1), range(9), strict=False)]
    weights = recorded_weights(np.array(history), 2, np.ones(2))[:, :9]
    p = np.array([1 / 3, 1 / 2])[:, None]
    assert of.largest_square == pytest.approx((p * weights**2).mean(axis=0).max())
    assert of.largest_error == pytest.approx(((p * weights - 1) ** 2).mean(axis=0).max())
    assert of.mean_error == pytest.approx(((p * weights - 1) ** 2).mean())


def test_constant_weights() -> None:
    of = fedau(Bernoulli(P), 7, algorithm=WeightedFedAvg((0.75, 1.5), 0.1, 2))
    assert of.constant_weights.tolist() == [1.5, 3.0]
    assert of.total_weight == pytest.approx(0.8 * 1.5 + 0.3 * 3)
    assert of.largest_square == pytest.approx((0.8 * 1.5**2 + 0.3 * 3**2) / 2)
    expected = ((0.8 * 1.5 - 1) ** 2 + (0.3 * 3 - 1) ** 2) / 2
    assert (of.mean_error, of.largest_error) == pytest.approx((expected, expected))
    shares = np.array([1.2, 0.9]) / 2.1
    np.testing.assert_allclose(of.weighted_problem.alpha, shares)


@pytest.mark.parametrize("server_lr", [0.5, 1.5, 12.0])
@pytest.mark.parametrize("client_lr", [0.1, 0.9])
def test_gradients_stay_below_their_bound_on_every_history(
    client_lr: float, server_lr: float
) -> None:
    algorithm = FedAU(client_lr, 2, cutoff=3, server_lr=server_lr)
    of = fedau(Bernoulli(P), 4, algorithm=algorithm)
    histories = np.array(list(product(product((0, 1), repeat=2), repeat=4)), dtype=bool)
    state = algorithm.init(np.tile([2.0, 1.0], (len(histories), 1)), 2)
    clients = QuadraticClients(PROBLEM, Silence())
    largest = 0.0
    for t in range(4):
        largest = max(largest, float(np.linalg.norm(PROBLEM.gradient(state["x"]), axis=1).max()))
        state = algorithm.round(state, clients, histories[:, t], CLIENTS)
    assert largest <= of.largest_gradient_of_run * (1 + 1e-12)
    if server_lr == 0.5:
        assert of.largest_gradient_of_run < 4 * largest
    assert of.largest_gradient == math.inf


def test_bounded_and_unbounded_gradients() -> None:
    bowl = LogCoshProblem([[0.5], [-0.5]], curvature=1.0, width=2.0, x_star=[0.0], sigma=1.0)
    of = fedau(Bernoulli(P), 4, problem=bowl, x0=[1.0])
    assert of.largest_gradient == of.largest_gradient_of_run == 2.0
    noisy = QuadraticProblem(np.diag([1.0, 0.4]), PROBLEM.optima, sigma=0.1)
    assert fedau(Bernoulli(P), 4, problem=noisy).largest_gradient_of_run == math.inf
    own = QuadraticProblem([np.eye(2), 2 * np.eye(2)], PROBLEM.optima)
    assert fedau(Bernoulli(P), 4, problem=own).largest_gradient_of_run == math.inf


def test_dependence_is_how_far_the_past_moves_a_probability() -> None:
    assert tau.on(fedau(Bernoulli(P), 3).setting) == 0.0
    chains = MarkovOnOff(P, 0.5)
    moved = [np.abs(step - chains.marginals) for step in (chains.stays, chains.comes)]
    assert tau.on(fedau(chains, 3).setting) == pytest.approx(np.max(moved))
    assert tau.on(fedau(Cyclic([4, 1], [0, 0], active=[1, 1]), 3).setting) == 0.75
    assert tau.on(fedau(MarkovOnOff([1.0, 0.5], [0.9, 0.0]), 3).setting) == 0.0


def test_the_limit_of_cycles_is_taken_over_a_cycle() -> None:
    of = fedau(Cyclic([2, 3], [0, 1]), 3)
    trace = of.participation_with_limit
    np.testing.assert_allclose(trace.marginals, of.p)
    assert trace.n_rounds == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": FedAvg(0.1, 2)}, "algorithm must be FedAU or WeightedFedAvg"),
        ({"participation": UniformSubset(2, 1)}, "participation must be Bernoulli, MarkovOnOff or"),
        (
            {"participation": MarkovOnOff(P, 0.5, start=[0, 1])},
            "start in its stationary distribution",
        ),
        ({"participation": MarkovOnOff([0.0, 0.5], 0.0)}, "positive probability for every client"),
        (
            {"problem": QuadraticProblem([[1.0]], [[0.0], [1.0]], target_weights=[0.3, 0.7])},
            "target_weights must be equal",
        ),
    ],
)
def test_other_settings_are_refused(changes, message: str) -> None:
    changes = {"x0": [0.0]} | changes if "problem" in changes else changes
    with pytest.raises(ValueError, match=message):
        fedau(**{"participation": Bernoulli(P), "rounds": 3, **changes})


def test_what_only_one_kind_of_weights_has() -> None:
    with pytest.raises(ValueError, match="algorithm must be WeightedFedAvg to have constant"):
        _ = fedau(Bernoulli(P), 3).constant_weights
    constant = fedau(Bernoulli(P), 3, algorithm=WeightedFedAvg((1.0, 1.0), 0.1, 1))
    with pytest.raises(ValueError, match="algorithm must be FedAU to have a cut-off"):
        _ = constant.cutoff
    bowl = LogCoshProblem([[0.5], [-0.5]], curvature=1.0, width=2.0, x_star=[0.0])
    with pytest.raises(ValueError, match="problem must be a QuadraticProblem for Theorem 1"):
        _ = fedau(
            Bernoulli(P), 3, problem=bowl, x0=[1.0], algorithm=WeightedFedAvg((1, 1), 0.1, 1)
        ).weighted_problem


def test_constants_in_exact_numbers_are_fractions_by_hand() -> None:
    """``p = 9/10, 3/10``, K = 3, six rounds: weights of 3 at most; W over all paths."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    given = Setting(FedAU(0.1, 2, cutoff=3), problem, Bernoulli([0.9, 0.3]), 6, [3.0])
    probabilities = Fraction(9, 10), Fraction(3, 10)
    mean_error = sum(over_all_paths(p, 3, t) for p in probabilities for t in range(6)) / 12
    with Balls(128).in_use():
        twin = exact_setting(given)
        exact = {one: one.on(twin) for one in (Q, e_max, F_0, delta, G_in_run, W)}
        for symbol, truth in {
            Q: sum(9 * p for p in probabilities) / 2,
            # The rare client's weight of 1 is farther off than that of 3.
            e_max: ((3 * Fraction(9, 10) - 1) ** 2 + (Fraction(3, 10) - 1) ** 2) / 2,
            F_0: Fraction(9, 2),
            delta: Fraction(1),
            # A coordinate stays within its start, 3 away from x* = 0, as steps are small.
            G_in_run: Fraction(3),
        }.items():
            assert exact[symbol].value == fmpq(truth.numerator, truth.denominator)
        mean = exact[W].value
    with Balls(1000).in_use():
        assert mean.contains(fmpq(mean_error.numerator, mean_error.denominator))
        assert float(mean.rad()) < 1e-35
    for symbol, value in exact.items():
        assert float(value) == pytest.approx(float(symbol.on(given)), rel=1e-12), symbol
