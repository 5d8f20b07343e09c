"""WeightedFedAvg: raw weights by hand and against every participant set, and bad input."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from fltheory.algorithms import FedAvg, WeightedFedAvg
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines import Setting, exact
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.participation import MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem


def test_a_round_by_hand() -> None:
    """K = 1: x - server_lr lr (q_0 g_0 + q_2 g_2), with nothing divided out."""
    problem = QuadraticProblem([[1.0]], [[-2.0], [100.0], [4.0]])
    clients = SteppedClients(problem, Silence())
    who = np.array([[True, False, True], [False, False, True], [False, False, False]])
    algorithm = WeightedFedAvg((0.25, 7.0, 3.0), 0.5, 1, server_lr=2.0)
    state = algorithm.round({"x": np.full((3, 1), 3.0)}, clients, who, CLIENTS)
    expected = [[3.0 - (0.25 * 5.0 - 3.0 * 1.0)], [3.0 + 3.0 * 1.0], [3.0]]
    np.testing.assert_allclose(state["x"], expected, rtol=1e-15)


def test_agrees_with_every_path_of_independent_clients() -> None:
    """Two clients, each there or not, R = 3, K = 1, in rational numbers."""
    pi, q, lr = (Fraction(1, 2), Fraction(3, 4)), (Fraction(1, 2), Fraction(2)), Fraction(1, 4)
    h, c, variance = (Fraction(1), Fraction(3, 2)), (Fraction(-1), Fraction(2)), Fraction(1, 9)
    x_star = (h[0] * c[0] + h[1] * c[1]) / (h[0] + h[1])
    expected = [Fraction(0)] * 4

    def visit(mean: Fraction, spread: Fraction, round_: int, chance: Fraction) -> None:
        expected[round_] += chance * ((mean - x_star) ** 2 + spread)
        if round_ == 3:
            return
        for present in product((0, 1), repeat=2):
            weights = [q[k] * present[k] for k in range(2)]
            slope = 1 - lr * sum(w * b for w, b in zip(weights, h, strict=True))
            pull = lr * sum(weights[k] * h[k] * c[k] for k in range(2))
            noise = lr**2 * variance * sum(w**2 for w in weights)
            p = chance
            for k in range(2):
                p *= pi[k] if present[k] else 1 - pi[k]
            visit(slope * mean + pull, slope**2 * spread + noise, round_ + 1, p)

    visit(Fraction(3), Fraction(0), 0, Fraction(1))
    problem = QuadraticProblem([[[float(b)]] for b in h], [[float(b)] for b in c], sigma=1 / 3)
    algorithm = WeightedFedAvg(tuple(float(w) for w in q), float(lr), 1)
    chains = MarkovOnOff([float(p) for p in pi], 0.0)
    run = exact(Setting(algorithm, problem, chains, 3, [3.0]))
    np.testing.assert_allclose(
        run.squared_distance, np.array(expected, dtype=float), rtol=1e-12, atol=0
    )


def test_equal_weights_of_a_fixed_number_are_the_average() -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [0.5], [2.0], [4.0]], sigma=0.5)
    arguments = (problem, UniformSubset(4, 2), 7, [3.0])
    weighted = exact(Setting(WeightedFedAvg((0.5,) * 4, 0.1, 3), *arguments))
    plain = exact(Setting(FedAvg(0.1, 3), *arguments))
    np.testing.assert_allclose(weighted.squared_distance, plain.squared_distance, rtol=1e-12)


def test_contract() -> None:
    algorithm = WeightedFedAvg((1.0, 2.0), 0.1, 2)
    assert algorithm.branches == ((CLIENTS, 1.0),)
    assert set(algorithm.init(np.ones((2, 3)), 2)) == {"x"}
    assert WeightedFedAvg(np.array([1.0, 2.0]), 0.1, 2) == algorithm
    with pytest.raises(ValueError, match=r"one entry for each of 3 clients, got 2"):
        algorithm.init(np.ones((2, 3)), 3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"aggregation_weights": ()}, r"aggregation_weights must have shape \(N,\), got \(0,\)"),
        ({"aggregation_weights": (1.0, -0.5)}, r"must not be negative .* got \(1\.0, -0\.5\)"),
        ({"aggregation_weights": (0.0, 0.0)}, r"and not all zero, got \(0\.0, 0\.0\)"),
        ({"aggregation_weights": (1.0, np.nan)}, r"aggregation_weights must be finite, got nan"),
        ({"client_lr": 0.0}, r"client_lr must be a finite number above 0, got 0\.0"),
        ({"local_steps": 0}, r"local_steps must be a whole number of at least 1, got 0"),
        ({"server_lr": np.inf}, r"server_lr must be a finite number above 0, got inf"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    arguments = {"aggregation_weights": (1.0, 2.0), "client_lr": 0.1, "local_steps": 2}
    with pytest.raises(ValueError, match=message):
        WeightedFedAvg(**(arguments | changed))


def test_pulls_at_the_limit_by_hand() -> None:
    """``pi_i q_i`` times what the client moves by, 3 and 5: as often as the client is there."""
    algorithm = WeightedFedAvg((2.0, 3.0), 0.1, 1)
    found = algorithm.limit_pulls(
        MarkovOnOff([0.25, 0.5], 0.2), lambda steps, lr: np.array([3.0, 5.0])
    )
    assert found.tolist() == [1.5, 7.5]
