"""Quadratic witnesses: their numbers are the exact engine's, and they break what they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fltheory.engines import exact
from fltheory.worst_case import ClientClass
from fltheory.worst_case.audits.quadratic_witness import RoundsClaim, quadratic_witness
from tests.worst_case.settings import a_round

CLIENTS = ClientClass(1, "0.1", "everywhere")


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize(
    "played",
    [
        a_round(5, 1, 2, 3),
        a_round(6, 0, 3, 2, "1", "1/10", "0", "3/2"),
        a_round(10, 5, 1, 2),
        a_round(4, 0, 1, 1),
        a_round(2, 1, 1, 2),
    ],
)
def test_its_truth_is_the_exact_engines(played, rounds: int) -> None:  # type: ignore[no-untyped-def]
    found = quadratic_witness(
        played, CLIENTS, iter([RoundsClaim(rounds, Fraction(999, 1000), Fraction(1, 10**6))])
    )
    assert found is not None
    setting = found.setting
    distance = exact(setting).squared_distance
    assert distance[-1] == pytest.approx(float(found.truth), rel=1e-9)
    level = setting.problem.sigma_G
    claimed = 0.999 * distance[0] + 1e-6 * level**2
    assert float(found.bound) == pytest.approx(claimed, rel=1e-9)
    assert found.truth > found.bound
    assert np.abs(setting.problem.x_star).max() < 1e-12
    assert 0.1 <= setting.problem.mu <= setting.problem.L <= 1
    assert len(found.lines) == 1 + played.n_clients


def test_a_rate_that_is_too_fast_is_broken_from_afar() -> None:
    claim = RoundsClaim(1, Fraction(1, 2), Fraction(10**6))
    found = quadratic_witness(a_round(), CLIENTS, iter([claim]))
    assert found is not None
    assert found.truth > found.bound


def test_nothing_is_found_against_what_is_true() -> None:
    claim = RoundsClaim(1, Fraction(999, 1000), Fraction(100))
    assert quadratic_witness(a_round(10, 2), CLIENTS, iter([claim])) is None
    assert quadratic_witness(a_round().for_every_n_clients(), CLIENTS, iter([claim])) is None
