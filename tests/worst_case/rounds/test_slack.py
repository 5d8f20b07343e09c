"""The slack: the noise's block by a second derivation, and exact moments below every bound."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fltheory.algorithms import Safari
from fltheory.engines import Setting, exact
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.worst_case import ClientClass
from fltheory.worst_case.rounds.bound import best_bound_of, best_speed_of
from fltheory.worst_case.rounds.one_round import OneRound
from fltheory.worst_case.rounds.slack import slack_of
from tests.drawn import in_turn
from tests.worst_case.full_program import least_heterogeneity
from tests.worst_case.settings import a_round


@pytest.mark.parametrize(
    ("played", "kind"),
    in_turn(
        [
            a_round(2, 0, 1, 2, "1", "1/4", "0"),
            a_round(2, 1, 1, 3, "1/2", "1/5", "1/4"),
            a_round(3, 1, 2, 2, "1/2", "1/5", "1/4"),
            a_round(3, 0, 2, 3, "2/3", "1/8", "1/4"),
        ],
        ["optimum", "everywhere"],
        of=2,
    ),
)
def test_noise_in_the_reduced_program_is_the_full_ones(played: OneRound, kind: str) -> None:
    """There all clients have fluctuations of their own, and the last step's noise is a vector."""
    clients = ClientClass(1, "0.2", kind, sigma=1)  # type: ignore[arg-type]
    rate = Fraction(best_speed_of(played, clients)).limit_denominator(10**6) + Fraction(1, 20)
    bound = best_bound_of(played, clients, rate)
    full = least_heterogeneity(played, clients, rate)
    assert bound.residual == pytest.approx(full, rel=2e-6)


@pytest.mark.parametrize("seed", range(4))
def test_no_bound_is_below_the_moments_of_noisy_quadratics(seed: int) -> None:
    rng = np.random.default_rng(seed)
    played = a_round(
        6, 2, 2, int(rng.integers(2, 6)), "1/2", repr(round(rng.uniform(0.02, 0.2), 3)), "1/10"
    )
    clients = ClientClass(1, "0.1", "everywhere", sigma=2, server_sigma=1)
    bound = best_bound_of(played, clients)
    for _ in range(5):
        curvatures = rng.uniform(0.1, 1, size=3)
        tilts = rng.normal(size=(6, 3))
        tilts -= tilts.mean(axis=0)
        tilts /= np.linalg.norm(tilts, axis=1).max()
        setting = Setting(
            Safari(0.5, float(played.client_lr), 0.1, played.local_steps),
            QuadraticProblem(np.diag(curvatures), -tilts / curvatures, sigma=2.0, server_sigma=1.0),
            UniformSubset(6, 2, excluded=(4, 5)),
            1,
            rng.normal(size=3) * 10 ** rng.uniform(-2, 1),
        )
        distance = exact(setting).squared_distance
        assert distance[1] <= bound.after(1, float(np.sqrt(distance[0]))) * (1 + 1e-9)


def test_the_slacks_size_does_not_depend_on_the_number_of_clients() -> None:
    """K = 5 with excluded clients: blocks of 8, 6 and 2, and 8 for the fluctuations."""
    played = a_round(10, 2)
    for n_clients in (10, 10**6):
        slack = slack_of(replace(played, n_clients=n_clients), ClientClass(1, "0.1"))
        assert slack.sizes == (8, 6, 2, 0)
    noisy = slack_of(played, ClientClass(1, "0.1", sigma=1))
    assert noisy.sizes == (8, 6, 2, 8)


def test_groups_of_one_client_have_no_differences() -> None:
    assert slack_of(a_round(2, 1, 1), ClientClass(1, "0.1")).sizes == (8, 0, 0, 0)
