from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fltheory.testing.conformance.options import OPTIONS, StepsPerClient
from fltheory.testing.conformance.specifications import SPECIFICATIONS, STEP_SIZES


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("availability", [0.5, 1], (0.5, 1.0)),
        ("availability", np.array([0.5, 1.0]), (0.5, 1.0)),
        ("availability", np.float64(0.5), 0.5),
        ("availability", None, None),
        ("prior", [1, 2], (1.0, 2.0)),
        ("cutoff", np.int64(3), 3),
        ("cutoff", math.inf, math.inf),
        ("size", np.array(2), 2),
        ("proximal", np.float32(0.5), 0.5),
    ],
)
def test_lists_and_numpy_s_are_python_s(name: str, given: Any, meant: Any) -> None:
    found = OPTIONS[name].checked(name, given, optional=True)
    assert (type(found), found) == (type(meant), meant)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("availability", [[0.5]], "availability must be a number for each client"),
        ("availability", [], "availability must be a number for each client"),
        ("availability", "often", "availability must be a real array"),
        ("target_weights", None, "target_weights must have a value, got None"),
        ("prior", 1, "prior must be two numbers, got 1"),
        ("prior", (1, 2, 3), "prior must be two numbers"),
        ("cutoff", 2.5, "cutoff must be a whole number of at least 1, got 2.5"),
        ("proximal", "much", "proximal must be a finite number, got 'much'"),
        ("proximal", math.inf, "proximal must be a finite number, got inf"),
        ("weighting", 3, "weighting must be a non-empty string"),
    ],
)
def test_what_is_nothing_of_the_kind_is_refused(name: str, given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OPTIONS[name].checked(name, given)


def test_local_steps_are_a_whole_number_for_each_client() -> None:
    steps = StepsPerClient()
    assert steps.checked("local_steps", np.array([1, 2])) == (1, 2)
    assert steps.for_clients(steps.checked("local_steps", 3), 2) == (3, 3)
    for wrong in ([1, 2.5], [], 0, [0, 1]):
        with pytest.raises(ValueError, match="local_steps must be a whole number"):
            steps.checked("local_steps", wrong)


def test_every_option_of_every_algorithm_is_known() -> None:
    for one in SPECIFICATIONS.values():
        assert set(one.options) <= set(OPTIONS) - set(STEP_SIZES)


@pytest.mark.parametrize(
    ("name", "fixed", "n", "fewest"),
    [
        ("fedavg", {"server_lr": 2.0}, None, 1),
        ("fednova", {"local_steps": (1, 2, 3)}, 3, 1),
        ("f3ast", {"size": 4}, None, 4),
        ("f3ast", {"size": 2, "target_weights": (0.2, 0.3, 0.5)}, 3, 2),
        ("ca-fed", {"prior": (1.0, 2.0)}, None, 1),
        ("ca-fed", {"known_minima": (0.0,) * 4}, 4, 1),
    ],
)
def test_a_specification_knows_how_many_clients(
    name: str, fixed: Any, n: int | None, fewest: int
) -> None:
    one = SPECIFICATIONS[name]
    assert (one.n_clients(fixed), one.fewest(fixed)) == (n, fewest)


def test_how_long_an_absence_must_last() -> None:
    assert SPECIFICATIONS["fedau"].lasts({"cutoff": 50}) == 50
    assert SPECIFICATIONS["fedau"].lasts({"cutoff": math.inf}) == 0
    assert SPECIFICATIONS["fedar"].lasts({"growth": 0.5}) == 0
