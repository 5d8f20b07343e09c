"""Every run there can be, against the moment recursion and against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import FedAU, FedAvg, Harmonic, Safari, Scheduled
from fltheory.engines import conditional, enumerated, exact
from fltheory.participation import Bernoulli, MarkovOnOff, UniformSubset
from fltheory.problems import Problem, QuadraticProblem, nonconvex

PAIR = QuadraticProblem([[1.0]], [[-1.0], [1.0]])


@pytest.mark.parametrize(
    ("algorithm", "participation"),
    [
        (Safari(0.3, 0.2, 0.1, 2), UniformSubset(2, 1)),
        (FedAvg(0.2, 2), MarkovOnOff([0.4, 0.7], 0.5)),
        (Scheduled(FedAvg(0.2, 2), Harmonic(0.5, offset=2.0)), Bernoulli([0.4, 0.7])),
    ],
)
def test_moments_are_those_of_the_recursion(algorithm, participation) -> None:
    found = enumerated(algorithm, PAIR, participation, 5, [2.0])
    known = exact(algorithm, PAIR, participation, 5, [2.0])
    for name in ("squared_distance", "squared_gradient", "excess_loss"):
        np.testing.assert_allclose(found[name], known[name], rtol=1e-12)


def test_weights_may_depend_on_the_past() -> None:
    fedau = FedAU(0.3, 2, cutoff=2)
    found = enumerated(fedau, PAIR, Bernoulli([0.4, 0.7]), 4, [2.0])
    known = conditional(fedau, PAIR, Bernoulli([0.4, 0.7]), 4, [2.0])
    np.testing.assert_allclose(found.squared_distance, known.squared_distance, rtol=1e-12)


def test_one_round_on_losses_that_are_not_convex_by_hand() -> None:
    problem: Problem = nonconvex(2, 2, L=1.0, sigma_G=0.3, sigma=0.0, server_sigma=0.0)
    x0, q = np.array([2.0, -1.0]), 0.25
    safari = Safari(q, client_lr=0.2, assist_lr=0.1, local_steps=1)
    found = enumerated(safari, problem, UniformSubset(2, 1), 1, x0)
    own = problem.client_gradients(np.tile(x0, (2, 1)), np.arange(2))
    server = x0 - 0.1 * problem.gradient(x0)
    ends = [(q / 2, x0 - 0.2 * own[0]), (q / 2, x0 - 0.2 * own[1]), (1 - q, server)]
    expected = sum(chance * float((problem.gradient(x) ** 2).sum()) for chance, x in ends)
    assert found.squared_gradient[1] == pytest.approx(expected, rel=1e-13)


def test_what_cannot_be_enumerated_is_refused() -> None:
    noisy = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=0.5)
    with pytest.raises(ValueError, match=r"problem must have exact gradients, got sigma = 0\.5"):
        enumerated(FedAvg(0.2, 1), noisy, UniformSubset(2, 1), 2, [1.0])
    with pytest.raises(ValueError, match="rounds must leave at most 131072 runs, got 30"):
        enumerated(Safari(0.3, 0.2, 0.1, 1), PAIR, UniformSubset(2, 2), 30, [1.0])
