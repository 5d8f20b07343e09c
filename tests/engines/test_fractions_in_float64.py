"""Hyper-parameters that are fractions run in float64 as the floats that they are nearest to."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fltheory import algorithms
from fltheory.engines import Setting, exact, monte_carlo, paths, stationary
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.verify import truth

PROBLEM = QuadraticProblem(
    [[[2.0]], [[1.0]], [[1.5]]], [[0.0], [1.0], [2.0]], sigma=0.5, server_sigma=0.25
)

# By the numbers' own kind: a third is no float, so that neither is a fraction by accident.
MADE: dict[str, Callable[[Callable[[int, int], Any]], Any]] = {
    "Safari": lambda n: algorithms.Safari(n(1, 3), n(1, 10), n(1, 7), 2),
    "FedAvg": lambda n: algorithms.FedAvg(n(1, 10), 2, server_lr=n(1, 3)),
    "WeightedFedAvg": lambda n: algorithms.WeightedFedAvg((n(1, 2), n(1, 4), n(1, 4)), n(1, 10), 2),
    "FedAU": lambda n: algorithms.FedAU(n(1, 10), 2, cutoff=3, server_lr=n(1, 3)),
    "FedAvgIS": lambda n: algorithms.FedAvgIS((n(1, 2), n(1, 5), n(1, 4)), n(1, 10), 2),
    "FedVarp": lambda n: algorithms.FedVarp(n(1, 10), 2),
    "Mifa": lambda n: algorithms.Mifa(n(1, 10), 2),
    "Scaffold": lambda n: algorithms.Scaffold(n(1, 10), 2, server_lr=n(1, 3)),
    "FedAR": lambda n: algorithms.FedAR(n(1, 10), 2),
    "ClusterFedVarp": lambda n: algorithms.ClusterFedVarp((0, 0, 1), n(1, 10), 2),
    "ServerMomentum": lambda n: algorithms.ServerMomentum(algorithms.FedAvg(n(1, 10), 2), n(1, 3)),
    "Scheduled": lambda n: algorithms.Scheduled(
        algorithms.FedAvg(n(1, 10), 1), algorithms.Harmonic(n(1, 3), offset=n(5, 1))
    ),
    "LocalSgd": lambda n: algorithms.LocalSgd(
        algorithms.Harmonic(n(1, 3)), 2, (n(1, 2), n(1, 4), n(1, 4))
    ),
}
ENGINES: dict[str, Callable[[Setting], Any]] = {
    "exact": exact,
    "paths": paths,
    "stationary": stationary,
    "monte_carlo": lambda setting: monte_carlo(setting, 50, 1),
    "truth": lambda setting: truth(setting).trajectory,
}


@pytest.mark.parametrize("participation", [UniformSubset(3, 2), Bernoulli([0.5, 0.25, 0.75])])
@pytest.mark.parametrize("name", MADE)
def test_a_fraction_is_the_float_nearest_to_it(name: str, participation) -> None:
    def setting(number: Callable[[int, int], Any]) -> Setting:
        return Setting(MADE[name](number), PROBLEM, participation, 5, [3.0])

    answered = 0
    for engine in ENGINES.values():
        try:
            expected = engine(setting(lambda above, below: above / below))
        except (NotAffineError, ValueError):
            with pytest.raises((NotAffineError, ValueError)):
                engine(setting(Fraction))
            continue
        found = engine(setting(Fraction))
        assert np.array_equal(found.squared_distance, expected.squared_distance, equal_nan=True)
        answered += 1
    assert answered >= 2
