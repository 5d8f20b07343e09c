"""The best bound: against closed forms, the full program, and another tool."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fltheory.algorithms import FedAvg, Safari
from fltheory.participation import UniformSubset
from fltheory.worst_case import ClientClass, best_bound
from fltheory.worst_case.rounds.bound import Bound, best_bound_of, best_speed_of
from fltheory.worst_case.rounds.one_round import OneRound
from fltheory.worst_case.rounds.program import Program, Solution
from tests.drawn import a_tenth, in_turn
from tests.worst_case.full_program import least_heterogeneity
from tests.worst_case.settings import a_round


@pytest.mark.parametrize("seed", a_tenth(range(6)))
def test_one_step_of_everybody_is_gradient_descent(seed: int) -> None:
    """Its rate is max(|1 - eta L|, |1 - eta mu|)^2, whatever the clients' differences."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        L = 10 ** rng.uniform(-3, 3)
        mu = L * 10 ** rng.uniform(-4, -0.01)
        step = rng.uniform(0.01, 1.99) / L
        everybody = UniformSubset(5, 5)
        bound = best_bound(FedAvg(step, 1), everybody, ClientClass(L, mu))
        rate = max(abs(1 - step * L), abs(1 - step * mu)) ** 2
        assert bound.rate == pytest.approx(rate, abs=1e-9)
        assert bound.heterogeneity * L**2 == pytest.approx(0, abs=1e-6)
        assert best_speed_of(
            OneRound.of(FedAvg(step, 1), everybody), ClientClass(L, mu)
        ) == pytest.approx(rate, abs=1e-9)


def test_a_step_too_long_has_a_rate_above_one() -> None:
    rate = best_speed_of(OneRound.of(FedAvg(2.5, 1), UniformSubset(2, 2)), ClientClass(1, "0.1"))
    assert rate == pytest.approx(2.25, abs=1e-9)
    bound = best_bound(FedAvg(2.5, 1), UniformSubset(2, 2), ClientClass(1, "0.1"))
    assert bound.rate == pytest.approx(2.25, rel=1e-5)
    assert bound.floor == float("inf")


def test_one_noisy_step_of_some_has_the_noise_of_their_mean() -> None:
    """K = 1: q eta^2 sigma^2/m, and (1 - q) eta_s^2 sigma_s^2 of the server."""
    algorithm = Safari(q=0.25, client_lr=0.1, assist_lr=0.2, local_steps=1)
    clients = ClientClass(1, "0.1", sigma=3, server_sigma=2)
    bound = best_bound(algorithm, UniformSubset(6, 2), clients)
    assert bound.noise == pytest.approx(0.25 * 0.01 / 2)
    assert bound.server_noise == pytest.approx(0.75 * 0.04)


@pytest.mark.parametrize(
    ("played", "kind"),
    in_turn(
        [
            a_round(2, 0, 1, 1, "1", "1/3", "0"),
            a_round(2, 1, 1, 3, "1/2", "1/5", "1/4"),
            a_round(3, 0, 2, 2, "3/4", "1/4", "1/4"),
            a_round(3, 1, 2, 4, "1/3", "1/10", "1/5"),
            a_round(4, 0, 2, 4, "1", "1/20", "0"),
            a_round(4, 2, 1, 3, "1/2", "1/20", "1/8"),
            a_round(4, 1, 3, 2, "1/2", "1/8", "1/8", "3/2"),
            a_round(4, 3, 1, 2, "2/3", "1/9", "1/10"),
        ],
        ["optimum", "everywhere"],
        of=2,
    ),
)
def test_the_reduced_program_has_the_full_ones_value(played: OneRound, kind: str) -> None:
    clients = ClientClass(1, "0.2", kind)  # type: ignore[arg-type]
    rate = Fraction(best_speed_of(played, clients)).limit_denominator(10**6) + Fraction(1, 50)
    bound = best_bound_of(played, clients, rate)
    full = least_heterogeneity(played, clients, rate)
    assert bound.heterogeneity == pytest.approx(full, rel=1e-6, abs=1e-7)


def test_units_do_not_matter() -> None:
    """Lengths in units a tenth as large: L the same, gradients and distances ten times."""
    played, clients = a_round(excluded=2), ClientClass(1, "0.1", sigma=1)
    bound = best_bound_of(played, clients, Fraction("0.995"))
    scaled = replace(played, client_lr=played.client_lr / 1000, assist_lr=played.assist_lr / 1000)
    other = best_bound_of(scaled, ClientClass(1000, 100, sigma=1), Fraction("0.995"))
    assert other.heterogeneity == pytest.approx(bound.heterogeneity / 1e6, rel=1e-6)
    assert other.noise == pytest.approx(bound.noise / 1e6, rel=1e-6)


def test_the_floor_is_least_among_rates() -> None:
    played, clients = a_round(excluded=2), ClientClass(1, "0.1")
    best = best_bound_of(played, clients)
    least = best_speed_of(played, clients)
    assert least < best.rate
    for rate in np.linspace(least, 1, 12)[1:-1]:
        other = best_bound_of(played, clients, Fraction(rate))
        assert other.floor >= best.floor * (1 - 1e-6)


def test_where_the_solver_stalls_it_is_shown_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in some 200 settings, which ones depends on the processor: here it gives up once."""
    played, clients = a_round(excluded=2), ClientClass(1, "0.1")
    expected = best_bound_of(played, clients)
    floor, calls = Program.least_floor, []

    def gives_up_once(program: Program, *prices: float) -> Solution | None:
        calls.append(prices)
        return None if len(calls) == 1 else floor(program, *prices)

    monkeypatch.setattr(Program, "least_floor", gives_up_once)
    found = best_bound_of(played, clients)
    assert len(calls) > 1
    assert found.floor == pytest.approx(expected.floor, rel=1e-5)


def test_more_clients_change_the_sampling_alone() -> None:
    clients = ClientClass(1, "0.1")
    values = [
        best_bound_of(replace(a_round(), n_clients=n), clients, Fraction("0.99")).heterogeneity
        for n in (4, 10, 1000, 10**6, None)
    ]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(values[-2], rel=1e-5)


def test_a_bound_after_rounds_is_its_iteration() -> None:
    bound = Bound(a_round(), ClientClass(1, "0.1", dissimilarity=2), 0.5, 0.25, 0.0, 0.0)
    value = 9.0
    for rounds in range(4):
        assert bound.after(rounds, 3.0) == pytest.approx(value)
        value = 0.5 * value + 0.25 * 4
    assert bound.after(10**6, 3.0) == pytest.approx(bound.floor) == pytest.approx(2.0)
    assert replace(bound, speed=1.0).after(3, 1.0) == pytest.approx(4.0)


def test_a_rate_below_the_least_has_no_bound() -> None:
    algorithm = FedAvg(0.1, 1)
    with pytest.raises(ArithmeticError, match=r"rate of 0\.5; the least rate is 0\.98"):
        best_bound(algorithm, UniformSubset(2, 2), ClientClass(1, "0.1"), rate="0.5")


def _pepit_value(played: OneRound, clients: ClientClass, rate: float) -> float:
    pepit = pytest.importorskip("PEPit", reason="PEPit is in the extra 'pepit' only")
    from itertools import combinations

    from PEPit.functions import SmoothStronglyConvexFunction

    problem = pepit.PEP()
    n_clients, eligible = int(played.n_clients or 0), int(played.n_eligible or 0)
    functions = [
        problem.declare_function(
            SmoothStronglyConvexFunction, mu=float(clients.mu), L=float(clients.L)
        )
        for _ in range(n_clients)
    ]
    mean = functions[0]
    for function in functions[1:]:
        mean = mean + function
    mean = mean / n_clients
    optimum = mean.stationary_point()
    start = problem.set_initial_point()
    problem.add_constraint(sum(f.gradient(optimum) ** 2 for f in functions) / n_clients <= 1)
    ends = []
    for function in functions[:eligible]:
        x = start
        for _ in range(played.local_steps):
            x = x - float(played.client_lr) * function.gradient(x)
        ends.append(x)
    sets = list(combinations(range(eligible), played.participants))
    drawn = 0
    for chosen in sets:
        end = ends[chosen[0]]
        for i in chosen[1:]:
            end = end + ends[i]
        drawn = drawn + (end / played.participants - optimum) ** 2
    q = float(played.q)
    server = (start - float(played.assist_lr) * mean.gradient(start) - optimum) ** 2
    problem.set_performance_metric(
        q * drawn / len(sets) + (1 - q) * server - rate * (start - optimum) ** 2
    )
    return float(problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "played",
    [
        a_round(3, 1, 1, 2, "1/2", "1/5", "1/4"),
        a_round(5, 0, 2, 2, "1", "1/6", "0"),
        a_round(10, 2, 8, 1, "1/2", "1/3", "1/3"),
    ],
)
def test_another_tool_finds_the_same(played: OneRound) -> None:
    clients = ClientClass(1, "0.2")
    rate = Fraction(best_speed_of(played, clients)).limit_denominator(10**6) + Fraction(1, 50)
    found = _pepit_value(played, clients, float(rate))
    bound = best_bound_of(played, clients, rate)
    assert bound.heterogeneity == pytest.approx(found, rel=1e-6, abs=1e-6)
