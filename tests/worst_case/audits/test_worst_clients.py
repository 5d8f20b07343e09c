"""The worst clients: their value is the program's, and the algorithm's own code finds it too."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fltheory.problems.piecewise_quadratic_problem import PiecewiseQuadraticProblem
from fltheory.worst_case import ClientClass
from fltheory.worst_case.audits.witness import played, worst_clients
from fltheory.worst_case.rounds.bound import best_bound_of, best_speed_of
from fltheory.worst_case.rounds.one_round import OneRound
from tests.worst_case.settings import a_round

CLIENTS = ClientClass(2, "0.2")
ROUNDS = {
    "excluded clients": a_round(4, 1, 2, 2, "1/2", "1/10", "1/10"),
    "an odd number of clients": a_round(3, 0, 1, 3, "1", "1/6", "0"),
    "ten clients": a_round(10, 2, 4, 5, "1/3", "1/80", "1/40"),
    "one step": a_round(5, 2, 3, 1, "3/4", "1/4", "1/4"),
    "everybody": a_round(6, 0, 6, 4, "1", "1/6", "0"),
    "a server's factor": a_round(4, 0, 2, 2, "1", "1/6", "0", "3/2"),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_the_worst_clients_attain_the_bound(name: str) -> None:
    a_setting = ROUNDS[name]
    least = best_speed_of(a_setting, CLIENTS)
    rate = Fraction(least).limit_denominator(10**6) + Fraction(1, 500)
    bound = best_bound_of(a_setting, CLIENTS, rate)
    worst = worst_clients(bound)
    value = float(rate * worst.before) + bound.heterogeneity * float(worst.dissimilarity)
    assert float(worst.after) == pytest.approx(value, rel=1e-6)
    assert worst.run() == pytest.approx(float(worst.after), rel=1e-8)
    # So that a bound a little below is refuted, in fractions.
    lower = Fraction(bound.heterogeneity) * Fraction(98, 100)
    assert worst.excess(rate, lower) > 0
    assert worst.excess(rate, Fraction(bound.heterogeneity) * Fraction(102, 100)) < 0


def test_the_worst_clients_are_of_the_class() -> None:
    """Gradients in fractions are mu-strongly monotone and co-coercive, and those at x* cancel."""
    rate = Fraction(best_speed_of(ROUNDS["excluded clients"], CLIENTS)) + Fraction(1, 500)
    problem = worst_clients(best_bound_of(ROUNDS["excluded clients"], CLIENTS, rate)).problem
    rng, L, mu = np.random.default_rng(0), Fraction(2), Fraction(1, 5)
    at = np.full((problem.n_clients, problem.dim), Fraction(0), dtype=object)
    assert not any(problem.client_gradients(at, np.arange(problem.n_clients)).sum(axis=0))
    for _ in range(20):
        pair = np.array(
            [[Fraction(int(v), 8) for v in rng.integers(-20, 21, problem.dim)] for _ in range(2)]
        )
        client = np.full(2, rng.integers(problem.n_clients))
        gradients = problem.client_gradients(pair, client)
        g, x = gradients[0] - gradients[1], pair[0] - pair[1]
        assert (1 + mu / L) * (g @ x) >= g @ g / L + mu * (x @ x)


def test_sampling_by_pair_inclusions_is_all_sets_enumerated() -> None:
    rng = np.random.default_rng(1)
    problem = PiecewiseQuadraticProblem(
        rng.normal(size=(5, 3, 2)).round(2), rng.normal(size=(5, 3)).round(2), L=2, mu=0.2
    )
    a_setting = a_round(5, 1, 2, 3, "1/4", "1/8", "1/5")
    worst = played(problem, a_setting, np.array([1.5, -0.5]))
    assert worst.run() == pytest.approx(float(worst.after), rel=1e-12)


def test_lines_are_enough_to_build_it_again() -> None:
    rate = Fraction(best_speed_of(ROUNDS["excluded clients"], CLIENTS)) + Fraction(1, 500)
    worst = worst_clients(best_bound_of(ROUNDS["excluded clients"], CLIENTS, rate))
    assert worst.lines[0].startswith("L = 2, mu = 0.2, 4 clients in dimension")
    assert len(worst.lines) == 1 + 4


@pytest.mark.parametrize(
    ("clients", "a_setting", "message"),
    [
        (ClientClass(1, "0.1", "everywhere"), ROUNDS["everybody"], "heterogeneity at the optimum"),
        (ClientClass(1, "0.1", sigma=1), ROUNDS["everybody"], "and no noise"),
        (CLIENTS, replace(a_round(), n_clients=1000), "n_clients must be at most 50"),
        (CLIENTS, a_round().for_every_n_clients(), "n_clients must be at most 50"),
    ],
)
def test_where_there_is_no_witness_it_says_why(
    clients: ClientClass, a_setting: OneRound, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        worst_clients(best_bound_of(a_setting, clients))
