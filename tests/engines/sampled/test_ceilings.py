"""Ceilings of sampled quantities, and what they cut off, by numbers and by quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.engines.observables import Envelope
from fltheory.engines.sampled.ceilings import (
    _OF_THE_CEILING,
    Range,
    _least_open,
    _standard,
    _under,
    ranges,
)
from fltheory.engines.sampled.reach import Reach
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex

DISTANCE, NOISE, SPREAD = np.array([3.0, 2.0]), np.array([0.0, 0.5]), np.array([0.0, 0.4])
FAR = Reach(DISTANCE, NOISE, SPREAD)
E = 1e-3


def under(shape: Envelope, *, given_path: bool = False) -> Range:
    return _under(FAR, shape, 5, E / _OF_THE_CEILING, given_path)


def test_ceilings_of_distances_and_noise() -> None:
    """(2 ||x - x*|| + 1)^2: 49 without noise; else q = 2 x 2.5 + 1, and s = sqrt(2 ln 1000) 0.8."""
    found = under(Envelope(2.0, 1.0))
    q, spread = 6.0, 0.8
    reserve = math.sqrt(2 * math.log(1000)) * spread
    assert found.floor.tolist() == [0, 0]
    assert found.ceiling.tolist() == pytest.approx([49.0, (q + reserve) ** 2])
    assert found.beyond[0] == 0
    # The tail exp(-s^2/(2 l^2)) is e at s.
    assert math.exp(-(reserve**2) / (2 * spread**2)) == pytest.approx(E)
    grown = E * (q + reserve) ** 2 + 2 * spread**2 * E + 2 * q * E * spread**2 / reserve
    assert found.beyond[1] == pytest.approx(grown)
    tail = quad(lambda z: 2 * (q + z) * math.exp(-(z**2) / (2 * spread**2)), reserve, 20)[0]
    assert E * (q + reserve) ** 2 + tail <= found.beyond[1]
    assert found.beyond[1] <= 1.1 * (E * (q + reserve) ** 2 + tail)


def test_noise_of_the_quantity_itself() -> None:
    found = under(Envelope(2.0, 1.0, noise=0.5, spread=0.3))
    reserve = math.sqrt(2 * math.log(1000))
    assert found.ceiling.tolist() == pytest.approx(
        [(2 * 3 + 1.5 + 0.3 * reserve) ** 2, (2 * 2.5 + 1.5 + 1.1 * reserve) ** 2]
    )


def test_given_the_path_noise_is_in_the_mean() -> None:
    """A variance of d 0.4^2 beside the distance's square."""
    found = under(Envelope(2.0, 1.0), given_path=True)
    assert found.ceiling.tolist() == pytest.approx([49.0, (2 * math.sqrt(4 + 5 * 0.16) + 1) ** 2])
    assert found.beyond.tolist() == found.floor.tolist() == [0, 0]


def test_what_does_not_hang_on_the_model() -> None:
    found = under(Envelope(0.0, 3.0))
    assert found.ceiling.tolist() == [9, 9]
    assert found.beyond.tolist() == [0, 0]


def test_the_ceiling_that_leaves_least_open_counts_with_what_it_cuts_off() -> None:
    """A tenth of the ceiling and all beyond: 1 and 1.4, then 2 and 1.9."""
    zero = np.zeros(2)
    high = Range(zero, np.array([10.0, 20.0]), zero)
    low = Range(zero, np.array([4.0, 9.0]), np.array([1.0, 1.0]))
    found = _least_open([high, low], 0.1)
    assert found.ceiling.tolist() == [10.0, 9.0]
    assert found.beyond.tolist() == [0.0, 1.0]
    assert found.floor.tolist() == [0, 0]


def test_unknown_ranges_and_first_rounds() -> None:
    nothing = Range.unknown(3)
    assert nothing.floor.tolist() == [-math.inf] * 4
    assert nothing.ceiling.tolist() == [math.inf] * 4
    assert nothing.beyond.tolist() == [0] * 4
    cut = Range(np.arange(4.0), np.arange(4.0) + 1, np.arange(4.0) + 2).cut(1)
    assert [cut.floor.tolist(), cut.ceiling.tolist(), cut.beyond.tolist()] == [
        [0, 1], [1, 2], [2, 3],
    ]  # fmt: skip


def test_standard_quantities() -> None:
    """Gradients by L, or by F's own curvature and what is left; losses by sqrt(L/2)."""
    hessians = [np.diag([4.0, 1.0]), np.diag([2.0, 1.0])]
    problem = QuadraticProblem(hessians, [[1.0, 0.0], [0.0, 1.0]])
    setting = Setting(FedAvg(0.1, 1), problem, UniformSubset(2, 1), 1, [0.0, 0.0])
    found = _standard(setting)
    assert found["squared_distance"] == [Envelope(1.0, 0.0)]
    assert found["squared_gradient"][0] == Envelope(problem.L, 0.0)
    assert found["squared_gradient"][1].slope == pytest.approx(3.0)
    assert found["squared_gradient"][1].level == pytest.approx(0.0)
    assert found["excess_loss"] == [Envelope(math.sqrt(problem.L / 2), 0.0)]


def test_observables_without_an_envelope_are_unbounded() -> None:
    class Plain:
        name = "plain"

    problem = nonconvex(2, 2, L=1.0, sigma_G=0.5)
    setting = Setting(FedAvg(0.1, 1), problem, UniformSubset(2, 1), 2, [0.5, 0.0])
    found = ranges(setting, [Plain()], left_open=E / _OF_THE_CEILING, given_path=False)  # type: ignore[list-item]
    assert set(found) == {"squared_distance", "squared_gradient", "excess_loss", "plain"}
    assert found["plain"].ceiling.tolist() == [math.inf] * 3
