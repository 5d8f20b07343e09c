"""A setting refuses parts that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

ALGORITHM, PROBLEM = FedAvg(0.1, 1), QuadraticProblem(np.eye(2), [[0.0, 1.0], [1.0, 0.0]])
GOOD = {"participation": UniformSubset(2, 1), "rounds": 3, "x0": [0.5, 0.5]}


def test_holds_its_parts() -> None:
    start = np.array([0.5, 0.5])
    setting = Setting(ALGORITHM, PROBLEM, **(GOOD | {"x0": start}))
    start[0] = 9.0
    assert setting.rounds == 3
    np.testing.assert_array_equal(setting.x0, [0.5, 0.5])
    assert not setting.x0.flags.writeable


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x0": [0.0]}, r"x0 must have shape \(2,\), got \(1,\)"),
        ({"x0": [[0.0, 0.0]]}, r"x0 must have shape \(2,\), got \(1, 2\)"),
        ({"x0": [0.0, np.nan]}, r"x0 must be finite, got nan"),
        ({"x0": [0.0, -np.inf]}, r"x0 must be finite, got -inf"),
        ({"x0": ["a", "b"]}, r"x0 must be a real array of shape \(2,\)"),
        ({"rounds": 0}, r"rounds must be a whole number of at least 1, got 0"),
        ({"rounds": 2.5}, r"rounds must be a whole number of at least 1, got 2\.5"),
        (
            {"participation": UniformSubset(3, 1)},
            r"participation must be over the problem's 2 clients, got one over 3",
        ),
    ],
)
def test_bad_input_is_named(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Setting(ALGORITHM, PROBLEM, **(GOOD | changed))
