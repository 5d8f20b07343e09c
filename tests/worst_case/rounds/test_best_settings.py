"""The best settings: against closed forms, a grid, and the exact moments of problems."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fltheory.algorithms import Safari
from fltheory.engines import Setting, exact
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.worst_case import ClientClass, best_settings
from fltheory.worst_case.rounds.best_settings import BestSettings, Costs
from fltheory.worst_case.rounds.bound import best_bound_of
from tests.drawn import a_tenth
from tests.worst_case.settings import a_round

CLIENTS = ClientClass(1, "0.1")
NOISY = ClientClass(1, "0.1", sigma=1, server_sigma=2, dissimilarity="1/2")


@pytest.fixture(scope="module")
def found() -> BestSettings:
    return best_settings(
        NOISY,
        communication=5,
        local_step="1/10",
        server_sample=2,
        eligible=5,
        excluded=1,
        participants=2,
        budget=100,
        distance=8,
        local_steps=[2],
        q=["1/2"],
    )


def test_the_fastest_step_of_gradient_descent() -> None:
    """At 2/(L + mu) its rate is ((L - mu)/(L + mu))^2; a round costs 3, so its cube root."""
    clients = ClientClass(2, "0.2")
    found = best_settings(
        clients,
        communication=1,
        local_step="1/2",
        eligible=4,
        participants=4,
        local_steps=[1],
        q=[1],
    ).best
    assert float(found.round.client_lr) == pytest.approx(2 / 2.2, rel=0.01)
    assert found.rate is not None
    assert (1.8 / 2.2) ** 2 <= float(found.rate) <= (1.8 / 2.2) ** 2 + 0.005
    assert found.cost == 3
    assert found.rate_per_cost == pytest.approx(float(found.rate) ** (1 / 3))


def test_the_server_alone_has_the_step_that_its_noise_wants() -> None:
    """(1 - eta mu)^2R D^2 + eta^2 sigma_s^2 (1 + ..), minimised here by itself."""
    budget, distance, sigma = 60, 5.0, 2.0
    found = best_settings(
        ClientClass(1, "0.1", server_sigma=2),
        communication=9,
        server_sample=2,
        eligible=3,
        participants=1,
        budget=budget,
        distance=5,
        q=[0],
    ).best

    def error(logarithm: float) -> float:
        eta = math.exp(logarithm)
        rate = max(abs(1 - 0.1 * eta), abs(1 - eta)) ** 2
        power = rate ** (budget // 2)
        return power * distance**2 + eta**2 * sigma**2 * (1 - power) / (1 - rate)

    least = minimize_scalar(error, bounds=(-6.0, 0.0), method="bounded").fun
    assert found.rounds == 30
    assert least * (1 - 1e-9) <= found.error <= least * 1.005


def test_the_search_is_no_worse_than_a_grid(found: BestSettings) -> None:
    best = math.inf
    for step in ("1/30", "1/10"):
        for other in ("1/10", "1/5", "2/5"):
            played = a_round(6, 1, 2, 2, "1/2", step, other)
            for rate in ("0.97", "0.99"):
                try:
                    bound = best_bound_of(played, NOISY, Fraction(rate))
                except ArithmeticError:
                    continue
                best = min(best, bound.after(found.best.rounds or 0, 8.0))
    assert found.best.error <= best * 1.001


def test_the_error_is_the_certificates_bound_round_after_round(found: BestSettings) -> None:
    item = found.best
    assert item.certificate is not None
    item.certificate.verify()
    assert item.cost == Fraction(1, 2) * (5 + 2 * 2 * Fraction(1, 10)) + Fraction(1, 2) * 2
    assert item.rounds == int(100 / item.cost)
    bound = item.certificate.proof.bound
    error = Fraction(64)
    for _ in range(item.rounds):
        error = bound["rate"][0] * error + (
            bound["heterogeneity"][0] / 4 + bound["noise"][0] + 4 * bound["server_noise"][0]
        )
    assert float(error) <= item.error <= float(error) * (1 + 1e-12)


@pytest.mark.parametrize("seed", a_tenth(range(3)))
def test_no_quadratic_clients_have_a_larger_error(found: BestSettings, seed: int) -> None:
    rng = np.random.default_rng(seed)
    item = found.best
    algorithm = Safari(0.5, float(item.round.client_lr), float(item.round.assist_lr), 2)
    for _ in range(10):
        curvatures = rng.uniform(0.1, 1, size=2)
        tilts = rng.normal(size=(6, 2))
        tilts -= tilts.mean(axis=0)
        tilts /= 2 * np.sqrt((tilts**2).sum() / 6)
        way = rng.normal(size=2)
        setting = Setting(
            algorithm,
            QuadraticProblem(np.diag(curvatures), -tilts / curvatures, sigma=1.0, server_sigma=2.0),
            UniformSubset(6, 2, excluded=(5,)),
            item.rounds or 0,
            8 * way / np.linalg.norm(way),
        )
        assert exact(setting).squared_distance[-1] <= item.error


@pytest.mark.parametrize(("communication", "local_step", "chosen"), [(1, 0, 2), (0, "1/3", 1)])
def test_what_costs_more_is_done_less(communication: int, local_step: str, chosen: int) -> None:
    """Three rounds' budget: local steps are free, or all that there is to pay.

    Then K = 1 of everybody makes as many steps as K = 2, without any drift.
    """
    found = best_settings(
        CLIENTS,
        communication=communication,
        local_step=local_step,
        eligible=3,
        participants=3,
        local_steps=[1, 2],
        q=[1],
        budget=6,
        distance=10,
    )
    assert found.best.round.local_steps == chosen


def test_nothing_below_a_rate_of_one_is_nothing_proved() -> None:
    """Without strong convexity no rate is below 1."""
    with pytest.raises(ArithmeticError, match="none of the q and K tried has a rate below 1"):
        best_settings(
            ClientClass(1, 0),
            communication=1,
            eligible=3,
            participants=3,
            local_steps=[1],
            q=[1],
        )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"q": ["3/2"]}, "q must be at most 1, got 3/2"),
        ({"q": []}, "local_steps and q must not be empty"),
        ({"local_steps": [0]}, "local_steps must be"),
        ({"participants": 4}, "participants must be at most the 3 eligible, got 4"),
        ({"budget": 10}, "budget and distance must both be given"),
        ({"budget": 0, "distance": 1}, "budget must be above 0"),
        ({"budget": 10**9, "distance": 1}, "budget must pay for at most 100000 rounds"),
        ({"q": [0]}, "costs must be above 0 in every round tried, got 0 at q = 0"),
    ],
)
def test_bad_input_is_one_line(changed: dict[str, object], message: str) -> None:
    arguments = {"eligible": 3, "participants": 2, "q": [1], "local_steps": [1]} | changed
    with pytest.raises(ValueError, match=message):
        best_settings(CLIENTS, communication=1, **arguments)  # type: ignore[arg-type]


def test_costs_are_fractions() -> None:
    assert Costs(communication=1, local_step=0.1).local_step == Fraction(1, 10)
    with pytest.raises(ValueError, match="server_sample must be a fraction at least 0"):
        Costs(communication=1, server_sample="dear")
    with pytest.raises(ValueError, match="communication must be at least 0, got -1"):
        Costs(communication=-1)
